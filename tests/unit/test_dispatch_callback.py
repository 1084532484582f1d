"""One call into the app: what it is told, and how long it may take."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sidecar.callback import Callback, Invocation
from sidecar.model.errors import StateLoadFailed
from sidecar.model.run import (
    Answer,
    CallFailed,
    Checkpoint,
    Delivery,
    Limits,
    RunKind,
    RunRef,
    Succeeded,
)

RUN = Delivery(
    ref=RunRef(1, 1, 7),
    kind=RunKind.SCHEDULE,
    name="n",
    group="default",
    scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
    idempotency_key="k",
)
STEP = Checkpoint("a", b"1")


class Edge:
    """The app, the state and the checkpoints, all at hand."""

    def __init__(self, *, failing_loads: int = 0, seconds: float = 0.0) -> None:
        self.failing_loads = failing_loads
        self.seconds = seconds
        self.invocations: list[Invocation] = []
        self.checkpoint_reads = 0
        self.cancelled = False

    async def execute(self, invocation: Invocation) -> Answer:
        self.invocations.append(invocation)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return Succeeded()

    async def load(self, delivery: Delivery) -> bytes:
        if self.failing_loads:
            self.failing_loads -= 1
            raise StateLoadFailed("away")
        return b"state"

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        self.checkpoint_reads += 1
        return dict.fromkeys(run_ids, (STEP,))

    def callback(self) -> Callback:
        return Callback(self, self, self)


async def test_a_load_that_fails_is_repeated_and_never_becomes_the_initial_state() -> None:
    edge = Edge(failing_loads=2)
    assert await edge.callback().execute(RUN) == Succeeded()
    assert [invocation.state for invocation in edge.invocations] == [b"state"]


async def test_checkpoints_are_read_where_there_can_be_some() -> None:
    edge = Edge()
    await edge.callback().execute(RUN)
    assert edge.checkpoint_reads == 0
    again = replace(RUN, ref=RunRef(1, 2, 7))
    await edge.callback().execute(again)
    assert edge.invocations[-1].checkpoints == (STEP,)


async def test_an_attempt_ends_at_its_timeout() -> None:
    edge = Edge(seconds=60.0)
    answer = await edge.callback().execute(replace(RUN, limits=Limits(timeout_seconds=0.02)))
    assert isinstance(answer, CallFailed)
    assert answer.code == "DEADLINE_EXCEEDED"
    assert edge.cancelled


async def test_cancelling_it_cancels_the_call() -> None:
    edge = Edge(seconds=60.0)
    task = asyncio.create_task(edge.callback().execute(RUN))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert edge.cancelled


async def test_a_process_that_slept_while_it_read_sends_nothing() -> None:
    """G1: frozen between the claim and the call; when it wakes its term is over."""
    edge, trust = Edge(failing_loads=1), [True]
    callback = Callback(edge, edge, edge, trusted=lambda run: trust[0] and run.ref == RUN.ref)
    task = asyncio.create_task(callback.execute(RUN))
    await asyncio.sleep(0.01)  # in the pause between two loads
    trust[0] = False
    await asyncio.sleep(0.2)
    assert not task.done()
    assert edge.invocations == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
