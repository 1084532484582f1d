"""One job: its states, what is submitted, and what its handler may want to know.

    parked ── admitted by the leader ──▶ ready ── claim ──▶ running ──▶ ended
       ▲  ▲                               ▲  │                │  │       succeeded | skipped | dead
       │  └── its queue has limits: ──────┼──┼── retry, snooze ┘  │
       │                                  └──┼── retry, snooze, rescue, hand-back
       │                                     └──▶ ended: cancelled, expired
     (a key, or a queue with limits)

`parked` and `ready` are shown as QUEUED before the first attempt and as WAITING after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from sidecar.model.definitions import Retry

RESCUES_MAX = 5  # then a job is a dead letter: it may be what kills the pods
FOLLOW_UPS_MAX = 100
SUBMIT_MAX = 1000
DELIVERIES_FREE_MAX = 20  # beyond the attempts that its retry policy allows


class Priority(IntEnum):
    CRITICAL = 1
    HIGH = 2
    NORMAL = 3
    LOW = 4


class JobState(StrEnum):
    """Where a job is. ENDED: succeeded or skipped; DEAD: failed for good."""

    PARKED = "parked"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"
    DEAD = "dead"


# What moves a job from one state to another; the statements are in queries/jobs.
MOVES: Mapping[JobState, frozenset[JobState]] = {
    JobState.PARKED: frozenset({JobState.READY, JobState.ENDED}),
    JobState.READY: frozenset({JobState.RUNNING, JobState.PARKED, JobState.ENDED}),
    JobState.RUNNING: frozenset({JobState.READY, JobState.PARKED, JobState.ENDED, JobState.DEAD}),
    JobState.ENDED: frozenset(),
    JobState.DEAD: frozenset({JobState.PARKED, JobState.READY, JobState.ENDED}),
}


def may_move(before: JobState, after: JobState) -> bool:
    return after in MOVES[before]


class OnConflict(StrEnum):
    EXISTING = "existing"
    REPLACE = "replace"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Unique:
    """`key` empty: the payload. `window_seconds` None: while an earlier job is live."""

    key: str = ""
    window_seconds: float | None = None
    on_conflict: OnConflict = OnConflict.EXISTING


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to submit. None: the default of the queue, else of Baton."""

    name: str
    payload: bytes = field(default=b"", repr=False)
    content_type: str = "application/json"
    queue: str = "default"
    priority: Priority = Priority.NORMAL
    due_at: datetime | None = None
    delay_seconds: float | None = None
    expires_at: datetime | None = None
    key: str = ""
    unique: Unique | None = None
    retry: Retry | None = None
    timeout_seconds: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The id of a submitted job; `duplicate`: an earlier job has its unique key."""

    job_id: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a handler of a job may want to know about it."""

    queue: str
    priority: Priority
    key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    submitted_at: datetime | None = None
    rescues: int = 0
