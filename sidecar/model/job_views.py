"""Jobs, queues and batches, as people and programs see them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sidecar.model.errors import InvalidArgument
from sidecar.model.job import Priority
from sidecar.model.job_spec import check_labels
from sidecar.model.run import Outcome, RunState
from sidecar.model.run_records import RunEvent
from sidecar.model.schedule import SkipReason
from sidecar.model.validation import ID_MAX, check_characters

IDS_MAX = 1000
MATCHES_MAX = 10_000


def job_idempotency_key(cluster: str, name: str, job_id: int) -> str:
    """The same for every attempt of a job, and for no other job."""
    return f"{cluster}/{name}/job-{job_id}"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job. `version` changes with every write to a live job and is None once it has ended."""

    job_id: int
    name: str
    queue: str
    priority: Priority
    state: RunState
    attempt: int
    failures: int
    rescues: int
    created_at: datetime
    due_at: datetime
    idempotency_key: str
    key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    outcome: Outcome | None = None
    reason: SkipReason | None = None
    expires_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    runner_id: str = ""
    progress: float = 0.0
    progress_message: str = ""
    error: str = ""
    content_type: str = ""
    payload: bytes = field(default=b"", repr=False)
    result: bytes = field(default=b"", repr=False)
    history: tuple[RunEvent, ...] = ()
    cancel_requested: bool = False
    blocked_by: str = ""
    version: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None or empty: any."""

    queue: str = ""
    name: str = ""
    state: RunState | None = None
    outcome: Outcome | None = None
    key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    batch: str = ""
    error_contains: str = ""

    @property
    def restricts(self) -> bool:
        return self != JobFilter()


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs by their ids, or else all that match."""

    job_ids: tuple[int, ...] = ()
    filter: JobFilter = field(default_factory=JobFilter)


@dataclass(frozen=True, slots=True)
class Cancelled:
    ended: int
    requested: int
    batches: tuple[str, ...] = ()  # of those that ended


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    ready: int = 0
    scheduled: int = 0
    running: int = 0
    dead: int = 0
    oldest_wait_seconds: float | None = None
    ended_last_minute: int = 0
    failed_last_minute: int = 0
    paused: bool = False
    pause_note: str = ""
    max_running: int = 0
    cluster_max_running: int = 0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    total: int
    succeeded: int
    failed: int
    skipped: int
    closed: bool
    complete: bool
    completion_job_id: int


def check_job_id(job_id: int, place: str = "job_id") -> None:
    if not 0 < job_id <= ID_MAX:
        raise InvalidArgument(place, "is not the id of a job")


def check_filter(wanted: JobFilter, place: str = "filter") -> None:
    for name in ("queue", "name", "key", "batch", "error_contains"):
        check_characters(f"{place}.{name}", getattr(wanted, name))
    check_labels(f"{place}.labels", wanted.labels)
    if wanted.since and wanted.until and wanted.since >= wanted.until:
        raise InvalidArgument(f"{place}.until", "must be after since")


def check_selection(selection: Selection) -> None:
    """Either ids or a filter that restricts something: an empty request must not hit all jobs."""
    check_filter(selection.filter)
    if len(selection.job_ids) > IDS_MAX:
        raise InvalidArgument("job_ids", f"has {len(selection.job_ids)} ids; at most {IDS_MAX}")
    for number, job_id in enumerate(selection.job_ids):
        check_job_id(job_id, f"job_ids[{number}]")
    if selection.job_ids and selection.filter.restricts:
        raise InvalidArgument("filter", "give either job_ids or a filter")
    if not selection.job_ids and not selection.filter.restricts:
        raise InvalidArgument("filter", "restricts nothing: give job_ids, or a filter")


def check_live(selection: Selection) -> None:
    if selection.filter.outcome or selection.filter.state is RunState.ENDED:
        raise InvalidArgument("filter", "jobs that have ended cannot be cancelled")
    if selection.filter.error_contains:
        raise InvalidArgument("filter.error_contains", "selects dead letters only")


def check_dead(wanted: JobFilter) -> None:
    if wanted.state not in (None, RunState.ENDED):
        raise InvalidArgument("filter.state", "dead letters have ended")
    if wanted.outcome not in (None, Outcome.FAILED):
        raise InvalidArgument("filter.outcome", "dead letters have failed")
