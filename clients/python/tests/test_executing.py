"""What handlers are given, and what their answers become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from baton import (
    Baton,
    ClusterContextRequired,
    Context,
    Fail,
    Fenced,
    Result,
    Retry,
    Skip,
    cluster_context,
    next_id,
)
from baton.testing import FakeSidecar
from baton.v1 import runs_pb2 as pb


async def test_a_handler_sees_the_whole_request(app: Baton, sidecar: FakeSidecar):
    """Payload, state, identity and memory of the run arrive as they were sent."""
    seen: list[Context] = []

    @app.schedule("report")
    async def report(context: Context) -> Result:
        seen.append(context)
        assert cluster_context() == context.cluster
        return Result({"rows": 3}, state={"count": context.state.json({"count": 0})["count"] + 1})

    epoch = await sidecar.lead()
    first = await sidecar.execute("report", {"day": "monday"})
    await sidecar.execute("report")
    context = seen[0]
    assert first.result == b'{"rows":3}'
    assert sidecar.state("schedule-state:report") == b'{"count":2}'
    assert context.json() == {"day": "monday"}
    assert (context.run_id, context.attempt, context.epoch) == (first.run_id, 1, epoch)
    assert context.idempotency_key == first.idempotency_key
    assert context.scheduled_at.utcoffset() is not None
    assert (context.cluster.entity_type, context.cluster.entity_id) == ("schedule", "report")
    assert seen[1].metadata.run_count == 1
    assert seen[1].state.json() == {"count": 1}
    assert seen[1].json(default={}) == {}


def _raise(error: Exception) -> Callable[[Context], Any]:
    def handler(context: Context) -> Any:
        raise error

    return handler


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


_NOT_JSON = "TypeError: Object of type {} is not JSON serializable"


@pytest.mark.parametrize(
    ("handler", "outcome", "text"),
    [
        (lambda context: None, pb.OUTCOME_SUCCEEDED, ""),
        (lambda context: b"raw", pb.OUTCOME_SUCCEEDED, ""),
        (_raise(Skip("holiday")), pb.OUTCOME_SKIPPED, ""),
        (_raise(Retry("later", after=0.5)), pb.OUTCOME_FAILED, "later"),
        (_raise(Fail("never")), pb.OUTCOME_FAILED, "never"),
        (_raise(ValueError("no such day")), pb.OUTCOME_FAILED, "ValueError: no such day"),
        (_raise(KeyError()), pb.OUTCOME_FAILED, "KeyError"),
        (_raise(_Unprintable()), pb.OUTCOME_FAILED, "_Unprintable"),
        (lambda context: object(), pb.OUTCOME_FAILED, _NOT_JSON.format("object")),
        (_raise(Fail("never", state={"x"})), pb.OUTCOME_FAILED, _NOT_JSON.format("set")),
        (_raise(Fail("no \udcff")), pb.OUTCOME_FAILED, "no ?"),
        (_raise(Fail(OSError("gone"))), pb.OUTCOME_FAILED, "gone"),  # type: ignore[arg-type]
        (_raise(Fail(None)), pb.OUTCOME_FAILED, ""),  # type: ignore[arg-type]
    ],
)
async def test_answers(
    app: Baton, sidecar: FakeSidecar, handler: Callable[[Context], Any], outcome: int, text: str
):
    """Returning and raising become outcomes; type and message of an error are recorded."""
    app.schedule("report")(handler)
    await sidecar.lead()
    run = await sidecar.execute("report")
    assert run.outcome == outcome
    assert run.error == text


async def test_a_long_message_is_cut(app: Baton, sidecar: FakeSidecar):
    """The record holds 4 KiB of it, and no half character."""
    app.schedule("report")(_raise(ValueError("x" + "ü" * 4000)))
    await sidecar.lead()
    run = await sidecar.execute("report")
    assert len(run.error.encode()) in {4095, 4096}
    assert run.error.startswith("ValueError: xü")


async def test_hidden_errors_tell_their_type_only():
    """`hide_errors`: the message may hold secrets, and stays in the log."""
    app = Baton(hide_errors=True)
    app.schedule("report")(_raise(ValueError("password=hunter2")))
    async with FakeSidecar.beside(app) as sidecar:
        await sidecar.lead()
        assert (await sidecar.execute("report")).error == "unhandled ValueError"


async def test_retryable_failures_are_tried_again_and_final_ones_are_not(
    app: Baton, sidecar: FakeSidecar
):
    """Retry and unexpected errors come again with a higher attempt; Fail ends the run."""

    @app.schedule("flaky")
    async def flaky(context: Context) -> int:
        if context.attempt < 3:
            raise Retry("not yet", state={"tried": context.attempt})
        return context.attempt

    @app.schedule("final")
    async def final(context: Context) -> None:
        raise Fail("no", code="NO_STOCK")

    await sidecar.lead()
    assert (await sidecar.execute("flaky", attempts=5)).result == b"3"
    assert sidecar.state("schedule-state:flaky") == b'{"tried":2}'
    assert (await sidecar.execute("final", attempts=5)).attempt == 1


async def test_unknown_handlers_and_unknown_terms_are_undeliverable(
    app: Baton, sidecar: FakeSidecar
):
    """NOT_FOUND for a handler, UNAVAILABLE for a term: neither uses up a retry."""
    app.schedule("report")(lambda context: None)
    await sidecar.lead()
    run = await sidecar.execute("nobody")
    assert (run.state, run.error[:9]) == (pb.RUN_STATE_WAITING, "NOT_FOUND")
    sidecar._terms.groups["default"].epoch += 1
    run = await sidecar.execute("report")
    assert (run.state, run.error[:11]) == (pb.RUN_STATE_WAITING, "UNAVAILABLE")


async def test_a_cancelled_run_cancels_its_handler(app: Baton, sidecar: FakeSidecar):
    """Runs.Cancel reaches the coroutine as a cancellation."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.schedule("slow")
    async def slow(context: Context) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("slow"))
    await begun.wait()
    (run,) = [run async for run in app.runs.list("slow")]
    assert (await app.runs.cancel(run.run_id, "enough")).cancel_requested
    ended = await asyncio.wait_for(task, 20)
    await asyncio.wait_for(stopped.wait(), 20)
    assert (ended.outcome, ended.reason) == (pb.OUTCOME_SKIPPED, pb.SKIP_REASON_OPERATOR)
    assert app.is_leader()


