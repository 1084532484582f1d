"""The tables of schedules, runs, checkpoints, state and executions, in memory.

Rows are never changed in place: each write is logged with what it replaced, so that a failover can
lose the last of them. What the judge counts is kept in tables too, and is lost with the rest.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sidecar.model.run import Checkpoint, Outcome, RunKind, RunRef, RunState
from sidecar.model.schedule import SkipReason, Timing
from sidecar.model.stored_schedule import StoredSchedule
from sidecar.model.term import Term

CLUSTER = "sim"
_LOG_MAX = 4000
_NO_ROW = object()


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of `run`."""

    id: int
    group_id: int
    kind: RunKind
    name: str
    schedule_id: int
    tick: datetime
    state: RunState
    due_at: datetime
    queued_at: datetime
    tick_last: datetime | None = None
    tick_count: int = 1
    overlap: str = "allow"
    backfill: bool = False
    outcome: Outcome | None = None
    reason: SkipReason | None = None
    attempt: int = 0
    attempts_free: int = 0
    failures: int = 0
    epoch: int = 0
    cancel_reason: SkipReason | None = None
    attempt_started_at: datetime | None = None
    finished_at: datetime | None = None
    heartbeat_at: datetime | None = None
    lives: int = 1  # one more with each Retry


@dataclass(frozen=True, slots=True)
class Execution:
    """A row of `execution`, as far as health reads it."""

    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    heartbeat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """From when to when a schedule had this timing, by its watermarks; None: it still has."""

    timing: Timing
    after: datetime
    until: datetime | None = None


class Auditor(Protocol):
    """Whoever judges what is committed."""

    def run_changed(self, before: RunRow | None, after: RunRow, now: datetime) -> None: ...
    def schedule_changed(self, before: StoredSchedule, after: StoredSchedule) -> None: ...
    def written(self, group_id: int, epoch: int) -> None: ...
    def accepted(self, run: RunRow, ref: RunRef, state_key: str) -> None: ...


class Tables:
    """`now` is the clock of the database; `stands` is the fence; `vacant` gives the epoch of the
    last term of a group that nobody leads.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        seconds: Callable[[], float],
        stands: Callable[[int, int], bool],
        vacant: Callable[[int], int | None],
        auditor: Auditor,
    ) -> None:
        self.groups: dict[str, int] = {}  # ids by name
        self.schedules: dict[int, StoredSchedule] = {}
        self.segments: dict[int, tuple[Segment, ...]] = {}
        self.runs: dict[int, RunRow] = {}
        self.states: dict[str, bytes] = {}
        self.births: dict[tuple[str, datetime], int] = {}  # rows ever made for a tick
        self.state_writes: dict[str, int] = {}  # how many reports with a state were accepted
        self.checkpoints: dict[int, tuple[Checkpoint, ...]] = {}
        self.executions: dict[tuple[str, str], Execution] = {}
        self.auditor = auditor
        self._now = now
        self._seconds = seconds
        self._stands = stands
        self.vacant = vacant
        self._log: deque[tuple[float, dict[Any, Any], Any, Any]] = deque(maxlen=_LOG_MAX)
        self._live: dict[int, RunRow] = {}
        self._ticks: dict[tuple[str, datetime], int] = {}
        self._last_id = 0

    @property
    def now(self) -> datetime:
        return self._now()

    def stands(self, term: Term) -> bool:
        return self._stands(term.group_id, term.epoch)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def live(self, group_id: int | None, *states: RunState) -> list[RunRow]:
        """The runs of a group, or of all, that have not ended and are in one of these states."""
        found = (r for r in self._live.values() if r.state in states)
        return [r for r in found if group_id in (None, r.group_id)]

    def has_tick(self, name: str, tick: datetime) -> bool:
        """The unique index of (name, tick)."""
        return (name, tick) in self._ticks

    def group_id(self, stored: StoredSchedule) -> int:
        return self.groups[stored.definition.group]

    def schedule(self, name: str) -> StoredSchedule:
        return next(s for s in self.schedules.values() if s.name == name)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        self._log.append((self._seconds(), table, key, table.get(key, _NO_ROW)))
        table[key] = row

    def put_schedule(self, stored: StoredSchedule) -> None:
        before = self.schedules.get(stored.id)
        self.put(self.schedules, stored.id, stored)
        if before:
            self.auditor.schedule_changed(before, stored)

    def put_run(self, run: RunRow) -> None:
        before = self.runs.get(run.id)
        self.put(self.runs, run.id, run)
        if run.state is RunState.ENDED:
            self._live.pop(run.id, None)
        else:
            self._live[run.id] = run
        if before is None and run.kind is RunKind.SCHEDULE:
            self._ticks[run.name, run.tick] = run.id
        self.auditor.run_changed(before, run, self.now)

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def rewind(self, seconds: float) -> None:
        """Forget what was written in the last seconds; ids are given out again."""
        since = self._seconds() - seconds
        while self._log and self._log[-1][0] > since:
            _, table, key, old = self._log.pop()
            if old is _NO_ROW:
                del table[key]
            else:
                table[key] = old
        self._log.clear()
        self._live = {i: r for i, r in self.runs.items() if r.state is not RunState.ENDED}
        self._ticks = {
            (r.name, r.tick): r.id for r in self.runs.values() if r.kind is RunKind.SCHEDULE
        }
        self._last_id = max(self.runs, default=0)
