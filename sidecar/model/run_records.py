"""What is asked of the table of runs and what it answers: claims, completions, records."""

from dataclasses import dataclass, field
from datetime import datetime

from sidecar.model.overlap import Overlap
from sidecar.model.run import (
    Outcome,
    Run,
    RunKind,
    RunRef,
    RunState,
)
from sidecar.model.schedule import SkipReason
from sidecar.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Claim:
    """Runs handed to this runner; `now` is the database's."""

    runs: tuple[Run, ...]
    now: datetime
    next_due_at: datetime | None  # the next run that waits
    contended: bool  # runs are due whose executions must not overlap
    overdue: bool = False  # ticks were left out that grew too old: they are to expire


@dataclass(frozen=True, slots=True)
class Contender:
    """A due run of a schedule whose executions must not overlap."""

    run_id: int
    schedule_id: int
    overlap: Overlap
    begun: bool
    backfill: bool
    running_ids: tuple[int, ...]  # other runs of the schedule
    waiting_ids: tuple[int, ...]
    backfill_ids: tuple[int, ...] = ()  # those of both that were backfilled
    overdue: bool = False  # a tick that grew too old before it was begun: it is to expire


@dataclass(frozen=True, slots=True)
class Cancellation:
    """Somebody asks for the end of a run that is being executed."""

    run_id: int
    attempt: int
    reason: SkipReason
    note: str


@dataclass(frozen=True, slots=True)
class Completion:
    """An attempt that is over, and what is to be recorded for it."""

    run: Run
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written for an attempt: not its verdict if somebody asked for its end."""

    run_id: int
    kind: RunKind
    state: RunState
    outcome: Outcome | None
    reason: SkipReason | None
    seconds: float | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Redelivered:
    """How many runs of a leader that is gone are due again, and which ended instead."""

    count: int
    ended: tuple[Recorded, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEvent:
    at: datetime
    state: RunState
    outcome: Outcome | None
    attempt: int
    epoch: int
    runner_id: str
    cause: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, as people and programs see it."""

    run_id: int
    kind: RunKind
    name: str
    group: str
    scheduled_at: datetime
    idempotency_key: str
    state: RunState
    attempt: int
    created_at: datetime
    outcome: Outcome | None = None
    reason: SkipReason | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str = ""
    progress: float = 0.0
    progress_message: str = ""
    epoch: int = 0
    runner_id: str = ""
    last_scheduled_at: datetime | None = None
    tick_count: int = 1
    next_attempt_at: datetime | None = None
    cancel_requested: bool = False
    result: bytes = field(default=b"", repr=False)
    history: tuple[RunEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; None: any."""

    name: str | None = None
    outcome: Outcome | None = None
    state: RunState | None = None
    kind: RunKind | None = None
    since: datetime | None = None  # recorded at this time or later
    until: datetime | None = None  # recorded before


@dataclass(frozen=True, slots=True)
class Step:
    """A checkpoint that a run wants stored."""

    run: RunRef
    name: str
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredStep:
    """The answer to a checkpoint: stored now, `existing` from before, or over the limits."""

    stored: bool
    existing: bytes | None = None
