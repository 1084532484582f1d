//! What the shop does, by the name of the singleton or schedule.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;
use tonic::Status;

use crate::baton::{ExecuteRequest, ExecuteResponse, Failed, RunRef, Succeeded, execute_response::Outcome};
use crate::sidecar::Sidecar;

pub const SINGLETONS: [&str; 1] = ["coordinator"];
pub const SCHEDULES: [&str; 3] = ["report", "flaky", "order-flow"];
const STEPS: [&str; 5] = ["reserve", "charge", "pack", "ship", "notify"];

pub fn knows(request: &ExecuteRequest) -> bool {
    let names = if is_singleton(request) { &SINGLETONS[..] } else { &SCHEDULES[..] };
    names.contains(&request.name.as_str())
}

/// Runs the handler; an error of the sidecar or of the disk may be gone at the next attempt.
pub async fn handle(request: &ExecuteRequest, sidecar: &Sidecar) -> ExecuteResponse {
    let outcome = match request.name.as_str() {
        "report" => Ok(report(request)),
        "flaky" => Ok(flaky(request)),
        "coordinator" => coordinator(request, sidecar).await,
        _ => order_flow(request, sidecar).await,
    };
    let outcome = outcome.unwrap_or_else(|status| retryable(format!("{:?}: {}", status.code(), status.message())));
    ExecuteResponse { outcome: Some(outcome) }
}

/// Counts its own runs: the new state is committed together with the outcome.
fn report(request: &ExecuteRequest) -> Outcome {
    let mut state = object(&request.state);
    let number = state["reports"].as_u64().unwrap_or(0) + 1;
    state["reports"] = json!(number);
    let (result, state) = (bytes(&json!({"report": number})), Some(bytes(&state)));
    Outcome::Succeeded(Succeeded { result, state, ..Succeeded::default() })
}

fn flaky(request: &ExecuteRequest) -> Outcome {
    match request.attempt {
        attempt @ 0..3 => retryable(format!("attempt {attempt} always fails")),
        attempt => succeeded(&json!(format!("succeeded at attempt {attempt}"))),
    }
}

/// Never returns by itself: the sidecar cancels the call when the term ends, and tonic drops this future.
async fn coordinator(request: &ExecuteRequest, sidecar: &Sidecar) -> Result<Outcome, Status> {
    let mut count = object(&request.state)["count"].as_u64().unwrap_or(0);
    loop {
        count += 1;
        let key = format!("singleton-state:{}", request.name);
        sidecar.put_state(run_ref(request), key, bytes(&json!({"count": count}))).await?;
        sidecar.heartbeat(run_ref(request), None, &format!("count {count}")).await?;
        println!("coordinator counts {count}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Five durable steps: one that an earlier attempt stored is not done again.
async fn order_flow(request: &ExecuteRequest, sidecar: &Sidecar) -> Result<Outcome, Status> {
    let order = match object(&request.payload)["order"].take() {
        Value::Null => json!(request.run_id),
        order => order,
    };
    let mut done = 0.0;
    for step in STEPS {
        if !request.checkpoints.iter().any(|stored| stored.step == step) {
            perform(request, step, &order).await?;
            sidecar.checkpoint(run_ref(request), step, bytes(&json!(step))).await?;
        }
        done += 1.0;
        sidecar.heartbeat(run_ref(request), Some(done / 5.0), step).await?;
    }
    Ok(succeeded(&json!({"order": order, "done": true})))
}

/// One step of an order: it takes its time, then leaves a line in the ledger.
async fn perform(request: &ExecuteRequest, step: &str, order: &Value) -> Result<(), Status> {
    let seconds = std::env::var("ORDERS_STEP_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0.2);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let line = json!({"order": order, "run": request.run_id, "step": step, "attempt": request.attempt});
    if let Ok(path) = std::env::var("ORDERS_LEDGER") {
        append(&path, &line).await.map_err(|error| Status::unavailable(error.to_string()))?;
    }
    println!("order {order}: {step}");
    Ok(())
}

async fn append(path: &str, line: &Value) -> std::io::Result<()> {
    let mut ledger = OpenOptions::new().append(true).create(true).open(path).await?;
    ledger.write_all(format!("{line}\n").as_bytes()).await?;
    ledger.flush().await?;
    ledger.sync_all().await
}

fn run_ref(request: &ExecuteRequest) -> RunRef {
    let epoch = request.context.as_ref().map_or(0, |context| context.epoch);
    RunRef { run_id: request.run_id, attempt: request.attempt, epoch }
}

fn is_singleton(request: &ExecuteRequest) -> bool {
    request.kind() == crate::baton::RunKind::Singleton
}

/// The JSON object in it; empty if it is none.
fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn succeeded(result: &Value) -> Outcome {
    Outcome::Succeeded(Succeeded { result: bytes(result), ..Succeeded::default() })
}

fn retryable(message: String) -> Outcome {
    Outcome::Failed(Failed { message, retryable: true, ..Failed::default() })
}
