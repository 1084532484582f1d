//! The app attached to a sidecar that the test plays.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::attach;
use crate::Orders;
use crate::baton::app_stream_server::{AppStream, AppStreamServer};
use crate::baton::execute_response::Outcome;
use crate::baton::leadership_change::Change;
use crate::baton::run_answer::Answer;
use crate::baton::{
    AttachRequest, AttachResponse, ClusterContext, ExecuteRequest, LeadershipChange, LeadershipEvent,
    OnBecomeLeaderRequest, OnLoseLeadershipRequest, Ping, RunCancel, RunKind, Welcome,
};
use crate::sidecar::Sidecar;
use crate::terms::Terms;
use crate::tokens::Token;

type Sent = Result<AttachResponse, Status>;

/// Hands each stream to the test.
struct Fake(Sender<(Streaming<AttachRequest>, Sender<Sent>)>);

#[tonic::async_trait]
impl AppStream for Fake {
    type AttachStream = ReceiverStream<Sent>;

    async fn attach(&self, request: Request<Streaming<AttachRequest>>) -> Result<Response<Self::AttachStream>, Status> {
        let (sender, receiver) = mpsc::channel(16);
        self.0.send((request.into_inner(), sender)).await.expect("the test waits");
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

struct Played {
    streams: Receiver<(Streaming<AttachRequest>, Sender<Sent>)>,
    stop: watch::Sender<bool>,
    app: JoinHandle<()>,
}

async fn play() -> Played {
    let (sender, streams) = mpsc::channel(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = Server::builder().add_service(AppStreamServer::new(Fake(sender)));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let sidecar = Sidecar::at(&address, Token::none()).expect("an address");
    let (stop, stopping) = watch::channel(false);
    let app = tokio::spawn(attach(Arc::new(Orders { terms: Terms::default(), sidecar }), stopping));
    Played { streams, stop, app }
}

async fn welcomed(played: &mut Played) -> (Streaming<AttachRequest>, Sender<Sent>) {
    let (mut requests, responses) = played.streams.recv().await.expect("the app attaches");
    let hello = next(&mut requests).await.hello.expect("hello comes first");
    assert_eq!(hello.singletons, ["coordinator"]);
    assert_eq!(hello.schedules, ["report", "flaky", "order-flow"]);
    let welcome = Some(Welcome { cluster: "test".to_owned(), ..Welcome::default() });
    say(&responses, AttachResponse { welcome, ..AttachResponse::default() }).await;
    (requests, responses)
}

async fn next(requests: &mut Streaming<AttachRequest>) -> AttachRequest {
    requests.message().await.expect("the stream lives").expect("the stream goes on")
}

async fn say(responses: &Sender<Sent>, message: AttachResponse) {
    responses.send(Ok(message)).await.expect("the stream lives");
}

fn context(epoch: u64) -> ClusterContext {
    ClusterContext { group: "default".to_owned(), epoch, ..ClusterContext::default() }
}

async fn lead(requests: &mut Streaming<AttachRequest>, responses: &Sender<Sent>, epoch: u64, change: Change) {
    let event = match change {
        Change::Become(_) => LeadershipEvent::Become,
        Change::Lose(_) => LeadershipEvent::Lose,
    };
    let leadership = vec![LeadershipChange { change: Some(change) }];
    say(responses, AttachResponse { leadership, ..AttachResponse::default() }).await;
    let answer = next(requests).await.leadership.remove(0);
    assert_eq!((answer.event(), answer.epoch, answer.error), (event, epoch, None));
}

fn became(epoch: u64) -> Change {
    Change::Become(OnBecomeLeaderRequest { context: Some(context(epoch)), ..OnBecomeLeaderRequest::default() })
}

fn lost(epoch: u64) -> Change {
    Change::Lose(OnLoseLeadershipRequest { context: Some(context(epoch)), ..OnLoseLeadershipRequest::default() })
}

async fn execute(requests: &mut Streaming<AttachRequest>, responses: &Sender<Sent>, run: ExecuteRequest) -> Answer {
    say(responses, AttachResponse { runs: vec![run], ..AttachResponse::default() }).await;
    next(requests).await.answers.remove(0).answer.expect("an answer")
}

fn run(name: &str, epoch: u64) -> ExecuteRequest {
    let kind = RunKind::Schedule.into();
    ExecuteRequest {
        run_id: 1,
        attempt: 1,
        kind,
        name: name.to_owned(),
        context: Some(context(epoch)),
        ..ExecuteRequest::default()
    }
}

fn code(answer: &Answer) -> u32 {
    match answer {
        Answer::Status(status) => status.code,
        Answer::Response(_) => 0,
    }
}

#[tokio::test]
async fn it_attaches_leads_executes_and_answers() {
    let mut played = play().await;
    let (mut requests, responses) = welcomed(&mut played).await;
    lead(&mut requests, &responses, 7, became(7)).await;
    match execute(&mut requests, &responses, run("report", 7)).await {
        Answer::Response(response) => assert!(matches!(response.outcome, Some(Outcome::Succeeded(_)))),
        Answer::Status(status) => panic!("{status:?}"),
    }
    assert_eq!(code(&execute(&mut requests, &responses, run("report", 6)).await), 14, "another term: UNAVAILABLE");
    assert_eq!(code(&execute(&mut requests, &responses, run("unknown", 7)).await), 5, "no handler: NOT_FOUND");
    let late = ExecuteRequest { deadline: Some(prost_types::Timestamp::default()), ..run("order-flow", 7) };
    assert_eq!(code(&execute(&mut requests, &responses, late).await), 4, "DEADLINE_EXCEEDED");
    say(&responses, AttachResponse { ping: Some(Ping { number: 3 }), ..AttachResponse::default() }).await;
    assert_eq!(next(&mut requests).await.pong.expect("a pong").number, 3);
    lead(&mut requests, &responses, 7, lost(7)).await;
    assert_eq!(code(&execute(&mut requests, &responses, run("report", 7)).await), 14, "lost: UNAVAILABLE");
}

#[tokio::test]
async fn a_cancelled_run_is_not_answered() {
    let mut played = play().await;
    let (mut requests, responses) = welcomed(&mut played).await;
    lead(&mut requests, &responses, 7, became(7)).await;
    let cancels = vec![RunCancel { run_id: 1, attempt: 1, ..RunCancel::default() }];
    say(&responses, AttachResponse { runs: vec![run("order-flow", 7)], ..AttachResponse::default() }).await;
    say(&responses, AttachResponse { cancels, ..AttachResponse::default() }).await;
    lead(&mut requests, &responses, 7, lost(7)).await; // the next answer is this one
}

#[tokio::test]
async fn a_broken_stream_ends_the_terms_and_is_opened_again() {
    let mut played = play().await;
    let (mut requests, responses) = welcomed(&mut played).await;
    lead(&mut requests, &responses, 7, became(7)).await;
    drop((requests, responses));
    let (mut requests, responses) = welcomed(&mut played).await;
    assert_eq!(code(&execute(&mut requests, &responses, run("report", 7)).await), 14, "the term is over");
    lead(&mut requests, &responses, 8, became(8)).await;
    assert_eq!(code(&execute(&mut requests, &responses, run("report", 8)).await), 0);
}

#[tokio::test]
async fn it_leaves_when_its_terms_are_over() {
    let mut played = play().await;
    let (mut requests, responses) = welcomed(&mut played).await;
    lead(&mut requests, &responses, 7, became(7)).await;
    played.stop.send_replace(true);
    assert_eq!(next(&mut requests).await.capacity, Some(0));
    lead(&mut requests, &responses, 7, lost(7)).await;
    assert!(requests.message().await.expect("half closed").is_none());
    drop(responses);
    played.app.await.expect("it stops");
}
