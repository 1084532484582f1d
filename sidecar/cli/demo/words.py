"""What the demo knows at one moment, in words of its own: no gRPC, no clock, no terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

REPORT, FLAKY, ORDER_FLOW, COORDINATOR = "report", "flaky", "order-flow", "coordinator"
DEFAULT, BILLING = "default", "billing"
GROUPS = (BILLING, DEFAULT)
ORDER_STEPS = ("reserve", "charge", "pack", "ship", "notify")


class DemoFailed(Exception):
    """The show cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The leadership of one group; `pod` is empty while nobody leads."""

    group: str
    pod: str = ""
    epoch: int = 0
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something runs."""

    name: str
    group: str
    every: str
    next_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One execution as the API tells it; `state`, `outcome`, `reason` in lower case, or empty."""

    run_id: int
    kind: str
    name: str
    scheduled_at: datetime
    state: str
    attempt: int = 0
    outcome: str = ""
    reason: str = ""
    error: str = ""
    pod: str = ""
    epoch: int = 0
    step: str = ""
    progress: float = 0.0
    ticks: int = 1
    last_scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    next_attempt_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.state == "ended"

    @property
    def late_seconds(self) -> float:
        """From the due time to the first delivery."""
        started = self.started_at or self.scheduled_at
        return max(0.0, (started - self.scheduled_at).total_seconds())

    @property
    def steps_done(self) -> int:
        """Of an order: how many of its steps are on record."""
        return round(self.progress * len(ORDER_STEPS))

    @property
    def failures(self) -> int:
        """How many attempts are known to have come to nothing."""
        if self.state == "waiting" or self.outcome == "failed":
            return self.attempt
        return max(0, self.attempt - 1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment; `runs` are the newest first."""

    at: datetime
    pods: Mapping[str, str] = field(default_factory=dict)  # name -> state
    seats: Mapping[str, Seat] = field(default_factory=dict)  # group -> seat
    schedules: tuple[Schedule, ...] = ()
    runs: tuple[Run, ...] = ()
    count: int = 0  # of the coordinator
    counted_on: str = ""  # where it reached that count

    def latest(self, name: str) -> Run | None:
        """The newest run of that name."""
        return next((run for run in self.runs if run.name == name), None)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened. `tone`: plain, good, warn, bad or act (the demo's own doing)."""

    at: datetime
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Takeover:
    """One change of leader that the demo caused."""

    cause: str  # "crash" or "hand-over"
    group: str
    old: str
    new: str
    seconds: float
    stalled_seconds: float = 0.0  # of them: those in which this machine stood still
