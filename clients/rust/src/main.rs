//! The example app on bare generated stubs: what the client libraries do for you, done by hand with tonic.
//!
//! It behaves like the examples of the other languages, so that one cluster can mix them. It acts as leader
//! only inside `Execute`, which the sidecar cancels when the term ends; so it may leave the trust time alone.
//!
//! Start it beside a sidecar: `orders --address 127.0.0.1:50051 --sidecar 127.0.0.1:9401`

mod handlers;
mod sidecar;
mod terms;
mod tokens;

/// What `build.rs` generates from the contract.
#[allow(clippy::all, clippy::pedantic, dead_code)]
mod baton {
    tonic::include_proto!("baton.v1");
}

use std::error::Error;

use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use baton::app_callback_server::{AppCallback, AppCallbackServer};
use baton::{
    ClusterContext, ExecuteRequest, ExecuteResponse, OnBecomeLeaderRequest, OnBecomeLeaderResponse,
    OnLoseLeadershipRequest, OnLoseLeadershipResponse,
};
use sidecar::Sidecar;
use terms::Terms;
use tokens::{Token, TokenCheck};

struct Orders {
    terms: Terms,
    sidecar: Sidecar,
}

#[tonic::async_trait]
impl AppCallback for Orders {
    async fn on_become_leader(
        &self,
        request: Request<OnBecomeLeaderRequest>,
    ) -> Result<Response<OnBecomeLeaderResponse>, Status> {
        let ClusterContext { group, epoch, .. } = context(request.into_inner().context)?;
        println!("leader of {group}, epoch {epoch}");
        self.terms.open(&group, epoch).await;
        Ok(Response::new(OnBecomeLeaderResponse {}))
    }

    async fn on_lose_leadership(
        &self,
        request: Request<OnLoseLeadershipRequest>,
    ) -> Result<Response<OnLoseLeadershipResponse>, Status> {
        let request = request.into_inner();
        let reason = request.reason().as_str_name();
        let ClusterContext { group, epoch, .. } = context(request.context)?;
        println!("no longer leader of {group}, epoch {epoch}: {reason}");
        self.terms.close(&group, epoch).await;
        Ok(Response::new(OnLoseLeadershipResponse {}))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        let request = request.into_inner();
        let ClusterContext { group, epoch, .. } = context(request.context.clone())?;
        let Some(mut term) = self.terms.enter(&group, epoch) else {
            return Err(Status::unavailable(format!("not in term {epoch} of {group}")));
        };
        if !handlers::knows(&request) {
            return Err(Status::not_found(format!("no handler for {:?}", request.name)));
        }
        tokio::select! {
            _ = term.changed() => Err(Status::unavailable(format!("term {epoch} of {group} is over"))),
            response = handlers::handle(&request, &self.sidecar) => Ok(Response::new(response)),
        }
    }
}

fn context(given: Option<ClusterContext>) -> Result<ClusterContext, Status> {
    given.ok_or_else(|| Status::invalid_argument("context is missing"))
}

/// `--name VALUE` of the command line, else the variable, else the default.
fn setting(name: &str, variable: &str, default: &str) -> String {
    let given = std::env::args().skip_while(|argument| argument != name).nth(1);
    given.or_else(|| std::env::var(variable).ok()).unwrap_or_else(|| default.to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = setting("--address", "BATON_APP_ADDRESS", "127.0.0.1:50051");
    let api = setting("--sidecar", "BATON_API_ADDRESS", "127.0.0.1:9401");
    let sidecar = Sidecar::at(&api, Token::from_env("BATON_API_TOKEN_FILE"))?;
    let orders = Orders { terms: Terms::default(), sidecar };
    let check = TokenCheck(Token::from_env("BATON_APP_TOKEN_FILE"));
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<AppCallbackServer<Orders>>().await;
    let mut terminated = signal(SignalKind::terminate())?;
    println!("serving at {address}");
    Server::builder()
        .add_service(health)
        .add_service(AppCallbackServer::with_interceptor(orders, check))
        .serve_with_shutdown(address.parse()?, async move {
            terminated.recv().await;
        })
        .await?;
    Ok(())
}
