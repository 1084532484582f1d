//! Attach: the app dials the sidecar and receives its work over one stream. It needs no port and no server.
//!
//! Everything else is as with callbacks. Steps and heartbeats could travel over the stream too; this example
//! makes the unary calls, which work for every run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::baton::leadership_change::Change;
use crate::baton::run_answer::Answer;
use crate::baton::{
    AttachRequest, AttachResponse, CallStatus, ClusterContext, ExecuteRequest, Hello, LeadershipAnswer,
    LeadershipChange, LeadershipEvent, Pong, RunAnswer, Welcome,
};
use crate::{Orders, handlers};

const CAPACITY: u32 = 100;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_secs(25);
const END: Duration = Duration::from_secs(1);

/// Stays attached until `stopping` turns true, and attaches again whenever the stream breaks.
pub async fn attach(orders: Arc<Orders>, mut stopping: watch::Receiver<bool>) {
    let mut pause = PAUSE_MIN;
    while !*stopping.borrow() {
        let mut session = Session::new(orders.clone());
        let ended = session.run(&mut stopping).await;
        if session.welcome.is_some() {
            pause = PAUSE_MIN;
        }
        drop(session); // its runs are cancelled with it
        orders.terms.close_all().await; // without a stream this process does not lead
        if let Err(status) = ended {
            println!("detached: {}", advice(&status));
            sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}

fn advice(status: &Status) -> String {
    match status.code() {
        Code::Unimplemented => "the sidecar is too old for Attach: upgrade it, or serve with --address".to_owned(),
        code => format!("{code:?}: {}", status.message()),
    }
}

async fn turned_true(flag: &mut watch::Receiver<bool>) {
    drop(flag.wait_for(|on| *on).await);
}

type Incoming = Streaming<AttachResponse>;

/// One stream, from hello to its end.
struct Session {
    orders: Arc<Orders>,
    welcome: Option<Welcome>,
    sender: Sender<AttachRequest>,
    receiver: Option<Receiver<AttachRequest>>,
    runs: JoinSet<()>,
    open: HashMap<(u64, u32), AbortHandle>,
}

impl Session {
    fn new(orders: Arc<Orders>) -> Self {
        let (sender, receiver) = mpsc::channel(64);
        let (runs, open) = (JoinSet::new(), HashMap::new());
        Self { orders, welcome: None, sender, receiver: Some(receiver), runs, open }
    }

    /// Works until the stream ends, which is an error, or until the app has stopped and nothing runs any more.
    async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), Status> {
        self.send(AttachRequest { hello: Some(hello()), ..AttachRequest::default() }).await;
        let outgoing = ReceiverStream::new(self.receiver.take().expect("a session runs once"));
        let mut incoming = self.orders.sidecar.stream().attach(outgoing).await?.into_inner();
        let stopped = tokio::select! {
            ended = self.work(&mut incoming, |_| false) => return ended,
            () = turned_true(stopping) => timeout(DRAIN, self.leave(&mut incoming)).await,
        };
        self.sender = mpsc::channel(1).0; // the stream is half closed once the last answer is sent
        timeout(END, async { while let Ok(Some(_)) = incoming.message().await {} }).await.ok();
        stopped.unwrap_or(Ok(()))
    }

    /// Handles messages until it is done, or until the stream ends, which is an error.
    async fn work(&mut self, incoming: &mut Incoming, done: fn(&Self) -> bool) -> Result<(), Status> {
        while !done(self) {
            tokio::select! {
                message = incoming.message() => match message? {
                    Some(message) => self.receive(message).await,
                    None => return Err(Status::unavailable("the sidecar ended the stream")),
                },
                Some(_) = self.runs.join_next() => {}
            }
        }
        Ok(())
    }

    /// Takes no new runs, gives leadership back and lets what runs finish.
    async fn leave(&mut self, incoming: &mut Incoming) -> Result<(), Status> {
        self.send(AttachRequest { capacity: Some(0), ..AttachRequest::default() }).await;
        for group in self.orders.terms.led() {
            self.orders.sidecar.resign(group).await.ok(); // it may be handing over already
        }
        self.work(incoming, |session| session.runs.is_empty() && session.orders.terms.led().is_empty()).await
    }

    /// The fields of a message in the order of the contract. Trust needs nothing here: this app acts as leader
    /// only inside its runs.
    async fn receive(&mut self, message: AttachResponse) {
        if message.welcome.is_some() {
            self.welcome = message.welcome;
        }
        for change in message.leadership {
            self.lead(change).await;
        }
        for cancel in message.cancels {
            if let Some(run) = self.open.remove(&(cancel.run_id, cancel.attempt)) {
                run.abort();
            }
        }
        for request in message.runs {
            self.start(request);
        }
        if let Some(ping) = message.ping {
            let pong = Some(Pong { number: ping.number });
            self.send(AttachRequest { pong, ..AttachRequest::default() }).await;
        }
    }

    async fn lead(&self, change: LeadershipChange) {
        let (event, context) = match change.change {
            Some(Change::Become(request)) => {
                let context = request.context.unwrap_or_default();
                self.orders.become_leader(&context).await;
                (LeadershipEvent::Become, context)
            }
            Some(Change::Lose(request)) => {
                let reason = request.reason();
                let context = request.context.unwrap_or_default();
                self.orders.lose_leadership(&context, reason).await;
                (LeadershipEvent::Lose, context)
            }
            None => return,
        };
        let ClusterContext { group, epoch, .. } = context;
        let answer = LeadershipAnswer { event: event.into(), group, epoch, error: None };
        self.send(AttachRequest { leadership: vec![answer], ..AttachRequest::default() }).await;
    }

    fn start(&mut self, mut request: ExecuteRequest) {
        if let (Some(context), Some(welcome)) = (&mut request.context, &self.welcome) {
            (context.cluster, context.runner_id) = (welcome.cluster.clone(), welcome.runner_id.clone());
        }
        self.open.retain(|_, run| !run.is_finished());
        let (orders, sender) = (self.orders.clone(), self.sender.clone());
        let key = (request.run_id, request.attempt);
        let run = self.runs.spawn(async move {
            let answer = match orders.run(request).await {
                Ok(response) => Answer::Response(response),
                Err(status) => Answer::Status(call_status(&status)),
            };
            let answers = vec![RunAnswer { run_id: key.0, attempt: key.1, answer: Some(answer) }];
            sender.send(AttachRequest { answers, ..AttachRequest::default() }).await.ok();
        });
        self.open.insert(key, run);
    }

    /// A stream that is over takes nothing; the reader finds out why.
    async fn send(&self, message: AttachRequest) {
        self.sender.send(message).await.ok();
    }
}

fn hello() -> Hello {
    let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect();
    Hello {
        client: format!("baton-orders/{}", env!("CARGO_PKG_VERSION")),
        process_id: std::process::id().to_string(),
        capacity: CAPACITY,
        singletons: names(&handlers::SINGLETONS),
        schedules: names(&handlers::SCHEDULES),
        ..Hello::default()
    }
}

fn call_status(status: &Status) -> CallStatus {
    CallStatus { code: status.code() as u32, message: status.message().to_owned() }
}

#[cfg(test)]
#[path = "attach_test.rs"]
mod tests;
