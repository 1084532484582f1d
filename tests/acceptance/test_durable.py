"""A new leader goes on in the middle: steps, deferreds, progress and hand-overs (G3, G5, G7).

Real pods on the Python client; see `durable_app`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    deferreds_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
)
from tests.acceptance.client_lab import ClientCluster, patiently
from tests.lab.processes import baton, boottime, wait_until
from tests.lab.replica import Replica, Setup

NEVER = "0 0 29 2 *"
STEPS = ("reserve", "charge", "pack", "ship", "notify")  # of durable_app
KILLS_MAX = 10
RESTART_SECONDS = 1.0  # from the takeover to the next attempt


@pytest.fixture
def pods(tmp_path: Path, database_url: str) -> Iterator[ClientCluster]:
    schedules = [
        {"name": name, "cron": NEVER} for name in ("order-flow", "approval", "patient", "stubborn")
    ]
    config = {"schedules": schedules, "election": {"drain": "4s"}}
    setup = Setup(database_url, profile="steady", config=config)
    with ClientCluster(tmp_path / "lab", 3, setup, "tests.acceptance.durable_app") as cluster:
        cluster.leading(timeout=40)
        yield cluster


def _trigger(replica: Replica, name: str) -> int:
    """Asked of any pod; neither the pod nor the schedule may be there yet."""
    arguments = ("trigger", name, "--request-id", "one", "--address", replica.api_address)
    return int(patiently(lambda: baton(*arguments)))


def _run(replica: Replica, run_id: int) -> runs_pb2.Run:
    with grpc.insecure_channel(replica.api_address) as channel:
        stub: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
        run: runs_pb2.Run = stub.Get(runs_pb2.RunsGetRequest(run_id=run_id), timeout=5).run
        return run


def _ended(pods: ClientCluster, run_id: int, timeout: float = 60) -> runs_pb2.Run:
    def ended() -> runs_pb2.Run | None:
        living = next(r for r in pods.replicas if r.sidecar.running)
        try:
            run = _run(living, run_id)
        except grpc.RpcError:
            return None
        return run if run.state == runs_pb2.RUN_STATE_ENDED else None

    return wait_until(ended, timeout, lambda: f"run {run_id} ends: {pods.ledger.lines()[-10:]}")


def _status(replica: Replica) -> dict[str, Any]:
    return dict(json.loads(baton("status", "--json", "--address", replica.api_address)))


def test_an_order_killed_at_random_points_ends_with_each_step_taken_once(
    pods: ClientCluster,
) -> None:
    """G3 G5 G7: no step runs again once its result was acknowledged; the flow always ends."""
    chance = random.Random(7)
    faults: list[Callable[[Replica], None]] = [
        Replica.kill,
        Replica.kill,
        lambda replica: replica.sidecar.kill(),
        lambda replica: replica.app.kill(),
    ]
    run_id = _trigger(pods[0], "order-flow")
    kills = starts = 0

    def goes_on() -> bool:
        return len(pods.ledger.lines("start")) > starts or through()

    def through() -> bool:
        return bool(pods.ledger.lines("taken", step=STEPS[-1]))

    while kills < KILLS_MAX:
        wait_until(goes_on, 20, lambda: f"another attempt: {pods.ledger.lines()}")
        if through():
            break
        # Each attempt gets a step or two further; a kill hits the effect, the store or between.
        victim, begun = pods.leading(), pods.ledger.lines("start")
        starts = len(begun)
        time.sleep(max(0.0, begun[-1]["at"] + chance.uniform(0.3, 1.3) - boottime()))
        chance.choice(faults)(victim)
        kills += 1
        pods.revive()
    run = _ended(pods, run_id, timeout=40)
    assert run.outcome == runs_pb2.OUTCOME_SUCCEEDED, run.error
    assert kills >= 3
    assert run.attempt > kills // 2
    result = json.loads(run.result)
    for step in STEPS:
        taken = pods.ledger.lines("taken", step=step)
        assert {line["receipt"] for line in taken} == {result[step]}, f"{step} was taken twice"
        late = [e for e in pods.ledger.lines("effect", step=step) if e["at"] > taken[0]["at"]]
        assert not late, f"{step} ran again after it was acknowledged"
    attempts = [line["attempt"] for line in pods.ledger.lines("start")]
    assert attempts == sorted(set(attempts)), "an attempt came twice, or went back"


def test_a_deferred_is_awaited_through_three_leaders_and_completed_elsewhere(
    pods: ClientCluster,
) -> None:
    """G5 G7: every attempt gets the same token; each begins within a second of the takeover."""
    run_id = _trigger(pods[0], "approval")
    pods.ledger.wait("waiting")
    for number, fault in enumerate(("kill", "resign", "kill"), start=1):
        leader = pods.leading()
        if fault == "kill":
            leader.kill()
        else:
            pods.resign(leader)
        waiting = pods.ledger.wait("waiting", number + 1)
        become = pods.ledger.lines("become", epoch=waiting[number]["epoch"])[0]
        assert pods.seconds(become["at"], waiting[number]["at"]) < RESTART_SECONDS
        pods.revive()
    tokens = {line["token"] for line in pods.ledger.lines("waiting")}
    assert len(tokens) == 1
    leader = pods.leading()
    other = pods.others(leader)[0]
    patiently(lambda: _run(other, run_id))
    (token,) = tokens
    command = ("deferred", "complete", token, "--value", '"yes"', "--address", other.api_address)
    with grpc.insecure_channel(other.api_address) as channel:
        deferreds: Any = deferreds_pb2_grpc.DeferredsStub(channel)  # type: ignore[arg-type]
        asked = boottime()
        completion = deferreds_pb2.DeferredsCompleteRequest(token=token, value=b'"yes"')
        deferreds.Complete(completion, timeout=10)
    answered = pods.ledger.wait("answered")[0]
    assert answered["answer"] == "yes"
    assert answered["at"] - asked < 5, "the waiter was woken by its slow poll, not by a hint"
    baton(*command)  # the same end again is none
    run = _ended(pods, run_id)
    assert (run.outcome, json.loads(run.result)) == (runs_pb2.OUTCOME_SUCCEEDED, "yes")
    assert {event.cause for event in run.history} >= {"leader changed"}


def test_a_planned_hand_over_gives_runs_the_drain_time(pods: ClientCluster) -> None:
    """G5: told first, then cancelled with a reason; progress is seen from any pod meanwhile."""
    patient, stubborn = _trigger(pods[0], "patient"), _trigger(pods[1], "stubborn")
    pods.ledger.wait("start", run=patient)
    pods.ledger.wait("start", run=stubborn)
    leader = pods.leading()
    other = pods.others(leader)[0]
    patiently(lambda: _run(other, patient))
    shown = wait_until(lambda: _run(other, patient).progress_message, 5, "progress in Runs.Get")
    assert (shown, _run(other, patient).progress) == ("working", 0.4)
    seen = next(run for run in _status(other)["runs"] if int(run["run_id"]) == patient)
    assert (seen["progress"], seen["progress_message"]) == (0.4, "working")
    assert "40% working" in baton("status", "--address", other.api_address)
    pods.resign(other)
    assert pods.ledger.wait("draining")[0]["flag"]
    done = _ended(pods, patient)
    assert (done.outcome, done.attempt) == (runs_pb2.OUTCOME_SUCCEEDED, 1)
    assert json.loads(done.result) == "REACHED"
    cancelled = pods.ledger.wait("cancelled", run=stubborn)[0]
    assert (cancelled["reason"], cancelled["draining"]) == ("HANDOVER", True)
    told = pods.ledger.lines("draining")[0]["at"]
    assert cancelled["at"] - told > 1.0, "the run had no time to reach a checkpoint"
    again = _ended(pods, stubborn)
    assert (again.outcome, again.attempt) == (runs_pb2.OUTCOME_SUCCEEDED, 2)


def test_after_a_freeze_the_old_attempt_is_cancelled_and_its_checkpoint_refused(
    pods: ClientCluster,
) -> None:
    """G3: two leaders' attempts of one run race; only the new one's step is stored."""
    run_id = _trigger(pods[0], "stubborn")
    pods.ledger.wait("start")
    old = pods.leading()
    old.freeze()
    pods.ledger.wait("start", 2)
    old.thaw()
    cancelled = pods.ledger.wait("cancelled")[0]
    assert cancelled["attempt"] == 1
    assert cancelled["reason"] in {"TRUST_EXPIRED", "CALL_CANCELLED", "LEASE_LOST"}
    refused = pods.ledger.wait("refused")[0]
    assert (refused["attempt"], refused["reason"]) == (1, "Fenced")
    run = _ended(pods, run_id)
    assert (run.outcome, run.attempt) == (runs_pb2.OUTCOME_SUCCEEDED, 2)
    assert json.loads(run.result) == "ATTEMPT 2"
