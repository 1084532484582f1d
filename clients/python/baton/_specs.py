"""A job as it is submitted, and what the app declares once for all jobs of a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from baton._durations import Span, span
from baton._values import to_bytes
from baton.v1 import job_types_pb2 as pb
from baton.v1.schedules_pb2 import RetryPolicy

_PRIORITIES = {
    "critical": pb.JOB_PRIORITY_CRITICAL,
    "high": pb.JOB_PRIORITY_HIGH,
    "normal": pb.JOB_PRIORITY_NORMAL,
    "low": pb.JOB_PRIORITY_LOW,
}
_PRIORITY_NAMES = {int(number): name for name, number in _PRIORITIES.items()}
_CONFLICTS = {
    "existing": pb.JOB_CONFLICT_EXISTING,
    "replace": pb.JOB_CONFLICT_REPLACE,
    "reject": pb.JOB_CONFLICT_REJECT,
}


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one job of a name and this key: while one is live, or within `window`.

    An empty key means the payload. `on_conflict`: existing, replace or reject.
    """

    key: str = ""
    window: Span | None = None
    on_conflict: str = "existing"

    def __post_init__(self) -> None:
        _choice("on_conflict", self.on_conflict, _CONFLICTS)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What `@app.job` declares: the defaults of every job of that name that this app submits."""

    queue: str = ""
    priority: str = ""
    retry: RetryPolicy | int | None = None
    timeout: Span | None = None

    def __post_init__(self) -> None:
        if self.priority:
            _choice("priority", self.priority, _PRIORITIES)


class SubmitOptions(TypedDict, total=False):
    """What a job has beside its name and payload."""

    queue: str
    priority: str
    key: str
    due_at: datetime | None
    delay: Span | None
    expires_at: datetime | None
    unique: Unique | None
    retry: RetryPolicy | int | None
    timeout: Span | None
    labels: Mapping[str, str]
    batch: str
    content_type: str


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to submit; what is not given is the app's default for the name, else the queue's."""

    name: str
    payload: Any = None
    _: KW_ONLY
    queue: str = ""
    priority: str = ""
    key: str = ""
    due_at: datetime | None = None
    delay: Span | None = None
    expires_at: datetime | None = None
    unique: Unique | None = None
    retry: RetryPolicy | int | None = None
    timeout: Span | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    content_type: str = ""

    def __post_init__(self) -> None:
        if self.priority:
            _choice("priority", self.priority, _PRIORITIES)
        if self.due_at is not None and self.delay is not None:
            raise ValueError("due_at and delay exclude each other")

    def completed(self, defaults: JobOptions | None) -> JobSpec:
        """This job with the app's defaults where it says nothing itself."""
        if defaults is None:
            return self
        missing = {
            option.name: getattr(defaults, option.name)
            for option in fields(JobOptions)
            if getattr(self, option.name) in ("", None)
        }
        return replace(self, **missing)

    def message(self) -> pb.JobSpec:
        """As it is sent."""
        spec = pb.JobSpec(
            name=self.name,
            payload=payload_bytes(self.payload),
            content_type=self.content_type,
            queue=self.queue,
            priority=_PRIORITIES.get(self.priority),
            expires_at=self.expires_at,
            key=self.key,
            retry=retry_policy(self.retry),
            timeout=span(self.timeout),
            labels=self.labels,
            batch=self.batch,
        )
        if self.due_at is not None:
            spec.due_at.FromDatetime(self.due_at)
        if self.delay is not None:
            spec.delay.FromTimedelta(span(self.delay) or timedelta())
        if self.unique is not None:
            spec.unique.CopyFrom(_unique(self.unique))
        return spec


def payload_bytes(payload: Any) -> bytes:
    """The payload as sent; None: empty."""
    return b"" if payload is None else to_bytes(payload)


def priority_name(number: int) -> str:
    """The name of a priority; empty if there is none."""
    return _PRIORITY_NAMES.get(number, "")


def retry_policy(retry: RetryPolicy | int | None) -> RetryPolicy | None:
    """A policy; a number means so many attempts in all."""
    return RetryPolicy(attempts=retry) if isinstance(retry, int) else retry


def _unique(unique: Unique) -> pb.JobUnique:
    return pb.JobUnique(
        key=unique.key,
        window=span(unique.window),
        on_conflict=_CONFLICTS[unique.on_conflict],
    )


def _choice(option: str, value: str, allowed: Mapping[str, object]) -> None:
    if value not in allowed:
        raise ValueError(f"{option}: {value!r} is not one of {', '.join(allowed)}")
