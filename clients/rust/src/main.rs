//! The example app on bare generated stubs: what the client libraries do for you, done by hand with tonic.
//!
//! It behaves like the examples of the other languages, so that one cluster can mix them. It acts as leader
//! only inside `Execute`, which the sidecar cancels when the term ends; so it may leave the trust time alone.
//!
//! It shows both ways to reach an app. Attached, it dials the sidecar: `orders --sidecar 127.0.0.1:9401`. With an address
//! it serves `AppCallback` there, and the sidecar dials: `orders --address 127.0.0.1:50051 --sidecar 127.0.0.1:9401`.

mod attach;
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
use std::sync::Arc;
use std::time::SystemTime;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use baton::app_callback_server::{AppCallback, AppCallbackServer};
use baton::{
    ClusterContext, ExecuteRequest, ExecuteResponse, LossReason, OnBecomeLeaderRequest, OnBecomeLeaderResponse,
    OnLoseLeadershipRequest, OnLoseLeadershipResponse,
};
use sidecar::Sidecar;
use terms::Terms;
use tokens::{Token, TokenCheck};

struct Orders {
    terms: Terms,
    sidecar: Sidecar,
}

/// What both ways have in common.
impl Orders {
    async fn become_leader(&self, ClusterContext { group, epoch, .. }: &ClusterContext) {
        println!("leader of {group}, epoch {epoch}");
        self.terms.open(group, *epoch).await;
    }

    async fn lose_leadership(&self, ClusterContext { group, epoch, .. }: &ClusterContext, reason: LossReason) {
        println!("no longer leader of {group}, epoch {epoch}: {}", reason.as_str_name());
        self.terms.close(group, *epoch).await;
    }

    /// Executes one attempt in its term, until its deadline.
    async fn run(&self, request: ExecuteRequest) -> Result<ExecuteResponse, Status> {
        let ClusterContext { group, epoch, .. } = context(request.context.clone())?;
        let Some(mut term) = self.terms.enter(&group, epoch) else {
            return Err(Status::unavailable(format!("not in term {epoch} of {group}")));
        };
        if !handlers::knows(&request) {
            return Err(Status::not_found(format!("no handler for {:?}", request.name)));
        }
        tokio::select! {
            biased;
            _ = term.changed() => Err(Status::unavailable(format!("term {epoch} of {group} is over"))),
            () = until(request.deadline) => Err(Status::deadline_exceeded("the deadline has passed")),
            response = handlers::handle(&request, &self.sidecar) => Ok(response),
        }
    }
}

/// Returns at the deadline; never, if there is none.
async fn until(deadline: Option<prost_types::Timestamp>) {
    match deadline.map(SystemTime::try_from) {
        Some(Ok(at)) => tokio::time::sleep(at.duration_since(SystemTime::now()).unwrap_or_default()).await,
        _ => std::future::pending().await,
    }
}

#[tonic::async_trait]
impl AppCallback for Orders {
    async fn on_become_leader(
        &self,
        request: Request<OnBecomeLeaderRequest>,
    ) -> Result<Response<OnBecomeLeaderResponse>, Status> {
        self.become_leader(&context(request.into_inner().context)?).await;
        Ok(Response::new(OnBecomeLeaderResponse {}))
    }

    async fn on_lose_leadership(
        &self,
        request: Request<OnLoseLeadershipRequest>,
    ) -> Result<Response<OnLoseLeadershipResponse>, Status> {
        let request = request.into_inner();
        let reason = request.reason();
        self.lose_leadership(&context(request.context)?, reason).await;
        Ok(Response::new(OnLoseLeadershipResponse {}))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        self.run(request.into_inner()).await.map(Response::new)
    }
}

fn context(given: Option<ClusterContext>) -> Result<ClusterContext, Status> {
    given.ok_or_else(|| Status::invalid_argument("context is missing"))
}

/// `--name VALUE` of the command line, else the variable.
fn setting(name: &str, variable: &str) -> Option<String> {
    let given = std::env::args().skip_while(|argument| argument != name).nth(1);
    given.or_else(|| std::env::var(variable).ok()).filter(|value| !value.is_empty())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let api = setting("--sidecar", "BATON_API_ADDRESS").unwrap_or_else(|| "127.0.0.1:9401".to_owned());
    let sidecar = Sidecar::at(&api, Token::from_env("BATON_API_TOKEN_FILE"))?;
    let orders = Orders { terms: Terms::default(), sidecar };
    let (stop, stopping) = watch::channel(false);
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        terminated.recv().await;
        stop.send_replace(true);
    });
    if let Some(address) = setting("--address", "BATON_APP_ADDRESS") {
        return serve(orders, &address, stopping).await;
    }
    attach::attach(Arc::new(orders), stopping).await;
    Ok(())
}

/// Serves `AppCallback` for the sidecar to call.
async fn serve(orders: Orders, address: &str, mut stopping: watch::Receiver<bool>) -> Result<(), Box<dyn Error>> {
    let check = TokenCheck(Token::from_env("BATON_APP_TOKEN_FILE"));
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<AppCallbackServer<Orders>>().await;
    println!("serving at {address}");
    Server::builder()
        .add_service(health)
        .add_service(AppCallbackServer::with_interceptor(orders, check))
        .serve_with_shutdown(address.parse()?, async move {
            stopping.wait_for(|stopping| *stopping).await.ok();
        })
        .await?;
    Ok(())
}
