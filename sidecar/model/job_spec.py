"""The rules for a job that is submitted, and one call of Submit.

Guarantee: `check_submission` raises InvalidArgument with the name of the first invalid field (G11);
what it accepts can be stored.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any

from sidecar.model.definitions import Retry
from sidecar.model.errors import InvalidArgument
from sidecar.model.job import SUBMIT_MAX, JobSpec, OnConflict, Unique
from sidecar.model.run import PAYLOAD_BYTES_MAX
from sidecar.model.validation import (
    TTL_SECONDS_MAX,
    check_characters,
    check_not_empty,
    check_size,
)

LABELS_MAX = 16
ATTEMPTS_MAX = 1000
DAY_SECONDS = 86_400.0
RETRY_SECONDS_MIN = 0.01
RETRY_SECONDS_MAX = 7 * DAY_SECONDS
TIMEOUT_SECONDS_MAX = 365 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Submission:
    """One call of Submit."""

    jobs: Sequence[JobSpec]
    request_id: str = ""
    on_complete: JobSpec | None = None
    closes: str = ""  # the batch that gets no more jobs

    @property
    def payload_bytes(self) -> int:
        return sum(len(job.payload) for job in self.jobs)

    @property
    def digest(self) -> bytes:
        """Of everything but the request id. A field with its default does not count: releases with
        and without a new field compute the same digest."""
        parts = [_plain(job) for job in self.jobs]
        whole = {
            "jobs": parts,
            "on_complete": self.on_complete and _plain(self.on_complete),
            "closes": self.closes,
        }
        return sha256(json.dumps(whole, sort_keys=True, default=str).encode()).digest()


def _plain(value: Any) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    plain: dict[str, Any] = {}
    for each in fields(value):
        item = getattr(value, each.name)
        if item is None or item == each.default or item == {}:
            continue
        plain[each.name] = item.hex() if isinstance(item, bytes) else item
        if isinstance(item, Unique | Retry):
            plain[each.name] = _plain(item)
    return plain


def check_submission(submission: Submission) -> None:
    if not 1 <= len(submission.jobs) <= SUBMIT_MAX:
        raise InvalidArgument("jobs", f"must be 1 to {SUBMIT_MAX} jobs, not {len(submission.jobs)}")
    check_characters("request_id", submission.request_id)
    check_characters("batch", submission.closes)
    for number, job in enumerate(submission.jobs):
        check_spec(job, f"jobs[{number}]")
    if submission.on_complete is None:
        return
    if not submission.closes:
        raise InvalidArgument("on_complete", "needs `batch`: the batch that it waits for")
    check_spec(submission.on_complete, "on_complete")
    if submission.on_complete.batch == submission.closes:
        raise InvalidArgument("on_complete.batch", "is the batch that it waits for")


def check_spec(job: JobSpec, place: str) -> None:
    check_not_empty(f"{place}.name", job.name)
    check_not_empty(f"{place}.queue", job.queue)
    for name in ("name", "queue", "key", "batch", "content_type"):
        check_characters(f"{place}.{name}", getattr(job, name))
    check_size(f"{place}.payload", job.payload, PAYLOAD_BYTES_MAX)
    _check_times(job, place)
    if job.unique:
        check_characters(f"{place}.unique.key", job.unique.key)
        _check_seconds(f"{place}.unique.window", job.unique.window_seconds, TTL_SECONDS_MAX)
    if job.retry:
        _check_retry(job.retry, f"{place}.retry")
    _check_seconds(f"{place}.timeout", job.timeout_seconds, TIMEOUT_SECONDS_MAX)
    check_labels(f"{place}.labels", job.labels)


def check_labels(place: str, labels: Mapping[str, str]) -> None:
    if len(labels) > LABELS_MAX:
        raise InvalidArgument(place, f"has {len(labels)} labels; at most {LABELS_MAX}")
    for key, value in labels.items():
        check_not_empty(f"{place}: a key", key)
        check_characters(f"{place}: a key", key)
        check_characters(f"{place}: a value", value)


def _check_times(job: JobSpec, place: str) -> None:
    delay = job.delay_seconds
    if delay is not None and not 0 <= delay <= TTL_SECONDS_MAX:
        raise InvalidArgument(f"{place}.delay", "must be 0 to ten years")
    if job.expires_at and job.due_at and job.expires_at <= job.due_at:
        raise InvalidArgument(f"{place}.expires_at", "is not after due_at: it would never start")


def _check_seconds(place: str, seconds: float | None, at_most: float) -> None:
    if seconds is not None and not 0 < seconds <= at_most:
        raise InvalidArgument(
            place, f"must be above zero and at most {at_most / DAY_SECONDS:g} days"
        )


def _check_retry(retry: Retry, place: str) -> None:
    if not 1 <= retry.attempts <= ATTEMPTS_MAX:
        raise InvalidArgument(f"{place}.attempts", f"must be 1 to {ATTEMPTS_MAX}")
    for part, seconds in (("initial", retry.initial_seconds), ("max", retry.max_seconds)):
        if not RETRY_SECONDS_MIN <= seconds <= RETRY_SECONDS_MAX:
            raise InvalidArgument(f"{place}.{part}", "must be between 10 ms and 7 days")
    if retry.initial_seconds > retry.max_seconds:
        raise InvalidArgument(f"{place}.initial", "is longer than retry.max")


def with_replacements(jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """A job that a later one of the same call replaces gets the payload, due time and priority of
    that one: the database compares with jobs of earlier calls only."""
    found = list(jobs)
    first: dict[tuple[str, str | bytes], int] = {}
    for number, job in enumerate(jobs):
        if job.unique is None:
            continue
        earlier = first.setdefault((job.name, job.unique.key or job.payload), number)
        if earlier != number and job.unique.on_conflict is OnConflict.REPLACE:
            found[earlier] = replace(
                found[earlier],
                payload=job.payload,
                content_type=job.content_type,
                due_at=job.due_at,
                delay_seconds=job.delay_seconds,
                priority=job.priority,
            )
    return found
