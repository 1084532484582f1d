"""One life at a time: begun under the term, recorded, restarted, ended before the term does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from sidecar import singletons as module
from sidecar.execution.authority import Authority
from sidecar.model.definitions import Singleton
from sidecar.model.errors import Fenced, StoreRefused, StoreUnavailable
from sidecar.model.run import (
    Answer,
    CallFailed,
    Failed,
    Outcome,
    Run,
    RunKind,
    RunRef,
    Succeeded,
)
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import Term
from sidecar.singletons import Singletons, restart_seconds
from tests.lab.execution import a_pipeline, an_authority, recorded_for, under

TERM = Term("default", 1, 7)


@dataclass
class World:
    """A store and an app that keep everything in memory."""

    answer: Callable[[Run], Answer | None] = lambda _: Succeeded()
    problems: list[Exception] = field(default_factory=list)
    started: list[Run] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    reports: list[Completion] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def start_singleton(self, term: Term, name: str) -> Run:
        if self.problems:
            raise self.problems.pop(0)
        ref = RunRef(len(self.started) + 1, 1, term.epoch)
        now = datetime.now(UTC)
        run = Run(ref, RunKind.SINGLETON, name, term.group, now, f"key-{ref.run_id}")
        self.started.append(run)
        self.changed.set()
        return run

    async def execute(self, run: Run) -> Answer:
        self.open.add(run.ref.run_id)
        self.changed.set()
        try:
            answer = self.answer(run)
            if answer is None:
                await asyncio.Event().wait()
                raise AssertionError
            return answer
        finally:
            self.open.discard(run.ref.run_id)

    async def complete(self, term: Term, completions: Sequence[Completion]) -> dict[int, Recorded]:
        self.reports += completions
        self.changed.set()
        return {each.run.ref.run_id: recorded_for(each) for each in completions}

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def _singleton(name: str = "one", group: str = "default") -> Singleton:
    return Singleton(name=name, group=group, restart_after_seconds=0.01)


def _authority(fenced: Callable[[], None] = lambda: None) -> Authority:
    return an_authority(TERM, revoked=fenced)


def _led(world: World, authority: Authority, *declared: Singleton) -> asyncio.Task[None]:
    singletons, pipeline = Singletons(declared, world), a_pipeline(world, world)
    return asyncio.create_task(under(pipeline, authority, singletons.lead))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_each_of_the_group_gets_one_life_and_others_none() -> None:
    world = World(answer=lambda _: None)
    task = _led(world, _authority(), _singleton("a"), _singleton("b"), _singleton("c", "other"))
    await world.until(lambda: len(world.open) == 2)
    assert {run.name for run in world.started} == {"a", "b"}
    await _end(task)
    assert not world.open


async def test_a_handler_that_returns_is_called_again() -> None:
    world = World()
    task = _led(world, _authority(), _singleton())
    await world.until(lambda: len(world.reports) >= 3)
    assert {report.verdict.outcome for report in world.reports} == {Outcome.SUCCEEDED}
    await _end(task)


@pytest.mark.parametrize(
    "answer", [Failed("x", retryable=True), CallFailed("UNAVAILABLE", "gone"), Failed("y")]
)
async def test_a_life_that_fails_ends_as_failed(answer: Answer) -> None:
    """It never waits for another attempt: the next life is a run of its own."""
    world = World(answer=lambda _: answer)
    task = _led(world, _authority(), _singleton())
    await world.until(lambda: bool(world.reports))
    assert world.reports[0].verdict.outcome is Outcome.FAILED
    await _end(task)


async def test_in_a_drain_it_may_return_by_itself() -> None:
    ended = asyncio.Event()
    world = World(answer=lambda _: None)

    async def execute(run: Run) -> Answer:
        world.changed.set()
        await ended.wait()
        return Succeeded(state=b"last")

    world.execute = execute  # type: ignore[method-assign]
    authority = _authority()
    task = _led(world, authority, _singleton())
    await world.until(lambda: bool(world.started))
    authority.draining.set()
    ended.set()
    await asyncio.wait_for(task, 5)
    assert world.reports[0].verdict.state == b"last"
    assert len(world.started) == 1


async def test_in_a_drain_its_call_is_cancelled_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETURN_SECONDS", 0.01)
    world = World(answer=lambda _: None)
    authority = _authority()
    task = _led(world, authority, _singleton())
    await world.until(lambda: bool(world.open))
    authority.draining.set()
    await asyncio.wait_for(task, 5)
    assert not world.open
    assert world.reports[0].verdict.outcome is Outcome.SKIPPED


async def test_a_lost_term_cancels_at_once_and_records_nothing() -> None:
    """G3: the next leader accounts for the life."""
    world = World(answer=lambda _: None)
    task = _led(world, _authority(), _singleton())
    await world.until(lambda: bool(world.open))
    await _end(task)
    assert not world.open
    assert not world.reports


async def test_a_fenced_start_gives_up_the_term() -> None:
    """G3."""
    fenced: list[bool] = []
    world = World(problems=[Fenced("old")])
    await asyncio.wait_for(_led(world, _authority(lambda: fenced.append(True)), _singleton()), 5)
    assert fenced == [True]
    assert not world.started


async def test_postgres_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    world = World(answer=lambda _: None, problems=[StoreUnavailable("away")] * 2)
    task = _led(world, _authority(), _singleton())
    await world.until(lambda: bool(world.open))
    await _end(task)


async def test_a_call_that_breaks_is_a_life_that_failed() -> None:
    """What nobody foresaw, such as a Postgres that refuses to load the state, ends no other."""

    def broken(run: Run) -> Answer | None:
        if run.name == "broken":
            raise StoreRefused("read-only")
        return None

    world = World(answer=broken)
    task = _led(world, _authority(), _singleton("broken"), _singleton("sound"))
    await world.until(lambda: len(world.reports) == 1 and len(world.open) == 1)
    assert world.reports[0].verdict.outcome is Outcome.FAILED
    assert "StoreRefused" in world.reports[0].verdict.error
    assert not task.done()
    await _end(task)


async def test_nothing_is_executed_under_a_term_that_cannot_be_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G1: the answer to a start may come late, as to a process that was frozen."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    world = World(answer=lambda _: None)
    trust = [0.0]
    task = _led(world, an_authority(TERM, lambda: trust[0]), _singleton())
    await world.until(lambda: len(world.started) == 2)
    assert not world.open
    trust[0] = 1.0
    await world.until(lambda: bool(world.open))
    await _end(task)


@pytest.mark.parametrize(
    ("restart_after", "failures", "seconds"),
    [(5, 0, 5), (5, 1, 5), (5, 2, 10), (5, 4, 40), (5, 9, 60), (0, 1, 1), (300, 3, 300)],
)
def test_the_pause_doubles_with_failures_and_has_an_end(
    restart_after: float, failures: int, seconds: float
) -> None:
    assert restart_seconds(restart_after, failures) == seconds
