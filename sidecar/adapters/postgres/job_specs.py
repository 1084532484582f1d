"""Jobs to submit, as parameters of `jobs/submit`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import psycopg

from sidecar.adapters.postgres import arrays
from sidecar.model.errors import AlreadyExists
from sidecar.model.job import JobSpec


def submit_parameters(cluster_id: int, jobs: Sequence[JobSpec]) -> dict[str, Any]:
    """One array per column, in the order of the jobs."""
    uniques = [job.unique for job in jobs]
    return {
        "cluster_id": cluster_id,
        "names": arrays.texts(job.name for job in jobs),
        "payloads": arrays.blobs(job.payload for job in jobs),
        "content_types": arrays.texts(job.content_type or "application/json" for job in jobs),
        "queues": arrays.texts(job.queue or "default" for job in jobs),
        "priorities": arrays.plain(int(job.priority) for job in jobs),
        "dues": arrays.instants(job.due_at for job in jobs),
        "delays": arrays.plain(job.delay_seconds for job in jobs),
        "expires": arrays.instants(job.expires_at for job in jobs),
        "keys": arrays.texts(job.key or None for job in jobs),
        "unique_keys": arrays.texts(unique_key(job) for job in jobs),
        "unique_windows": arrays.plain(u.window_seconds if u else None for u in uniques),
        "on_conflicts": arrays.texts(u.on_conflict.value if u else None for u in uniques),
        "attempts": arrays.plain(job.retry.attempts if job.retry else None for job in jobs),
        "retry_initials": arrays.plain(
            job.retry.initial_seconds if job.retry else None for job in jobs
        ),
        "retry_maxes": arrays.plain(job.retry.max_seconds if job.retry else None for job in jobs),
        "timeouts": arrays.plain(job.timeout_seconds or None for job in jobs),
        "labels": arrays.texts(
            json.dumps(dict(job.labels)) if job.labels else None for job in jobs
        ),
        "batches": arrays.texts(job.batch or None for job in jobs),
    }


@contextmanager
def rejected_as_existing() -> Iterator[None]:
    """A job with `on_conflict: reject` found an earlier one."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name != "job_unique_pkey":
            raise
        raise AlreadyExists(error.diag.message_primary or "") from error


def unique_key(job: JobSpec) -> str | None:
    """As baton.job_spec_of makes it; None: any number of equal jobs."""
    if job.unique is None:
        return None
    if job.unique.key:
        return f"k:{job.unique.key}"
    return f"p:{sha256(job.payload).hexdigest()}"
