"""The data types of the demo. Pure: no gRPC, no clock, no terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

REPORT, FLAKY, ORDER_FLOW, COORDINATOR = "report", "flaky", "order-flow", "coordinator"
RECEIPT = "receipt"
DEFAULT, BILLING = "default", "billing"
GROUPS = (BILLING, DEFAULT)
ORDER_STEPS = ("reserve", "charge", "pack", "ship", "notify")


class DemoFailed(Exception):
    """The demo cannot continue; the message says why."""


@dataclass(frozen=True, slots=True)
class GroupLeader:
    """The leader of one group; `pod` is empty while there is none."""

    group: str
    pod: str = ""
    epoch: int = 0
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule and when it is due next."""

    name: str
    group: str
    every: str
    next_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the API returns it; `state`, `outcome` and `reason` in lower case, or empty."""

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
        """Seconds from the scheduled time to the first delivery."""
        started = self.started_at or self.scheduled_at
        return max(0.0, (started - self.scheduled_at).total_seconds())

    @property
    def steps_done(self) -> int:
        """How many steps of an order have a checkpoint."""
        return round(self.progress * len(ORDER_STEPS))

    @property
    def failures(self) -> int:
        """How many attempts are known to have failed."""
        if self.state == "waiting" or self.outcome == "failed":
            return self.attempt
        return max(0, self.attempt - 1)


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs that were submitted, by what became of them."""

    submitted: int = 0
    running: int = 0
    succeeded: int = 0
    rescued: int = 0  # taken back from a pod that died
    pods: tuple[str, ...] = ()  # those that executed them

    @property
    def unfinished(self) -> int:
        return self.submitted - self.succeeded


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the cluster at one time; `runs` has the newest first."""

    at: datetime
    pods: Mapping[str, str] = field(default_factory=dict)  # name -> state
    leaders: Mapping[str, GroupLeader] = field(default_factory=dict)  # group -> leader
    schedules: tuple[Schedule, ...] = ()
    runs: tuple[Run, ...] = ()
    count: int = 0  # of the coordinator
    counted_on: str = ""  # the pod on which it reached that count
    jobs: Jobs = field(default_factory=Jobs)

    def latest(self, name: str) -> Run | None:
        """The newest run of that name."""
        return next((run for run in self.runs if run.name == name), None)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `style`: plain, good, warn, bad or phase (an action of the demo itself)."""

    at: datetime
    style: str
    text: str


@dataclass(frozen=True, slots=True)
class Takeover:
    """One change of leader that the demo caused."""

    cause: str  # "crash" or "hand-over"
    group: str
    old: str
    new: str
    seconds: float
    stalled_seconds: float = 0.0  # the part of `seconds` during which this machine was stalled
