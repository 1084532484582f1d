"""One run: its states, what the app is given to execute it, and what the app may answer.

    queued ──► running ──► ended (succeeded | failed | skipped)
      ▲          │ ▲
      │          ▼ │ due again
      │        waiting          for a retry, for an app that can take it, or for the next leader
      │
      └── ended, failed: Retry           queued, waiting ──► ended: cancelled, replaced, retired

At least once delivered, at most once completed: every run has a higher attempt, and a verdict
is written only for the attempt that is live.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from sidecar.model.definitions import Retry, State
from sidecar.model.job import JobContext, JobSpec
from sidecar.model.schedule import SkipReason

PAYLOAD_BYTES_MAX = 256 * 1024
CHECKPOINTS_MAX = 1000
CHECKPOINT_BYTES_MAX = 1024 * 1024


class RunKind(StrEnum):
    SINGLETON = "singleton"
    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    JOB = "job"

    @property
    def entity_type(self) -> Literal["singleton", "schedule", "job"]:
        """What owns state and metadata: a trigger acts for its schedule."""
        match self:
            case RunKind.SINGLETON:
                return "singleton"
            case RunKind.JOB:
                return "job"
        return "schedule"


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RunRef:
    """One attempt of one run; accepted only while it is the live one."""

    run_id: int
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    step: str
    value: bytes


@dataclass(frozen=True, slots=True)
class ExecutionMetadata:
    """What is remembered of the executions of one singleton or schedule."""

    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    run_count: int = 0
    last_error: str = ""
    missed_count: int = 0
    average_seconds: float | None = None
    last_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a schedule allows each of its runs."""

    retry: Retry = field(default_factory=Retry)
    timeout_seconds: float = 0.0  # 0: none
    deliverable_seconds: float = 86_400.0  # how long an app may not know the handler
    deliveries_max: int = 20  # whatever their cause


@dataclass(slots=True)
class Run:
    """A claimed run: one attempt, and everything that the app is sent to execute it.

    Not frozen: with so many fields that costs as much as everything else that happens to a run.
    Only the pipeline changes one: it adds the state and the checkpoints.
    """

    ref: RunRef
    kind: RunKind
    name: str
    group: str
    scheduled_at: datetime
    idempotency_key: str
    payload: bytes = field(default=b"", repr=False)
    content_type: str = "application/json"
    limits: Limits = field(default_factory=Limits)
    failures: int = 0  # before this attempt
    deliveries: int = 1  # this one included
    undelivered: int = 0  # attempts before this one that never reached a handler
    queued_seconds: float = 0.0  # age of this life when it was handed out
    late_seconds: float = 0.0  # from when it was due to when it was handed out
    metadata: ExecutionMetadata = field(default_factory=ExecutionMetadata)
    overlap: str = "allow"
    ping_url: str = field(default="", repr=False)
    state_version: int = 1
    state_ttl_seconds: float = 0.0
    state_policy: State | None = None  # None: what the config says of the singleton
    has_state: bool = True  # False: nothing was stored yet when it was handed out
    missed_total: int = 0  # ticks missed so far: the app was told those it did not know of yet
    problem: str = ""  # its row is damaged: it is not delivered, it has failed
    job: JobContext | None = None  # of kind JOB only
    # Loaded right before delivery:
    state: bytes = field(default=b"", repr=False)
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def entity_id(self) -> str:
        """The name of the singleton or schedule; the key of the job."""
        return self.job.key if self.job else self.name

    @property
    def state_key(self) -> str:
        owner = f"{self.name}/{self.job.key}" if self.job else self.name
        return f"{self.kind.entity_type}-state:{owner}"


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: bytes = b""
    state: bytes | None = None
    jobs: tuple[JobSpec, ...] = ()  # submitted in the same commit as the outcome


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Deliver the job again, at a time or after so many seconds; uses no retry."""

    at: datetime | None = None
    after_seconds: float = 0.0
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    code: str = ""
    retryable: bool = False
    retry_after_seconds: float | None = None
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """The app answered `skipped`."""

    reason: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The call ended with a gRPC status; not `delivered`: it surely never reached the app."""

    code: str
    message: str
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class Stopped:
    """The sidecar cancelled the call because the run was cancelled or replaced."""

    reason: SkipReason
    note: str = ""


Answer = Succeeded | Snoozed | Failed | Declined | CallFailed | Stopped


def idempotency_key(cluster: str, kind: RunKind, name: str, run_id: int, tick: datetime) -> str:
    """The same for every attempt of a run, and for no other run; `tick` in UTC."""
    if kind is RunKind.SCHEDULE:
        return f"{cluster}/{name}/{tick.isoformat().removesuffix('+00:00')}Z"
    return f"{cluster}/{name}/run-{run_id}"
