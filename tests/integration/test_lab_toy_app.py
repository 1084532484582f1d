"""The toy app as a process, called as a sidecar would call it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from devtools.servers import free_port
from sidecar._proto.baton.v1 import (
    callback_pb2,
    callback_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2,
)
from tests.lab import checker, history
from tests.lab.processes import Child, boottime, wait_until
from tests.lab.toy_app import Control


class Leadership(leadership_pb2_grpc.LeadershipServicer):
    """The part of a sidecar that the toy app listens to: one renewal, then silence."""

    async def Watch(
        self,
        request: leadership_pb2.LeadershipWatchRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[leadership_pb2.LeadershipWatchResponse]:
        trusted_for = Duration(seconds=2, nanos=500_000_000)
        leader = leadership_pb2.Leader(
            group=request.group, is_leader=True, epoch=7, trusted_for=trusted_for
        )
        yield leadership_pb2.LeadershipWatchResponse(leader=leader)
        await asyncio.sleep(60)


class Lab:
    def __init__(self, directory: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.sidecar = f"127.0.0.1:{free_port()}"
        self.control = directory / "control.json"
        self.history = directory / "history.jsonl"
        self.app = Child(
            [sys.executable, "-m", "tests.lab.toy_app", "--name", "a", "--address", self.address,
             "--history", self.history, "--control", self.control, "--sidecar", self.sidecar],
            directory / "log",
        )  # fmt: skip

    def events(self, kind: str, phase: str = "arrived") -> list[history.Event]:
        return history.select(history.read([self.history]), kind, phase)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    with lab.app:
        yield lab


@pytest.fixture
async def channel(lab: Lab) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(lab.address) as channel:
        await asyncio.wait_for(channel.channel_ready(), 20)
        yield channel


@pytest.fixture
def app(channel: grpc.aio.Channel) -> callback_pb2_grpc.AppCallbackStub:
    return callback_pb2_grpc.AppCallbackStub(channel)


def _context(epoch: int = 7) -> callback_pb2.ClusterContext:
    return callback_pb2.ClusterContext(
        cluster="c", runner_id="r", group="default", epoch=epoch, is_leader=True
    )


def _become(epoch: int = 7) -> callback_pb2.OnBecomeLeaderRequest:
    return callback_pb2.OnBecomeLeaderRequest(
        context=_context(epoch), trusted_for=Duration(seconds=3)
    )


def _lose(epoch: int = 7) -> callback_pb2.OnLoseLeadershipRequest:
    return callback_pb2.OnLoseLeadershipRequest(
        context=_context(epoch), reason=callback_pb2.LOSS_REASON_RESIGNED
    )


def _execute(name: str, attempt: int = 1, state: bytes = b"") -> callback_pb2.ExecuteRequest:
    return callback_pb2.ExecuteRequest(
        context=_context(), run_id=1, kind=runs_pb2.RUN_KIND_SCHEDULE, name=name, attempt=attempt,
        idempotency_key="k", state=state,
    )  # fmt: skip


async def test_a_term_is_written_down(lab: Lab, app: callback_pb2_grpc.AppCallbackStub) -> None:
    begun = boottime()
    await app.OnBecomeLeader(_become(), timeout=5)
    await app.Execute(_execute("job"), timeout=5)
    await app.OnLoseLeadership(_lose(), timeout=5)
    [become], [execute], [lose] = (lab.events(kind) for kind in ("become", "execute", "lose"))
    assert begun < become.at < execute.at < lose.at < boottime()
    assert (become.epoch, become.trusted_for) == (7, 3.0)
    assert (execute.fields["name"], execute.fields["idempotency_key"]) == ("job", "k")
    assert lose.fields["reason"] == "RESIGNED"
    events = history.read([lab.history])
    checker.assert_holds(events, kinds=("start", "become", "execute", "lose"))


async def test_an_old_term_is_ignored(lab: Lab, app: callback_pb2_grpc.AppCallbackStub) -> None:
    await app.OnLoseLeadership(_lose(epoch=7), timeout=5)
    await app.OnBecomeLeader(_become(epoch=7), timeout=5)
    assert [event.ignored for event in lab.events("become")] == [True]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await app.Execute(_execute("job"), timeout=5)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    await app.OnBecomeLeader(_become(epoch=8), timeout=5)
    assert [event.ignored for event in lab.events("become")] == [True, False]


async def test_execute_does_as_told(lab: Lab, app: callback_pb2_grpc.AppCallbackStub) -> None:
    told = {"count": "counter", "flaky": "fail|ok:fine", "odd": "status:NOT_FOUND", "*": "decline"}
    Control(execute=told).write(lab.control)
    counted = await app.Execute(_execute("count", state=b'{"count": 41}'), timeout=5)
    assert counted.succeeded.state == b'{"count": 42}'
    assert (await app.Execute(_execute("flaky"), timeout=5)).failed.retryable
    assert (await app.Execute(_execute("flaky", 2), timeout=5)).succeeded.result == b"fine"
    assert (await app.Execute(_execute("other"), timeout=5)).HasField("skipped")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await app.Execute(_execute("odd"), timeout=5)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    await asyncio.to_thread(wait_until, lambda: len(lab.events("execute", "ended")) == 5, 5)
    outcomes = [event.outcome for event in lab.events("execute", "ended")]
    assert outcomes == ["succeeded", "failed", "succeeded", "skipped", "NOT_FOUND"]


async def test_a_cancelled_call_is_written_down(
    lab: Lab, app: callback_pb2_grpc.AppCallbackStub
) -> None:
    Control(execute={"*": "hang"}, become="hang").write(lab.control)
    calls: dict[str, grpc.aio.UnaryUnaryCall[Any, Any]] = {
        "execute": app.Execute(_execute("job")),
        "become": app.OnBecomeLeader(_become()),
    }
    for kind, call in calls.items():
        await asyncio.to_thread(wait_until, lambda k=kind: lab.events(k), 10, kind)
        call.cancel()
    for kind in calls:
        await asyncio.to_thread(wait_until, lambda k=kind: lab.events(k, "ended"), 10, kind)
        assert [event.outcome for event in lab.events(kind, "ended")] == ["cancelled"]


@pytest.mark.parametrize("call", ["OnBecomeLeader", "OnLoseLeadership"])
async def test_an_error_is_an_error(
    lab: Lab, app: callback_pb2_grpc.AppCallbackStub, call: str
) -> None:
    Control(become="error", lose="error").write(lab.control)
    request: Any = _become() if call == "OnBecomeLeader" else _lose()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await getattr(app, call)(request, timeout=5)
    assert refused.value.code() is grpc.StatusCode.INTERNAL


async def test_health_can_change_and_be_absent(lab: Lab, channel: grpc.aio.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest()
    assert (await health.Check(request, timeout=5)).status == 1
    Control(health="not_serving").write(lab.control)
    assert (await health.Check(request, timeout=5)).status == 2
    Control(health="absent").write(lab.control)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await health.Check(request, timeout=5)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_renewals_of_trust_are_written_down(lab: Lab) -> None:
    server = grpc.aio.server()
    leadership_pb2_grpc.add_LeadershipServicer_to_server(Leadership(), server)
    server.add_insecure_port(lab.sidecar)
    await server.start()
    await asyncio.to_thread(wait_until, lambda: lab.events("watch"), 20, "a renewal")
    [renewal] = lab.events("watch")
    assert (renewal.epoch, renewal.is_leader, renewal.trusted_for) == (7, True, 2.5)
    assert renewal.trust_ends_at == pytest.approx(renewal.at + 2.5)
    broken = len(lab.events("watch_broken"))
    await server.stop(grace=None)
    await asyncio.to_thread(
        wait_until, lambda: len(lab.events("watch_broken")) > broken, 5, "the end of the stream"
    )


async def test_it_ends_on_request(lab: Lab, app: callback_pb2_grpc.AppCallbackStub) -> None:
    await app.OnBecomeLeader(_become(), timeout=5)
    lab.app.terminate()
    assert await asyncio.to_thread(lab.app.wait, 5) == 0
