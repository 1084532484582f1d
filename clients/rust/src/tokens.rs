//! `baton-token`, one per direction, from files that may change while the app runs.

use std::fs;
use std::path::PathBuf;

use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::{Request, Status};

const KEY: &str = "baton-token";

/// The token of one direction; read anew for each call.
#[derive(Clone)]
pub struct Token(Option<PathBuf>);

impl Token {
    /// From the file that the variable names; unset: no token.
    pub fn from_env(variable: &str) -> Self {
        Self(std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self(None)
    }

    fn read(&self) -> Result<Option<String>, Status> {
        let Some(path) = &self.0 else { return Ok(None) };
        let text = fs::read_to_string(path).map_err(|_| Status::unavailable("the token file cannot be read"))?;
        Ok(Some(text.trim().to_owned()))
    }
}

/// Refuses calls that do not carry the app's token.
#[derive(Clone)]
pub struct TokenCheck(pub Token);

impl Interceptor for TokenCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(expected) = self.0.read()? else { return Ok(request) };
        let given = request.metadata().get(KEY).map_or(&[][..], MetadataValue::as_encoded_bytes);
        if expected.is_empty() || !same(given, expected.as_bytes()) {
            return Err(Status::unauthenticated("baton-token is missing or wrong"));
        }
        Ok(request)
    }
}

/// Sends the sidecar's token with each call.
#[derive(Clone)]
pub struct TokenSender(pub Token);

impl Interceptor for TokenSender {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = self.0.read()? {
            let value = token.parse().map_err(|_| Status::internal("the token is no ASCII text"))?;
            request.metadata_mut().insert(KEY, value);
        }
        Ok(request)
    }
}

/// Compared in a time that does not tell where they differ.
fn same(given: &[u8], expected: &[u8]) -> bool {
    given.len() == expected.len() && given.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
