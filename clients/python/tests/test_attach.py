"""The work stream: hello, runs, leadership, health checks, and what happens when it breaks."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest
from baton import Baton, ClusterContext, Context, LimitExceeded, Unavailable, cluster_context
from baton.testing import FakeSidecar, eventually
from baton.v1 import callback_pb2, stream_pb2
from baton.v1 import runs_pb2 as pb


@pytest.fixture
async def sidecar(app: Baton) -> AsyncIterator[FakeSidecar]:
    """The fake, to which `app` attaches."""
    async with FakeSidecar.beside(app, groups=("default", "reports")) as fake:
        yield fake


async def test_hello_says_who_attaches_and_what_it_can_do():
    """Client, process, capacity, and the handlers of each kind."""
    app = Baton(revision=7)

    @app.schedule("report")
    @app.job("send-mail")
    @app.singleton("coordinator")
    async def handler(context: Context) -> None: ...

    async with FakeSidecar.beside(app) as sidecar:
        (hello,) = sidecar.attached()
        assert re.fullmatch(r"baton-python/[\d.]+", hello.client)
        assert hello.process_id == str(os.getpid())
        assert (hello.capacity, hello.revision) == (1500, 7)
        assert [*hello.schedules, *hello.jobs] == ["report", "send-mail"]
        assert [*hello.singletons] == ["coordinator"]


async def test_plain_functions_lower_the_capacity_and_the_user_decides():
    """A thread costs more than a coroutine; a singleton is not counted."""
    for app, capacity in ((Baton(), 64), (Baton(capacity=3), 3)):
        app.job("resize")(lambda context: None)
        async with FakeSidecar.beside(app) as sidecar:
            assert sidecar.attached()[0].capacity == capacity
    app = Baton()
    app.singleton("coordinator")(lambda context: None)
    async with FakeSidecar.beside(app) as sidecar:
        assert sidecar.attached()[0].capacity == 1500
    with pytest.raises(ValueError, match="capacity"):
        Baton(capacity=0)


async def test_many_runs_of_one_message_run_at_once(app: Baton, sidecar: FakeSidecar):
    """Each gets its own answer, and they come back gathered: far fewer messages than runs."""
    open_now, most = 0, 0

    @app.schedule("report")
    async def report(context: Context) -> int:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.05)
        open_now -= 1
        return context.json() * 2

    await sidecar.lead()
    runs = await asyncio.gather(*(sidecar.execute("report", n) for n in range(300)))
    assert [run.result for run in runs] == [str(2 * n).encode() for n in range(300)]
    assert most > 100
    (process,) = sidecar._processes
    assert len([frame for frame in process.frames if frame.answers]) < 30


async def test_the_context_of_a_run_names_the_cluster(app: Baton, sidecar: FakeSidecar):
    """Cluster and runner come with `welcome`, once for all runs."""

    @app.schedule("report")
    async def report(context: Context) -> list[str]:
        assert cluster_context() == context.cluster
        return [context.cluster.cluster, context.cluster.runner_id, context.cluster.group]

    await sidecar.lead()
    assert (await sidecar.execute("report")).result == b'["test","fake-runner","default"]'


async def test_no_watch_is_opened(app: Baton, sidecar: FakeSidecar):
    """Trust comes over the stream: the app leads beyond what it was first given."""
    await sidecar.lead(trusted_seconds=2.0)
    for _ in range(30):
        await asyncio.sleep(0.1)
        assert app.is_leader()
    assert sidecar._leadership.watchers == 0


async def test_groups_are_led_apart(app: Baton, sidecar: FakeSidecar):
    """A hook that takes its time holds up its own group only."""
    release = asyncio.Event()

    @app.on_become_leader("reports")
    async def become(context: ClusterContext) -> None:
        await release.wait()

    slow = asyncio.create_task(sidecar.lead("reports"))
    await sidecar.lead()
    assert app.is_leader()
    assert not slow.done()
    release.set()
    assert await slow == app.epoch("reports")


async def test_losing_stops_the_become_hook(app: Baton, sidecar: FakeSidecar):
    """The sidecar gave up waiting for it: nothing of the term may go on."""
    told: list[str] = []

    @app.on_become_leader()
    async def become(context: ClusterContext) -> None:
        try:
            told.append("begun")
            await asyncio.sleep(60)
        finally:
            told.append("stopped")

    app.on_lose_leadership()(lambda context, reason: told.append(reason))
    lead = asyncio.create_task(sidecar.lead())
    await eventually(lambda: told)
    (process,) = sidecar._processes
    epoch = sidecar._terms.groups["default"].epoch
    context = callback_pb2.ClusterContext(group="default", epoch=epoch)
    reason = callback_pb2.LOSS_REASON_APP_UNHEALTHY
    await process.lose(callback_pb2.OnLoseLeadershipRequest(context=context, reason=reason))
    assert told == ["begun", "stopped", "APP_UNHEALTHY"]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await lead
    assert caught.value.code() is grpc.StatusCode.CANCELLED


async def test_an_attempt_ends_at_its_deadline(app: Baton, sidecar: FakeSidecar):
    """The app cancels it by itself, and says so: it may be tried again."""
    reasons: list[str] = []

    @app.schedule("slow")
    async def slow(context: Context) -> int:
        assert context.deadline is not None
        if context.attempt == 2:
            return 2
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(context.cancel_reason)
        return 1

    await sidecar.lead()
    run = await asyncio.wait_for(sidecar.execute("slow", timeout=0.3, attempts=2), 20)
    assert run.result == b"2"
    assert reasons == ["DEADLINE"]
    assert "DEADLINE_EXCEEDED" in run.history[1].cause


async def test_a_withdrawn_run_is_not_answered(app: Baton, sidecar: FakeSidecar):
    """The sidecar asked for its end: what the handler still says is of no use to anybody."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.schedule("slow")
    async def slow(context: Context) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
        return "too late"

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("slow"))
    await begun.wait()
    await app.runs.cancel((await anext(app.runs.list("slow"))).run_id)
    assert (await task).reason == pb.SKIP_REASON_OPERATOR
    await stopped.wait()
    await asyncio.sleep(0.1)
    assert not any(frame.answers for frame in sidecar._processes[0].frames)


