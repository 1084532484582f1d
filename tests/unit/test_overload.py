"""More is due than can be run: the loop keeps turning, ticks wait in order, the term is kept."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority
from sidecar.health import DeadMansSwitch, gauges
from sidecar.model.backlog import Backlog
from sidecar.model.definitions import Schedule
from sidecar.model.errors import StoreUnavailable
from sidecar.model.health import JUDGED_AT_ONCE, Stale, Vitals, VitalsReading
from sidecar.model.run import Outcome, RunKind, RunRef, RunState
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.schedule import timing_of
from sidecar.model.stored_schedule import ClaimedTicks, DueTicks, StoredSchedule, placed
from sidecar.model.term import LossReason, Term
from sidecar.model.verdict import Verdict
from sidecar.scheduling import backlog
from sidecar.scheduling.backlog import RUNS_MAX, Backlogs
from sidecar.scheduling.ticker import LATE_SLICE, SLICE, Ticker, _UpcomingSchedules
from sidecar.slices import in_slices
from tests.integration.runs_lab import LocalHints
from tests.lab.execution import NoPeers, an_authority
from tests.unit.test_pipeline import RUN

TERM = Term("default", 1, 7)
MANY = 1_000


class Turns:
    """Counts how often another task may run."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def _beside(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.001)


# ── the ticker ──────────────────────────────────────────────────────────────────────────────────


class LateSchedules:
    """A table of schedules that tick each second, all of them a minute late."""

    def __init__(self, count: int) -> None:
        self.claimed: list[DueTicks] = []
        now = datetime.now(UTC)
        self._stored = {n: _stored(n, now - timedelta(seconds=60)) for n in range(1, count + 1)}

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        return datetime.now(UTC), list(self._stored.values())[:limit]

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        self.claimed += due
        self._stored |= {each.after.id: each.after for each in due}
        moved = frozenset(each.before.id for each in due)
        return ClaimedTicks(datetime.now(UTC), moved, (), queued=len(due))


def _stored(number: int, watermark: datetime) -> StoredSchedule:
    definition = Schedule(name=f"s{number}", every_seconds=1.0)
    stored = StoredSchedule(definition, "api", watermark=watermark, id=number, version=1)
    return placed(stored, timing_of(definition, "test"), watermark)


async def test_catching_up_lets_other_tasks_run() -> None:
    """A thousand late schedules are decided a few at a time: a ping waits for a few only."""
    now, found = await LateSchedules(MANY).upcoming(TERM, horizon_seconds=15, limit=MANY)
    upcoming, turns = _UpcomingSchedules("test"), Turns()
    async with _beside(turns.run):
        await upcoming.replace_all(found)
        assert turns.count >= MANY / SLICE
        turns.count = 0
        assert len(await upcoming.pop_due(now, 2 * MANY)) == MANY
        assert turns.count >= MANY / LATE_SLICE - 1


async def test_ticks_wait_with_their_schedules_while_too_many_runs_wait() -> None:
    """The oldest are claimed first, as soon as runs were started; none is claimed before."""
    store = LateSchedules(10)
    backlogs = Backlogs(Counted(Backlog(RUNS_MAX, 0, 5.0)))
    ticker = Ticker(
        store, LocalHints(), cluster="test", queued=lambda group: None, backlogs=backlogs
    )
    authority = an_authority(TERM)
    async with _beside(lambda: backlogs.watch(authority)):
        await asyncio.sleep(0)
        backlogs.queued("default", RUNS_MAX)
        async with _beside(lambda: ticker.lead(authority)):
            await asyncio.sleep(0.3)
            assert not store.claimed
            backlogs.started("default", RUNS_MAX)
            await _until(lambda: store.claimed)
    assert store.claimed[0].before.id == 1


# ── the backlog ─────────────────────────────────────────────────────────────────────────────────


