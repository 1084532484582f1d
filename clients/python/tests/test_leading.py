"""Hooks, epochs and the trust time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import grpc
import pytest
from baton import Baton, ClusterContext, Context, cluster_context, next_id
from baton.testing import FakeSidecar, eventually
from baton.v1 import callback_pb2 as pb
from baton.v1.callback_pb2_grpc import AppCallbackStub
from baton.v1.runs_pb2 import RUN_KIND_SINGLETON, RUN_STATE_WAITING


@pytest.fixture
async def called(app: Baton) -> AsyncIterator[FakeSidecar]:
    """The fake beside `app`, which it calls."""
    async with FakeSidecar.beside(app, attach=False, groups=("default", "reports")) as fake:
        yield fake


@pytest.fixture
async def stub(called: FakeSidecar):
    """Calls the app directly, with messages that the fake would never send."""
    return called._called.stub


def became(epoch: int, seconds: float = 3.0, group: str = "default") -> pb.OnBecomeLeaderRequest:
    context = pb.ClusterContext(group=group, epoch=epoch, is_leader=True)
    return pb.OnBecomeLeaderRequest(context=context, trusted_for=timedelta(seconds=seconds))


def lost(epoch: int, group: str = "default") -> pb.OnLoseLeadershipRequest:
    context = pb.ClusterContext(group=group, epoch=epoch)
    return pb.OnLoseLeadershipRequest(context=context, reason=pb.LOSS_REASON_SHUTDOWN)


async def test_a_term_opens_and_closes_with_its_hooks(app: Baton, sidecar: FakeSidecar):
    """G1: the app leads from OnBecomeLeader to OnLoseLeadership, and its hooks see it so."""
    told: list[tuple[str, int, bool]] = []

    @app.on_become_leader()
    async def become(context: ClusterContext) -> None:
        told.append(("become", context.epoch, app.is_leader()))

    @app.on_lose_leadership()
    async def lose(context: ClusterContext, reason: str) -> None:
        assert cluster_context() == context
        told.append((reason, context.epoch, app.is_leader()))

    assert not app.is_leader()
    epoch = await sidecar.lead()
    assert app.is_leader()
    assert app.epoch() == epoch
    assert not app.is_leader("reports")
    await sidecar.lose()
    assert not app.is_leader()
    assert app.epoch() is None
    assert told == [("become", epoch, True), ("LEASE_LOST", epoch, False)]


async def test_late_messages_of_lost_terms_are_ignored(app: Baton, stub: AppCallbackStub):
    """G1: an OnBecomeLeader not above the last lost epoch opens nothing; the next one does."""
    calls: list[int] = []
    app.on_become_leader()(lambda context: calls.append(context.epoch))
    await stub.OnBecomeLeader(became(7))
    await stub.OnLoseLeadership(lost(7))
    for epoch in (7, 6):
        await stub.OnBecomeLeader(became(epoch))
    assert not app.is_leader()
    await stub.OnLoseLeadership(lost(9))  # of a term never known here
    await stub.OnBecomeLeader(became(8))
    assert not app.is_leader()
    await stub.OnBecomeLeader(became(10))
    assert calls == [7, 10]


async def test_an_old_loss_does_not_end_a_newer_term(app: Baton, stub: AppCallbackStub):
    """A late OnLoseLeadership of an old term leaves the new one alone; epoch 0 ends any."""
    losses: list[int] = []
    app.on_lose_leadership()(lambda context, reason: losses.append(context.epoch))
    await stub.OnBecomeLeader(became(7))
    await stub.OnLoseLeadership(lost(6))
    assert not losses
    await stub.OnLoseLeadership(lost(0))
    await stub.OnLoseLeadership(lost(0))
    assert losses == [7]
    await stub.OnBecomeLeader(became(7))
    assert not app.is_leader()
    await stub.OnBecomeLeader(became(8, seconds=0.2))
    assert losses == [7]


async def test_a_newer_term_ends_the_one_whose_loss_was_never_told(
    app: Baton, stub: AppCallbackStub
):
    """The hooks of two terms never overlap, even if the end of the first got lost."""
    told: list[str] = []
    app.on_become_leader()(lambda context: told.append(f"become {context.epoch}"))
    app.on_lose_leadership()(lambda context, reason: told.append("lose"))
    await stub.OnBecomeLeader(became(7))
    await stub.OnBecomeLeader(became(8))
    assert told == ["become 7", "lose", "become 8"]


async def test_a_lose_hook_sees_its_own_term_however_that_ended():
    """Also one that was told of a newer term or a new sidecar only, or that the app ends itself."""
    app, told = Baton(), list[ClusterContext]()

    @app.on_lose_leadership()
    async def lose(context: ClusterContext, reason: str) -> None:
        assert cluster_context() == context
        assert await next_id()
        told.append(context)

    async with FakeSidecar.beside(app, attach=False) as sidecar:
        assert sidecar._called is not None
        stub = sidecar._called.stub
        await stub.OnBecomeLeader(became(7))
        await stub.OnBecomeLeader(became(8))
        await stub.OnLoseLeadership(lost(0))
        epoch = await sidecar.lead()
    assert [context.epoch for context in told] == [7, 8, epoch]
    assert told[-1] == ClusterContext("test", "fake-runner", "default", False, epoch)


async def test_an_app_that_stops_as_its_term_is_lost_ends_it_once(app: Baton, sidecar: FakeSidecar):
    """The loss may be told between the decision to stop and its first step."""
    told: list[str] = []
    app.on_lose_leadership()(lambda context, reason: told.append(reason))
    epoch = await sidecar.lead()
    context = ClusterContext("test", "fake-runner", "default", False, epoch)
    leading = app._leading
    assert leading is not None
    await asyncio.gather(leading.end_all(5), leading.lose(context, "RESIGNED", epoch=epoch))
    assert len(told) == 1


async def test_runs_of_other_terms_are_refused(
    app: Baton, called: FakeSidecar, stub: AppCallbackStub
):
    """G1: neither an old term's Execute nor one of a term not yet known is begun."""
    begun: list[int] = []
    app.schedule("report")(lambda context: begun.append(context.epoch))
    epoch = await called.lead()
    for other in (epoch - 1, epoch + 1):
        context = pb.ClusterContext(group="default", epoch=other, is_leader=True)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Execute(pb.ExecuteRequest(context=context, name="report"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await called.execute("report")
    assert begun == [epoch]


async def test_a_term_that_was_refused_is_not_renewed(
    app: Baton, called: FakeSidecar, stub: AppCallbackStub
):
    """G1: after a failed hook the app does not lead, although its sidecar still says so."""

    @app.on_become_leader()
    async def become(context: ClusterContext) -> None:
        raise OSError

    term = called._terms.begin("default", 3.0)
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.OnBecomeLeader(became(term.epoch))
    for _ in range(12):
        assert not app.is_leader()
        await asyncio.sleep(0.1)


async def test_the_earlier_of_the_two_ends_of_trust_counts(app: Baton, stub: AppCallbackStub):
    """G1: a message that was held up does not stretch trust: the boot time reading ends it."""
    request = became(7, seconds=60)
    request.trusted_until_boottime.FromSeconds(1)  # long ago
    await stub.OnBecomeLeader(request)
    assert not app.is_leader()


async def test_a_failing_become_hook_refuses_the_term(app: Baton, sidecar: FakeSidecar):
    """The error reaches the sidecar without its text; the term never counts, and is lost."""
    losses: list[str] = []

    @app.on_become_leader()
    async def become(context: ClusterContext) -> None:
        raise ValueError("password=hunter2")

    app.on_lose_leadership()(lambda context, reason: losses.append(reason))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await sidecar.lead()
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "ValueError" in str(caught.value.details())
    assert "hunter2" not in str(caught.value.details())
    assert not app.is_leader()
    assert losses == ["APP_UNHEALTHY"]


async def test_a_failing_lose_hook_does_not_lock_the_app_out(app: Baton, stub: AppCallbackStub):
    """Its term is not given up, as often as that is asked; but a sidecar may make contact again."""

    @app.on_lose_leadership()
    async def lose(context: ClusterContext, reason: str) -> None:
        raise ValueError("password=hunter2")

    await stub.OnBecomeLeader(became(7))
    for _ in range(2):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.OnLoseLeadership(lost(7))
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert "hunter2" not in str(caught.value.details())
    await stub.OnLoseLeadership(lost(0))


async def test_losing_waits_until_handlers_have_stopped(app: Baton, sidecar: FakeSidecar):
    """G1: OnLoseLeadership is answered, and a successor let in, only after the last act."""
    acts: list[str] = []

    @app.singleton("coordinator")
    async def coordinator(context: Context) -> None:
        try:
            acts.append("begun")
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            acts.append("stopped")

    app.on_lose_leadership()(lambda context, reason: acts.append("hook"))
    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("coordinator", kind=RUN_KIND_SINGLETON))
    await eventually(lambda: acts)
    await sidecar.lose()
    assert acts == ["begun", "stopped", "hook"]
    await task


async def test_plain_functions_see_that_they_are_cancelled(app: Baton, sidecar: FakeSidecar):
    """A thread cannot be interrupted: it is told, and waited for."""
    acts: list[str] = []
    reasons: list[str] = []

    @app.singleton("coordinator")
    def coordinator(context: Context) -> None:
        acts.append("begun")
        while not context.cancelled:
            time.sleep(0.01)
        acts.append(f"stopped in {cluster_context().group}")
        reasons.append(context.cancel_reason)

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("coordinator", kind=RUN_KIND_SINGLETON))
    await eventually(lambda: acts)
    await sidecar.lose()
    assert acts == ["begun", "stopped in default"]
    assert reasons[0] in {"CALL_CANCELLED", "LEASE_LOST"}  # whichever of the two comes first
    await task


