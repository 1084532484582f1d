"""What `queries/schedules/*.sql` and `queries/heartbeats/*.sql` do to the tables. Each method is
one statement, or one transaction.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.errors import Fenced
from sidecar.model.health import Vitals, VitalsReading
from sidecar.model.run import Outcome, RunKind, RunState
from sidecar.model.schedule import SkipReason, TickPlan, timing_of
from sidecar.model.stored_schedule import (
    Change,
    ClaimedTicks,
    DueTicks,
    StoredSchedule,
    created,
)
from sidecar.model.term import Term
from tests.simulation.tables import CLUSTER, Execution, RunRow, Segment, Tables


class ScheduleStatements:
    """`groups` maps names to ids."""

    def __init__(self, tables: Tables, groups: dict[str, int], singletons: list[Singleton]) -> None:
        self._db = tables
        self._db.groups = groups
        self._singletons = singletons

    def _group(self, stored: StoredSchedule) -> int:
        return self._db.group_id(stored)

    # ── ticks ───────────────────────────────────────────────────────────────────────────────────

    def upcoming(
        self, term: Term, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        now = self._db.now
        horizon = now + timedelta(seconds=horizon_seconds)
        found = [
            (s.next_due_at, s.id, s)
            for s in self._db.schedules.values()
            if self._group(s) == term.group_id and s.retired_at is None
            if s.next_due_at and s.next_due_at <= horizon
        ]
        return now, [s for _, _, s in sorted(found, key=lambda f: f[:2])[:limit]]

    def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        self._fence(term)
        now = self._db.now
        moved: set[int] = set()
        made: Counter[SkipReason | None] = Counter()
        for ticks in due:
            stored = self._db.schedules[ticks.before.id]
            if self._group(stored) == term.group_id and self.is_ready(stored, ticks, now):
                made += self.give_birth(stored, ticks)
                self.move_on(stored, ticks)
                moved.add(stored.id)
        if moved:
            self._db.auditor.written(term.group_id, term.epoch)
        skipped = tuple((reason, count) for reason, count in made.items() if reason)
        return ClaimedTicks(now, frozenset(moved), skipped, made[None])

    def is_ready(self, stored: StoredSchedule, ticks: DueTicks, now: datetime) -> bool:
        return self.is_unchanged(stored, ticks) and ticks.due_at <= now

    def is_unchanged(self, stored: StoredSchedule, ticks: DueTicks) -> bool:
        before = ticks.before
        unchanged = (stored.version, stored.watermark) == (before.version, before.watermark)
        return unchanged and stored.retired_at is None

    def give_birth(self, stored: StoredSchedule, ticks: DueTicks) -> Counter[SkipReason | None]:
        made: Counter[SkipReason | None] = Counter()
        for step, starts in zip(ticks.steps, ticks.starts, strict=True):
            if not self.has_tick(stored.name, step.first):
                self._insert(stored, step, starts)
                made[step.reason] += step.count if step.reason else 1
        return made

    def has_tick(self, name: str, tick: datetime) -> bool:
        return self._db.has_tick(name, tick)

    def move_on(self, stored: StoredSchedule, ticks: DueTicks) -> None:
        after = ticks.after
        self._db.put_schedule(
            replace(
                stored,
                watermark=after.watermark,
                next_tick=after.next_tick,
                next_due_at=after.next_due_at,
            )
        )

    def _insert(
        self, stored: StoredSchedule, step: TickPlan, due_at: datetime, **fields: object
    ) -> RunRow:
        now = self._db.now
        run = RunRow(
            self._db.next_id(),
            self._group(stored),
            RunKind.SCHEDULE,
            stored.name,
            stored.id,
            step.first,
            RunState.ENDED if step.reason else RunState.QUEUED,
            due_at,
            now,
            tick_last=step.last if step.count > 1 else None,
            tick_count=step.count,
            overlap=stored.definition.overlap,
            outcome=Outcome.SKIPPED if step.reason else None,
            reason=step.reason,
            finished_at=now if step.reason else None,
        )
        run = replace(run, **fields)  # type: ignore[arg-type]
        self._db.put_run(run)
        return run

    def _fence(self, term: Term) -> None:
        if not self._db.stands(term):
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")

    # ── operators ───────────────────────────────────────────────────────────────────────────────

    def create(self, definition: Schedule) -> None:
        now = self._db.now
        stored = created(definition, "api", CLUSTER, now).after
        number = len(self._db.schedules) + 1
        self._db.put_schedule(replace(stored, id=number, version=1, counted_from=now))
        self._db.segments[number] = (Segment(timing_of(definition, CLUSTER), stored.watermark),)

    def get(self, name: str) -> StoredSchedule:
        return self._db.schedule(name)

    def change(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Change | None]
    ) -> None:
        now, stored = self._db.now, self._db.schedule(name)
        change = decide(stored, now)
        if change is None:
            return
        if change.skipped and not self.has_tick(name, change.skipped.first):
            self._insert(change.after, change.skipped, change.skipped.first, overlap="allow")
        after = replace(change.after, version=stored.version + 1)
        if change.recount:
            after = replace(after, counted_from=now)
        self._db.put_schedule(after)
        self._move_runs(after)
        self._turn_page(after)

    def _move_runs(self, after: StoredSchedule) -> None:
        """What has not begun, or waits, goes to the group of its schedule, and overlaps as it."""
        group_id, overlap = self._group(after), after.definition.overlap
        for run in self._db.live(None, RunState.QUEUED, RunState.WAITING):
            if run.schedule_id == after.id and (run.group_id, run.overlap) != (group_id, overlap):
                self._db.put_run(replace(run, group_id=group_id, overlap=overlap))

    def _turn_page(self, after: StoredSchedule) -> None:
        timing = timing_of(after.definition, CLUSTER)
        *older, last = self._db.segments[after.id]
        if timing != last.timing:
            ended = replace(last, until=after.watermark)
            segments = (*older, ended, Segment(timing, after.watermark))
            self._db.put(self._db.segments, after.id, segments)

    def trigger(self, name: str) -> int:
        stored, now = self._db.schedule(name), self._db.now
        step = TickPlan(now, now, 1, None)
        return self._insert(stored, step, now, kind=RunKind.TRIGGER).id

    def backfill(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Sequence[datetime]]
    ) -> list[int]:
        """Only ticks without a row, not even one that they share."""
        stored, now = self._db.schedule(name), self._db.now
        rows = [r for r in self._db.runs.values() if r.schedule_id == stored.id]
        ticks = [r for r in rows if r.kind is RunKind.SCHEDULE]
        wanted = [
            tick
            for tick in decide(stored, now)
            if not any(r.tick <= tick <= (r.tick_last or r.tick) for r in ticks)
        ]
        return [
            self._insert(stored, TickPlan(tick, tick, 1, None), now, backfill=True).id
            for tick in wanted
        ]

    # ── signs of life ───────────────────────────────────────────────────────────────────────────

    def beat(self, term: Term, older_than_seconds: float) -> bool:
        if not self._db.stands(term):
            return False
        now = self._db.now
        oldest = now - timedelta(seconds=older_than_seconds)
        keys = [("singleton", s.name) for s in self._singletons if s.group == term.group]
        keys += [
            ("schedule", s.name)
            for s in self._db.schedules.values()
            if self._group(s) == term.group_id and s.retired_at is None
        ]
        for key in keys:
            known = self._db.executions.get(key, Execution())
            if not (known.heartbeat_at and oldest <= known.heartbeat_at <= now):
                self._db.auditor.written(term.group_id, term.epoch)
                self._db.put(self._db.executions, key, replace(known, heartbeat_at=now))
        return True

    def vitals(self, groups: Sequence[str]) -> VitalsReading:
        schedules = [
            self.schedule_vitals(s)
            for s in self._db.schedules.values()
            if s.definition.group in groups and s.retired_at is None
        ]
        singletons = [self._singleton_vitals(s) for s in self._singletons if s.group in groups]
        return VitalsReading(self._db.now, (*singletons, *schedules))

    def schedule_vitals(self, stored: StoredSchedule) -> Vitals:
        signs = self._db.executions.get(("schedule", stored.name), Execution())
        return Vitals(
            kind="schedule",
            name=stored.name,
            group=stored.definition.group,
            counted_from=stored.counted_from or self._db.now,
            expected_seconds=(stored.definition.every_seconds or 0.0) if stored.next_tick else 0.0,
            watched=not stored.idle,
            heartbeat_at=signs.heartbeat_at,
            last_run_at=signs.last_run_at,
            last_success_at=signs.last_success_at,
            next_run_at=stored.next_tick if not stored.idle else None,
        )

    def _singleton_vitals(self, singleton: Singleton) -> Vitals:
        signs = self._db.executions.get(("singleton", singleton.name), Execution())
        lives = [r for r in self._db.runs.values() if r.kind is RunKind.SINGLETON]
        born = min((r.tick for r in lives if r.name == singleton.name), default=self._db.now)
        return Vitals(
            kind="singleton",
            name=singleton.name,
            group=singleton.group,
            counted_from=born,
            heartbeat_at=signs.heartbeat_at,
            last_run_at=signs.last_run_at,
            last_success_at=signs.last_success_at,
        )