async def test_an_old_attempt_is_fenced(app: Baton, sidecar: FakeSidecar):
    """G3: nothing that an attempt writes after its term is accepted."""
    refused: list[type[Exception]] = []
    begun = asyncio.Event()

    @app.singleton("coordinator")
    async def coordinator(context: Context) -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            for write in (context.put_state(1), context.heartbeat(), context.step("s", int)):
                try:
                    await write
                except Fenced as error:
                    refused.append(type(error))
            raise

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("coordinator", kind=pb.RUN_KIND_SINGLETON))
    await asyncio.wait_for(begun.wait(), 20)
    await sidecar.lose()
    await task
    assert refused == [Fenced, Fenced, Fenced]
    assert sidecar.state("singleton-state:coordinator") is None


async def test_heartbeats_and_state_are_written_while_it_runs(app: Baton, sidecar: FakeSidecar):
    """Progress and owned state are visible before the run ends."""

    @app.singleton("coordinator")
    async def coordinator(context: Context) -> None:
        await context.put_state({"count": 1})
        await context.heartbeat(0.5, "half way")
        run = await app.runs.get(context.run_id)
        assert (run.progress, run.progress_message) == (0.5, "half way")
        entry = await app.state.get("singleton-state:coordinator", strong=True)
        assert entry is not None
        assert entry.json() == context.state.json() == {"count": 1}

    await sidecar.lead()
    run = await sidecar.execute("coordinator", kind=pb.RUN_KIND_SINGLETON)
    assert run.outcome == pb.OUTCOME_SUCCEEDED


async def test_the_cluster_context_reaches_everything_below(app: Baton, sidecar: FakeSidecar):
    """Below a handler it is there, also in other tasks and threads; outside it is required."""

    @app.schedule("report")
    async def report(context: Context) -> list[str]:
        tasks = [asyncio.create_task(asyncio.to_thread(cluster_context)) for _ in range(2)]
        return [(await task).entity_id for task in tasks]

    with pytest.raises(ClusterContextRequired):
        cluster_context()
    with pytest.raises(ClusterContextRequired):
        await next_id()
    await sidecar.lead()
    assert (await sidecar.execute("report")).result == b'["report","report"]'


async def test_names_are_registered_once(app: Baton):
    """A second handler of one name is a mistake, said at once."""
    app.schedule("report")(lambda context: None)
    with pytest.raises(ValueError, match="registered already"):
        app.schedule("report")(lambda context: None)
    app.singleton("report")(lambda context: None)