async def test_a_plain_function_that_waits_is_cancelled_too(app: Baton, sidecar: FakeSidecar):
    """G1: waiting for something that never comes does not hold up the end of the term."""
    begun: list[str] = []

    @app.schedule("approval")
    def approval(context: Context) -> object:
        begun.append("begun")
        return context.wait(context.deferred("never"))

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("approval"))
    await eventually(lambda: begun)
    await asyncio.wait_for(sidecar.lose(), 5)
    assert (await task).state == RUN_STATE_WAITING


async def test_a_step_that_a_plain_function_waits_for_is_waited_for_too(
    app: Baton, sidecar: FakeSidecar
):
    """G1: a successor is not let in while a step of the old term still acts."""
    acts: list[str] = []

    def charge() -> None:
        acts.append("begun")
        time.sleep(0.3)
        acts.append("charged")

    @app.singleton("coordinator")
    def coordinator(context: Context) -> None:
        context.wait(context.step("charge", charge))

    app.on_lose_leadership()(lambda context, reason: acts.append("hook"))
    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("coordinator", kind=RUN_KIND_SINGLETON))
    await eventually(lambda: acts)
    await sidecar.lose()
    assert acts == ["begun", "charged", "hook"]
    await task


async def test_a_reason_of_a_newer_sidecar_is_no_error(app: Baton, stub: AppCallbackStub):
    """Losing leadership is always acknowledged, whatever the reason is called."""
    reasons: list[str] = []
    app.on_lose_leadership()(lambda context, reason: reasons.append(reason))
    await stub.OnBecomeLeader(became(7))
    request = lost(7)
    request.reason = 99  # type: ignore[assignment]
    await stub.OnLoseLeadership(request)
    assert reasons == ["REASON_99"]


async def test_draining_is_told_to_handlers(app: Baton, sidecar: FakeSidecar):
    """A handler learns from the watch that a hand-over has begun, and may end by itself."""
    begun = asyncio.Event()

    @app.schedule("report")
    async def report(context: Context) -> dict[str, bool]:
        before = context.draining
        begun.set()
        await context.wait_draining()
        return {"before": before, "after": context.draining}

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("report"))
    await asyncio.wait_for(begun.wait(), 20)
    await sidecar.drain()
    assert (await asyncio.wait_for(task, 20)).result == b'{"before":false,"after":true}'