class Counted:
    """What Postgres says of the backlog."""

    def __init__(self, answer: Backlog) -> None:
        self.answer, self.asked, self.reachable = answer, 0, True

    async def backlog(self, term: Term, *, limit: int) -> Backlog:
        self.asked += 1
        if not self.reachable:
            raise StoreUnavailable("away")
        return self.answer


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "READ_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
async def test_the_backlog_is_visible_while_something_waits_and_costs_nothing_before() -> None:
    store = Counted(Backlog(runs=30, schedules=12, seconds=7.5))
    backlogs = Backlogs(store)
    async with _beside(lambda: backlogs.watch(an_authority(TERM))):
        await asyncio.sleep(0.05)
        assert not store.asked
        backlogs.suspect("default")
        await _until(lambda: backlogs.now("default").size == 42)
        assert _gauges() == (42, 7.5)
        (warning,) = backlogs.warnings()
        assert "group default: 42 runs are due and not started, the oldest for 8 s" in warning
        store.reachable, asked = False, store.asked  # what is known holds on
        await _until(lambda: store.asked > asked + 2)
        assert backlogs.now("default").size == 42
        store.answer, store.reachable = Backlog(), True
        await _until(lambda: not backlogs.now("default").size)
        assert [*backlogs.warnings()] == []
        asked = store.asked
        await asyncio.sleep(0.05)
        assert store.asked == asked
        backlogs.suspect("default")
        store.answer = Backlog(1, 0, 2.0)
        await _until(lambda: backlogs.now("default").size)
    assert _gauges() == (0, 0)  # led elsewhere
    assert [*backlogs.all()] == []


@pytest.mark.usefixtures("quick")
async def test_a_busy_second_is_no_backlog() -> None:
    store = Counted(Backlog(runs=900, schedules=100, seconds=0.4))
    backlogs = Backlogs(store)
    async with _beside(lambda: backlogs.watch(an_authority(TERM))):
        await asyncio.sleep(0)
        backlogs.suspect("default")
        await _until(lambda: store.asked)
        await asyncio.sleep(0.05)
        assert store.asked == 1
        assert backlogs.now("default") == Backlog()


@pytest.mark.usefixtures("quick")
async def test_schedules_that_cannot_be_read_are_no_backlog() -> None:
    """Damaged ones are due for ever; the ticker does not know them and suspects nothing."""
    backlogs = Backlogs(Counted(Backlog(runs=0, schedules=3, seconds=86_400)))
    async with _beside(lambda: backlogs.watch(an_authority(TERM))):
        await asyncio.sleep(0)
        backlogs.suspect("default")
        await _until(lambda: backlogs.now("default").size)
        await _until(lambda: not backlogs.now("default").size)


def _gauges() -> tuple[float, float]:
    value = metrics.REGISTRY.get_sample_value
    labels = {"group": "default"}
    size, seconds = value("baton_run_backlog", labels), value("baton_run_backlog_seconds", labels)
    assert size is not None
    assert seconds is not None
    return size, seconds


# ── the dead man's switch ───────────────────────────────────────────────────────────────────────


class Ready:
    others_ready = True


class ManyVitals:
    """A group of schedules that ran once, and not since."""

    def __init__(self, count: int, success_at: datetime) -> None:
        self._count, self._success_at = count, success_at

    async def read(self, groups: Sequence[str], limit: int = 0) -> VitalsReading:
        now = datetime.now(UTC)
        entities = (
            Vitals(
                "schedule",
                f"s{n}",
                "default",
                counted_from=self._success_at,
                expected_seconds=0.1,
                heartbeat_at=now,
                last_success_at=self._success_at,
            )
            for n in range(self._count)
        )
        return VitalsReading(now, tuple(entities))

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        return True


def _switch(store: ManyVitals, *, overloaded: bool, peers: Ready | NoPeers) -> DeadMansSwitch:
    return DeadMansSwitch(
        store,
        heartbeat_seconds=0.2,
        stale_after_seconds=6.0,  # of which a twelfth is allowed between successes
        app_answers=lambda: True,
        peers=peers,
        clock=monotonic,
        overloaded=lambda group: overloaded,
    )


