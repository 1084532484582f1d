"""What a worker asks of the table of jobs, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sidecar.model.run import Run


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Which jobs to claim, and how many of each priority (critical, high, normal, low)."""

    names: frozenset[str]  # handlers that this pod has
    quotas: Sequence[int]
    queues: Sequence[str] = ()  # known from earlier claims
    running: Mapping[str, int] = field(default_factory=dict)  # jobs of this pod, by queue
    since: datetime | None = None  # the oldest due time to look at; None: any
    full: bool = True  # find new queues too, and when the next job is due


@dataclass(frozen=True, slots=True)
class JobClaim:
    """Jobs handed to this worker; `now` is the database's."""

    runs: tuple[Run, ...]
    now: datetime
    next_due_at: datetime | None  # of a full claim
    queues: tuple[str, ...]  # of a full claim: those that have jobs
    newest_due_at: datetime | None  # of the claimed jobs


@dataclass(frozen=True, slots=True)
class Admitted:
    """Parked jobs that may start now, by queue."""

    counts: Mapping[str, int]
    now: datetime
    next_due_at: datetime | None  # of jobs that stay parked
