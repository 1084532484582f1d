"""A sidecar that stops answers the calls that are still under way."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import grpc
import psycopg
from google.rpc import error_details_pb2, status_pb2

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    deferreds_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Setup

_WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def _waits(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute(_WAITING).fetchone() is not None


def _end_of(call: Any) -> Future[grpc.RpcError]:
    """The error that ends the call, whatever it answers before."""
    end: Future[grpc.RpcError] = Future()

    def read() -> None:
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            end.set_result(error)
        else:
            end.set_exception(AssertionError("it ended without an error"))

    threading.Thread(target=read, daemon=True).start()
    return end


def _retry_delay(error: Any) -> int:
    trailers = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return int(retry.retry_delay.seconds)
    return 0


def test_calls_under_way_end_with_unavailable(tmp_path: Path, database_url: str) -> None:
    """G12: a client learns that the sidecar goes, and when to try again; it was not cancelled."""
    with (
        Cluster(tmp_path / "lab", 1, Setup(database_url)) as cluster,
        psycopg.connect(database_url) as other,
    ):
        replica = cluster.wait_for_leader()
        opened: Any = grpc.insecure_channel(replica.api_address)
        with opened as channel:
            state: Any = state_pb2_grpc.StateStub(channel)
            deferreds: Any = deferreds_pb2_grpc.DeferredsStub(channel)
            leadership: Any = leadership_pb2_grpc.LeadershipStub(channel)
            put = state_pb2.StatePutRequest(key="locked", value=b"1")
            state.Put(put, timeout=10)
            other.execute("SELECT 1 FROM baton.state WHERE key = 'locked' FOR UPDATE")
            create = deferreds_pb2.DeferredsCreateRequest(name="never")
            token = deferreds.Create(create, timeout=10).token
            leader = leadership.Watch(leadership_pb2.LeadershipWatchRequest())
            next(leader)
            watched = state.Watch(state_pb2.StateWatchRequest())
            ends = {"State.Watch": _end_of(watched), "Leadership.Watch": _end_of(leader)}
            wait = deferreds_pb2.DeferredsAwaitRequest(token=token)
            unary = {"Deferreds.Await": deferreds.Await.future(wait, timeout=60)}
            unary["State.Put"] = state.Put.future(put, timeout=60)
            wait_until(lambda: _waits(database_url), 10, lambda: "Put to wait for the row")
            replica.sidecar.terminate()
            assert replica.sidecar.wait() == 0
            errors = {name: end.result(10) for name, end in ends.items()}
            errors |= {name: call.exception(10) for name, call in unary.items()}
    codes = {name: error.code() for name, error in errors.items()}
    assert set(codes.values()) == {grpc.StatusCode.UNAVAILABLE}, codes
    assert {_retry_delay(error) for error in errors.values()} == {1}