async def test_judging_thousands_lets_other_tasks_run() -> None:
    store, turns = ManyVitals(20 * JUDGED_AT_ONCE, datetime.now(UTC)), Turns()
    switch = _switch(store, overloaded=False, peers=NoPeers())
    async with _beside(lambda: switch.watch(an_authority(TERM))):
        await _until(lambda: any(switch.entities()))
        async with _beside(turns.run):
            led = switch._led["default"]
            await switch._judge_vitals(led)
        assert turns.count >= 19


@pytest.mark.parametrize("overloaded", [True, False])
async def test_an_overloaded_leader_that_works_keeps_its_term(
    overloaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: another leader could not run more; without a backlog, it may do better."""
    monkeypatch.setattr("sidecar.health.switch.JUDGE_SECONDS", 0.02)
    lost: list[LossReason] = []
    authority = Authority(TERM, lambda: 3.0, lost.append)
    switch = _switch(ManyVitals(3, datetime.now(UTC)), overloaded=overloaded, peers=Ready())

    async def succeed() -> None:
        while True:
            switch.recorded(*_success("another"))
            await asyncio.sleep(0.01)

    async with _beside(lambda: switch.watch(authority)), _beside(succeed):
        await _until(lambda: switch.stale_count == 3)
        if overloaded:
            await asyncio.sleep(1.5)
            assert not lost
        else:
            await _until(lambda: lost)
            assert lost[0] is LossReason.STALE


async def test_an_overloaded_leader_whose_app_is_wedged_steps_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G10: a backlog does not hide that nothing succeeds."""
    monkeypatch.setattr("sidecar.health.switch.JUDGE_SECONDS", 0.02)
    lost: list[LossReason] = []
    switch = _switch(ManyVitals(3, datetime.now(UTC)), overloaded=True, peers=Ready())
    async with _beside(lambda: switch.watch(Authority(TERM, lambda: 3.0, lost.append))):
        await _until(lambda: lost)


async def test_thousands_of_reasons_are_counted_and_not_all_written() -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    switch = _switch(ManyVitals(3000, long_ago), overloaded=True, peers=NoPeers())
    async with _beside(lambda: switch.watch(an_authority(TERM))):
        await _until(lambda: switch.stale_count == 3000)
        assert len(switch.stale(50)) == 50
        assert len(switch.stale()) == 3000


def test_thousands_of_stale_entities_do_not_flood_the_log() -> None:
    now = datetime.now(UTC)
    vitals = Vitals("schedule", "", "default", counted_from=now)
    stale = [Stale(replace(vitals, name=f"s{n}"), "success", now, 5.0) for n in range(3000)]
    with structlog.testing.capture_logs() as lines:
        gauges.report_changes(set(), stale, now)
        gauges.report_changes({each.vitals.key for each in stale}, [], now)
    assert len(lines) == 2 * (gauges.LOGGED_MAX + 1)
    assert {
        key: value for key, value in lines[gauges.LOGGED_MAX].items() if key != "log_level"
    } == {"event": "entities_stale", "stale": 3000, "new": 3000, "recovered": 0}


def _success(name: str) -> tuple[Completion, Recorded]:
    run = replace(RUN, ref=RunRef(1, 1, 7), kind=RunKind.SCHEDULE, name=name, group="default")
    recorded = Recorded(
        1, run.kind, RunState.ENDED, Outcome.SUCCEEDED, None, 0.1, datetime.now(UTC)
    )
    return Completion(run, Verdict(Outcome.SUCCEEDED)), recorded


async def test_a_slice_ends_after_so_many_items() -> None:
    turns, seen = Turns(), []
    async with _beside(turns.run):
        async for item in in_slices(range(100), 10):
            seen.append(item)  # noqa: PERF401 - one at a time is what is tested
    assert seen == list(range(100))
    assert turns.count >= 9
