"""The typed reasons as a user meets them: in the status of a call, in metrics and in the log (G7).

Loading and storing state is repeated within the term until it succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc, state_pb2, state_pb2_grpc
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.proxy import Direction, Filter, Verdict
from tests.lab.replica import Replica, Setup

RUN = runs_pb2.RunRef(run_id=1, attempt=1, epoch=1)
PUT = state_pb2.StatePutRequest(key="k", value=b"1")
CONFIG = {
    "schedules": [{"name": "counter", "cron": "0 0 29 2 *"}],
    "singletons": [{"name": "one", "restart_after": "1s"}],
}


def _cutting(statement: bytes, times: int) -> Filter:
    """Break the connection the first `times` that this statement is sent on it."""
    left = [times]

    def decide(direction: Direction, chunk: bytes) -> Verdict:
        if direction is Direction.TO_CLIENT or statement not in chunk or not left[0]:
            return Verdict.PASS
        left[0] -= 1
        return Verdict.CUT

    return decide


def _refusal(call: Callable[[], object]) -> tuple[grpc.StatusCode, list[Any]]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    status = status_pb2.Status()
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    return error.code(), [_unpacked(detail) for detail in status.details]


def _unpacked(packed: AnyMessage) -> Any:
    for kind in (
        error_details_pb2.ErrorInfo,
        error_details_pb2.RetryInfo,
        error_details_pb2.BadRequest,
    ):
        message = kind()
        if packed.Unpack(message):
            return message
    raise AssertionError(packed)


def _errors(replica: Replica, reason: str) -> float:
    wanted = f'singleton_state_errors_total{{reason="{reason}"}} '
    lines = replica.http("/metrics")[1].splitlines()
    return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


def test_typed_reasons_reach_callers_metrics_and_log(tmp_path: Path, database_url: str) -> None:
    """G7 G11: what failed, and whether asking again helps; nothing is acknowledged meanwhile."""
    setup = Setup(database_url, profile="steady", config=CONFIG)
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        replica = cluster[0]
        replica.tell(execute={"counter": "counter"})
        cluster.wait_for_leader()
        wire = replica.pool_wire
        assert wire
        _load_and_persist_are_repeated(cluster, replica)
        with grpc.insecure_channel(replica.api_address) as channel:
            state: Any = state_pb2_grpc.StateStub(channel)  # type: ignore[arg-type]
            runs: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
            gone = state_pb2.StateWatchRequest(after_version=1)
            code, (info,) = _refusal(lambda: list(state.Watch(gone, timeout=5)))
            assert (code, info.reason) == (grpc.StatusCode.OUT_OF_RANGE, "HistoryGone")
            wire.refuse()
            wire.cut()
            beat = runs_pb2.RunsHeartbeatRequest(run=RUN)
            for reason, ask in (
                ("StateLoadFailed", lambda: state.Get(state_pb2.StateGetRequest(key="k"))),
                ("StatePersistFailed", lambda: state.Put(PUT)),
                ("HeartbeatFailed", lambda: runs.Heartbeat(beat)),
            ):
                before = _errors(replica, reason)
                code, (info, retry) = _refusal(ask)
                assert code is grpc.StatusCode.UNAVAILABLE
                assert (info.reason, info.domain) == (reason, "baton")
                assert info.metadata["retryable"] == "true"
                assert retry.retry_delay.ToMilliseconds() > 0
                assert _errors(replica, reason) > before
            wire.heal()
            wait_until(lambda: _works(lambda: state.Put(PUT, timeout=5)), 15, replica.describe)
        told = {
            line.get("reason") for line in replica.log() if line["event"] == "state_call_failed"
        }
        assert told == {"StateLoadFailed", "StatePersistFailed"}
        assert any(line["event"] == "run_heartbeat_failed" for line in replica.log())
        replica.tell(become="error")
        baton("resign", "default", "--address", replica.api_address)
        wait_until(
            lambda: _errors(replica, "LeaderHandoffFailed") > 0, 20, "a hand-over that failed"
        )
        assert any(line["event"] == "leader_handoff_failed" for line in replica.log())


def _load_and_persist_are_repeated(cluster: Cluster, replica: Replica) -> None:
    wire = replica.pool_wire
    assert wire
    cluster.wait_for("execute", name="one")  # its own load is over, and fails nowhere below
    epoch = cluster.events("become")[-1].epoch
    assert _triggered(replica).result == b"1"  # what was never stored need not be loaded
    for count, (statement, reason) in enumerate(
        ((b"state_version BETWEEN 1 AND", "StateLoadFailed"),
         (b"NULL::bigint AS expected", "StatePersistFailed")), start=2,
    ):  # fmt: skip
        wire.filter = _cutting(statement, 3)
        run = _triggered(replica)
        assert (run.outcome, run.result) == (runs_pb2.OUTCOME_SUCCEEDED, str(count).encode())
        assert (run.attempt, run.epoch) == (1, epoch), "repeated within the attempt and the term"
        assert _errors(replica, reason) >= 2


def _triggered(replica: Replica) -> Any:
    """A run of the counter, once it has ended."""
    run_id = int(baton("trigger", "counter", "--address", replica.api_address))
    with grpc.insecure_channel(replica.api_address) as channel:
        runs: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
        asked = runs_pb2.RunsGetRequest(run_id=run_id)

        def ended() -> Any:
            if not _works(lambda: runs.Get(asked, timeout=5)):
                return None
            run = runs.Get(asked, timeout=5).run
            return run if run.state == runs_pb2.RUN_STATE_ENDED else None

        return wait_until(ended, 20, replica.describe)


def _works(call: Callable[[], object]) -> bool:
    try:
        call()
    except grpc.RpcError:
        return False
    return True
