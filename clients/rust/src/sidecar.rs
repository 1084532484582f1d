//! The calls that handlers make to the sidecar, each on behalf of the run it serves.

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::baton::app_stream_client::AppStreamClient;
use crate::baton::leadership_client::LeadershipClient;
use crate::baton::runs_client::RunsClient;
use crate::baton::state_client::StateClient;
use crate::baton::{LeadershipResignRequest, RunRef, RunsCheckpointRequest, RunsHeartbeatRequest, StatePutRequest};
use crate::tokens::{Token, TokenSender};

type Wire = InterceptedService<Channel, TokenSender>;

#[derive(Clone)]
pub struct Sidecar {
    runs: RunsClient<Wire>,
    state: StateClient<Wire>,
    leadership: LeadershipClient<Wire>,
    stream: AppStreamClient<Wire>,
}

impl Sidecar {
    /// Connects when first needed, and again whenever the connection breaks.
    pub fn at(address: &str, token: Token) -> Result<Self, tonic::transport::Error> {
        let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
        let wire = InterceptedService::new(channel, TokenSender(token));
        Ok(Self {
            runs: RunsClient::new(wire.clone()),
            state: StateClient::new(wire.clone()),
            leadership: LeadershipClient::new(wire.clone()),
            stream: AppStreamClient::new(wire),
        })
    }

    pub fn stream(&self) -> AppStreamClient<Wire> {
        self.stream.clone()
    }

    pub async fn resign(&self, group: String) -> Result<(), Status> {
        self.leadership.clone().resign(Request::new(LeadershipResignRequest { group })).await.map(drop)
    }

    pub async fn checkpoint(&self, run: RunRef, step: &str, value: Vec<u8>) -> Result<(), Status> {
        let request = RunsCheckpointRequest { run: Some(run), step: step.to_owned(), value };
        self.runs.clone().checkpoint(Request::new(request)).await.map(drop)
    }

    pub async fn heartbeat(&self, run: RunRef, progress: Option<f64>, message: &str) -> Result<(), Status> {
        let request = RunsHeartbeatRequest { run: Some(run), progress, message: Some(message.to_owned()) };
        self.runs.clone().heartbeat(Request::new(request)).await.map(drop)
    }

    pub async fn put_state(&self, run: RunRef, key: String, value: Vec<u8>) -> Result<(), Status> {
        let request = StatePutRequest { run: Some(run), key, value, ..StatePutRequest::default() };
        self.state.clone().put(Request::new(request)).await.map(drop)
    }
}
