"""The tables of jobs for API calls: get, list, cancel, retry, queues, batches, dead letters."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.run_records import event_of
from sidecar.model.errors import DamagedRow, NotFound
from sidecar.model.identity import Identity
from sidecar.model.job import Priority
from sidecar.model.job_queue import QueueSettings
from sidecar.model.job_views import (
    MATCHES_MAX,
    Batch,
    Cancelled,
    JobFilter,
    JobRecord,
    Queue,
    Selection,
    job_idempotency_key,
)
from sidecar.model.run import Outcome, RunState
from sidecar.model.schedule import SkipReason

BULK_SECONDS = 30.0  # ten thousand jobs at once


class PostgresJobCatalogue:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────

    async def get(self, job_id: int) -> JobRecord:
        identity = await self._identity()
        rows = await self._fetch("get", job_id=job_id)
        if not rows:
            raise NotFound(f"there is no job {job_id}, or it was removed")
        return _record(rows[0], identity.cluster)

    async def page(
        self, wanted: JobFilter, *, before: int | None, limit: int, dead: bool = False
    ) -> Sequence[JobRecord]:
        identity = await self._identity()
        parameters = _matching(Selection(filter=wanted), limit=limit, before=before)
        rows = await self._fetch("list_dead" if dead else "list", **parameters)
        return [_record(row, identity.cluster) for row in rows]

    async def versions(self, job_ids: Sequence[int]) -> Mapping[int, str]:
        """The live ones of these jobs, with a value that every write changes."""
        rows = await self._fetch("versions", ids=arrays.plain(job_ids))
        return {row["id"]: row["version"] for row in rows}

    async def cancel(self, selection: Selection, cause: str) -> Cancelled:
        row = (await self._bulk("cancel", **_matching(selection), cause=cause))[0]
        return Cancelled(row["ended"], row["requested"], tuple(row["batches"]))

    async def retry(self, job_id: int) -> bool:
        return bool(await self._fetch("retry", job_id=job_id))

    async def reschedule(self, job_id: int, due_at: datetime) -> bool:
        return bool(await self._fetch("reschedule", job_id=job_id, due_at=due_at))

    # ── queues and batches ──────────────────────────────────────────────────────────────────────

    async def stats(self, queue: str) -> list[Queue]:
        identity = await self._identity()
        rows = await self._fetch("stats", cluster=identity.cluster, queue=queue or None)
        return [Queue(**row) for row in rows]

    async def pause_queue(self, queue: str, note: str) -> None:
        await self._fetch("pause_queue", queue=queue, note=note)

    async def resume_queue(self, queue: str) -> None:
        await self._fetch("resume_queue", queue=queue)

    async def configure_queues(self, queues: Sequence[QueueSettings]) -> int:
        """Store the limits of the configuration; how many queues have changed."""
        retries = [queue.retry for queue in queues]
        rows = await self._fetch(
            "configure_queues",
            names=arrays.texts(queue.name for queue in queues),
            max_running=arrays.plain(queue.max_running for queue in queues),
            cluster_max_running=arrays.plain(queue.cluster_max_running for queue in queues),
            per_key=arrays.plain(queue.per_key for queue in queues),
            rates=arrays.plain(queue.rate for queue in queues),
            attempts=arrays.plain(retry.attempts for retry in retries),
            retry_initials=arrays.plain(retry.initial_seconds for retry in retries),
            retry_maxes=arrays.plain(retry.max_seconds for retry in retries),
            timeouts=arrays.plain(queue.timeout_seconds or None for queue in queues),
        )
        return len(rows)

    async def batch(self, batch: str) -> Batch:
        rows = await self._fetch("batch", batch=batch)
        if not rows:
            raise NotFound(f"there is no batch {batch!r}, or all of its jobs were removed")
        return Batch(**rows[0])

    # ── dead letters ────────────────────────────────────────────────────────────────────────────

    async def count_dead(self, selection: Selection) -> int:
        return int((await self._bulk("count_dead", **_matching(selection)))[0]["count"])

    async def replay(self, selection: Selection) -> int:
        return int((await self._bulk("replay", **_matching(selection)))[0]["count"])

    async def discard(self, selection: Selection) -> int:
        return int((await self._bulk("discard", **_matching(selection)))[0]["count"])

    async def _fetch(self, query: str, **parameters: Any) -> list[Row]:
        parameters["cluster_id"] = (await self._identity()).cluster_id
        return await self._database.fetch(f"job_catalogue/{query}", parameters)

    async def _bulk(self, query: str, **parameters: Any) -> list[Row]:
        parameters["cluster_id"] = (await self._identity()).cluster_id
        return await self._database.fetch(
            f"job_catalogue/{query}", parameters, seconds=BULK_SECONDS
        )


def _matching(
    selection: Selection, *, limit: int = MATCHES_MAX, before: int | None = None
) -> dict[str, Any]:
    wanted = selection.filter
    return {
        "ids": arrays.plain(selection.job_ids) if selection.job_ids else None,
        "before": before,
        "limit": limit,
        "queue": wanted.queue or None,
        "name": wanted.name or None,
        "state": wanted.state,
        "outcome": wanted.outcome,
        "key": wanted.key or None,
        "labels": json.dumps(dict(wanted.labels)) if wanted.labels else None,
        "since": wanted.since,
        "until": wanted.until,
        "batch": wanted.batch or None,
        "error_contains": wanted.error_contains or None,
    }


def _record(row: Row, cluster: str) -> JobRecord:
    try:
        return _read(row, cluster)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedRow(f"job {row['id']} is damaged in the database: {error}") from None


def _read(row: Row, cluster: str) -> JobRecord:
    return JobRecord(
        job_id=row["id"],
        name=row["name"],
        queue=row["queue"],
        priority=Priority(row["priority"]),
        state=RunState(row["state"]),
        attempt=max(0, row["attempt"]),
        failures=max(0, row["failures"]),
        rescues=max(0, row["rescues"]),
        created_at=row["created_at"],
        due_at=row["due_at"],
        idempotency_key=job_idempotency_key(cluster, row["name"], row["id"]),
        key=row["key"] or "",
        labels={str(key): str(value) for key, value in (row["labels"] or {}).items()},
        batch=row["batch"] or "",
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=SkipReason(row["reason"]) if row["reason"] else None,
        expires_at=row["expires_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        runner_id=row["runner_id"],
        progress=row["progress"] or 0.0,
        progress_message=row["progress_message"] or "",
        error=row["error"] or "",
        content_type=row["content_type"] or "",
        payload=bytes(row["payload"] or b""),
        result=bytes(row["result"] or b""),
        history=tuple(event_of(event) for event in row["history"]),
        cancel_requested=row["cancelling"],
        blocked_by=row["blocked_by"],
        version=row["version"],
    )