async def test_a_run_that_is_cancelled_before_it_begins_is_forgotten(
    app: Baton, sidecar: FakeSidecar
):
    """A run and its cancellation may come in one message."""
    begun: list[int] = []
    app.schedule("report")(lambda context: begun.append(context.run_id))
    epoch = await sidecar.lead()
    context = callback_pb2.ClusterContext(group="default", epoch=epoch, is_leader=True)
    kind = pb.RUN_KIND_SCHEDULE
    run = callback_pb2.ExecuteRequest(
        context=context, run_id=99, attempt=1, kind=kind, name="report"
    )
    cancel = stream_pb2.RunCancel(run_id=99, attempt=1)
    (process,) = sidecar._processes
    attachment = app._attachment
    assert attachment is not None
    stream = attachment._stream
    assert stream is not None
    stream._handle(stream_pb2.AttachResponse(runs=[run]))
    stream._handle(stream_pb2.AttachResponse(cancels=[cancel]))
    await eventually(lambda: not stream._open)
    assert not begun
    assert not any(frame.answers for frame in process.frames)


async def test_steps_and_heartbeats_go_over_the_stream(app: Baton, sidecar: FakeSidecar):
    """No call of its own for either; they are stored when the handler goes on."""

    @app.schedule("order")
    async def order(context: Context) -> str:
        await context.step("charge", lambda: {"paid": 7})
        await context.heartbeat(0.5, "half way")
        run = await app.runs.get(context.run_id)
        return f"{run.progress} {run.progress_message}"

    await sidecar.lead()
    run = await sidecar.execute("order")
    assert run.result == b'"0.5 half way"'
    frames = sidecar._processes[0].frames
    points = [point for frame in frames for point in frame.checkpoints]
    assert [(point.step, point.value) for point in points] == [("charge", b'{"paid":7}')]
    assert len([beat for frame in frames for beat in frame.heartbeats]) == 1


async def test_steps_that_cannot_be_stored_fail_as_calls_do(app: Baton, sidecar: FakeSidecar):
    """One that is too large at once; one whose stream breaks as unavailable."""
    caught: list[type[Exception]] = []

    @app.schedule("order")
    async def order(context: Context) -> None:
        with pytest.raises(LimitExceeded):
            await context.step("large", lambda: b"x" * (5 << 20))
        sidecar._processes[0].receive = lambda message: None  # type: ignore[method-assign]
        step = asyncio.create_task(context.step("lost", lambda: 1))
        await asyncio.sleep(0.2)
        sidecar.detach()
        try:
            await asyncio.shield(step)
        except asyncio.CancelledError:
            try:
                await step
            except Unavailable as error:
                caught.append(type(error))
            raise

    await sidecar.lead()
    await sidecar.execute("order")
    await eventually(lambda: caught == [Unavailable])


async def test_an_answer_that_is_too_large_fails_the_run(app: Baton, sidecar: FakeSidecar):
    """It says so, instead of breaking the stream for everybody."""
    app.schedule("report")(lambda context: b"x" * (5 << 20))
    app.schedule("small")(lambda context: None)
    await sidecar.lead()
    run = await sidecar.execute("report", attempts=2)
    assert (run.outcome, run.attempt) == (pb.OUTCOME_FAILED, 1)
    assert "more than the 4194304 that the sidecar reads" in run.error
    assert (await sidecar.execute("small")).outcome == pb.OUTCOME_SUCCEEDED


async def test_health_checks_are_answered(app: Baton, sidecar: FakeSidecar):
    """Also while a handler takes its time."""

    @app.schedule("slow")
    async def slow(context: Context) -> None:
        await asyncio.sleep(2.5)

    await sidecar.lead()
    await sidecar.execute("slow")
    pongs = sidecar._processes[0].pongs
    assert pongs == sorted(pongs)
    assert len(pongs) >= 2
