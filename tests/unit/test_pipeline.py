"""One attempt through the pipeline: what the app is sent, when it ends, what is recorded."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authority
from sidecar.execution.pipeline import Executions
from sidecar.execution.slots import Slots
from sidecar.model.errors import StateLoadFailed, StoreRefused
from sidecar.model.run import (
    Answer,
    Checkpoint,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    Stopped,
    Succeeded,
)
from sidecar.model.schedule import SkipReason
from sidecar.model.term import Term
from tests.lab.execution import MemoryCompletions, a_pipeline, an_authority

RUN = Run(
    ref=RunRef(1, 1, 7),
    kind=RunKind.SCHEDULE,
    name="n",
    group="default",
    scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
    idempotency_key="k",
)
STEP = Checkpoint("a", b"1")
TERM = Term("default", 1, 7)


class Edge:
    """The app, the state and the checkpoints."""

    def __init__(self, *, load_errors: Sequence[Exception] = (), seconds: float = 0.0) -> None:
        self.load_errors = list(load_errors)
        self.seconds = seconds
        self.runs: list[Run] = []
        self.called = asyncio.Event()
        self.checkpoint_reads = 0
        self.cancelled = 0
        self.store = MemoryCompletions()
        self.slots = Slots(2)
        self.announced: list[int] = []

    async def execute(self, run: Run) -> Answer:
        self.runs.append(run)
        self.called.set()
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Succeeded()

    def initial(self, run: Run) -> bytes | None:
        return None if run.has_state else b"initial"

    async def load(self, run: Run) -> bytes:
        if self.load_errors:
            raise self.load_errors.pop(0)
        return b"state"

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        self.checkpoint_reads += 1
        return dict.fromkeys(run_ids, (STEP,))

    @asynccontextmanager
    async def opened(self, authority: Authority | None = None) -> AsyncIterator[Executions]:
        pipeline = a_pipeline(
            self,
            self.store,
            loader=self,
            slots=self.slots,
            recorded=lambda completion, _: self.announced.append(completion.run.ref.run_id),
        )
        async with (
            asyncio.timeout(10),
            pipeline.open(authority or an_authority(TERM)) as executions,
        ):
            yield executions

    async def execute_all(self, *runs: Run, authority: Authority | None = None) -> None:
        """Start them, and wait until all are recorded."""
        async with self.opened(authority) as executions:
            self.slots.take(len(runs), asyncio.Event())
            executions.start(runs)
            await executions.finish(10.0)


async def test_a_load_that_fails_is_repeated_and_never_becomes_the_initial_state() -> None:
    edge = Edge(load_errors=[StateLoadFailed("away")] * 2)
    await edge.execute_all(RUN)
    assert [run.state for run in edge.runs] == [b"state"]


async def test_a_load_that_breaks_fails_the_run_and_no_other() -> None:
    edge = Edge(load_errors=[StoreRefused("read-only")])
    await edge.execute_all(RUN, replace(RUN, ref=RunRef(2, 1, 7)))
    errors = {each.run.ref.run_id: each.verdict.error for each in edge.store.completions}
    assert errors == {1: "INTERNAL: error in the sidecar: StoreRefused", 2: ""}


async def test_nothing_is_read_where_nothing_is_stored() -> None:
    edge = Edge(load_errors=[AssertionError()])
    await edge.execute_all(replace(RUN, has_state=False))
    assert [run.state for run in edge.runs] == [b"initial"]


async def test_checkpoints_are_read_where_there_can_be_some() -> None:
    edge = Edge()
    await edge.execute_all(RUN)
    assert edge.checkpoint_reads == 0
    await edge.execute_all(replace(RUN, ref=RunRef(1, 2, 7), has_state=False))
    assert edge.runs[-1].checkpoints == (STEP,)


async def test_an_attempt_ends_at_its_timeout() -> None:
    edge = Edge(seconds=60.0)
    await edge.execute_all(replace(RUN, limits=Limits(timeout_seconds=0.02)))
    (completion,) = edge.store.completions
    assert completion.verdict.error == "DEADLINE_EXCEEDED: no answer within 0.02 s"
    assert edge.cancelled == 1


async def test_the_end_of_the_authority_cancels_the_calls_and_records_nothing() -> None:
    """G3: the next leader delivers them again."""
    edge = Edge(seconds=60.0)
    async with edge.opened() as executions:
        edge.slots.take(2, asyncio.Event())
        executions.start([RUN, replace(RUN, ref=RunRef(2, 1, 7))])
        await edge.called.wait()
    assert edge.cancelled == 2
    assert not edge.store.completions
    assert edge.slots.free == edge.slots.most


async def test_a_process_that_slept_while_it_read_sends_nothing() -> None:
    """G1: frozen between the claim and the call; when it wakes its term is over."""
    trust = [3.0]
    edge = Edge(load_errors=[StateLoadFailed("away")])
    async with edge.opened(an_authority(TERM, lambda: trust[0])) as executions:
        edge.slots.take(1, asyncio.Event())
        executions.start([RUN])
        await asyncio.sleep(0.01)  # in the pause between two loads
        trust[0] = 0.0
        await executions.finish(10.0)
    assert edge.runs == []
    assert not edge.store.completions
    assert edge.slots.free == edge.slots.most


async def test_no_more_calls_are_open_than_there_are_slots() -> None:
    edge = Edge(seconds=0.01)
    await edge.execute_all(*(replace(RUN, ref=RunRef(n, 1, 7)) for n in range(1, 6)))
    assert [run.ref.run_id for run in edge.runs] == [1, 2, 3, 4, 5]
    assert sorted(edge.announced) == [1, 2, 3, 4, 5]


async def test_a_run_that_is_stopped_is_recorded_as_such_wherever_it_is() -> None:
    """Being executed, and still waiting for a slot."""
    edge = Edge(seconds=60.0)
    async with edge.opened() as executions:
        runs = [replace(RUN, ref=RunRef(n, 1, 7)) for n in (1, 2, 3)]
        edge.slots.take(3, asyncio.Event())
        executions.start(runs)
        await edge.called.wait()
        for run in (runs[2], runs[0], runs[1]):
            executions.stop(run.ref, Stopped(SkipReason.OPERATOR, "cancelled"))
        await executions.finish(10.0)
    assert {each.verdict.outcome for each in edge.store.completions} == {Outcome.SKIPPED}
    assert len(edge.store.completions) == 3
    assert len(edge.runs) == 2
    assert edge.cancelled == 2


@pytest.mark.parametrize("kind", [RunKind.SINGLETON, RunKind.SCHEDULE])
async def test_returned_state_is_announced_whatever_the_kind(kind: RunKind) -> None:
    """State.Watch sees it at once, and a cached copy is not served any more."""
    returned: list[str] = []

    class States:
        def returned(self, key: str, state_version: int) -> None:
            returned.append(key)

    class Returning:
        async def execute(self, run: Run) -> Answer:
            return Succeeded(state=b"new")

    announcer = Announcer(states=States(), health=lambda completion, recorded: None)
    pipeline = a_pipeline(Returning(), MemoryCompletions(), announcer=announcer)
    async with asyncio.timeout(10), pipeline.open(an_authority(TERM)) as executions:
        recorded = await executions.execute(replace(RUN, kind=kind))
    assert recorded is not None
    assert recorded.outcome is Outcome.SUCCEEDED
    assert returned == [f"{kind.entity_type}-state:n"]
