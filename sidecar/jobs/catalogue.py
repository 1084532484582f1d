"""Jobs, queues, batches and dead letters: any pod shows and changes them.

Guarantees: invalid input is rejected with the name of its field and changes nothing (G11); the
first commit wins between a completion and a cancellation; a request that would change all jobs is
refused.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from sidecar.jobs.submissions import Submissions
from sidecar.jobs.wakeup import Wakeup
from sidecar.jobs.watches import Watches
from sidecar.model.errors import FailedPrecondition, InvalidArgument
from sidecar.model.job import Submitted
from sidecar.model.job_spec import Submission
from sidecar.model.job_views import (
    Batch,
    Cancelled,
    JobFilter,
    JobRecord,
    Queue,
    Selection,
    check_dead,
    check_filter,
    check_job_id,
    check_live,
    check_selection,
)
from sidecar.model.run import RunState
from sidecar.model.validation import check_characters, check_not_empty, check_text

WAIT_SECONDS_MAX = 60.0
_WATCH_SECONDS = 30.0  # a watch reads again after this time, whatever the poll finds


class JobRecords(Protocol):
    async def get(self, job_id: int) -> JobRecord: ...
    async def page(
        self, wanted: JobFilter, *, before: int | None, limit: int, dead: bool = False
    ) -> Sequence[JobRecord]: ...
    async def cancel(self, selection: Selection, cause: str) -> Cancelled: ...
    async def retry(self, job_id: int) -> bool:
        """False if the job does not wait."""

    async def reschedule(self, job_id: int, due_at: datetime) -> bool: ...
    async def stats(self, queue: str) -> Sequence[Queue]: ...
    async def pause_queue(self, queue: str, note: str) -> None: ...
    async def resume_queue(self, queue: str) -> None: ...
    async def batch(self, batch: str) -> Batch: ...
    async def count_dead(self, selection: Selection) -> int: ...
    async def replay(self, selection: Selection) -> int: ...
    async def discard(self, selection: Selection) -> int: ...


class Jobs:
    def __init__(
        self, store: JobRecords, submissions: Submissions, watches: Watches, wakeup: Wakeup
    ) -> None:
        self._store = store
        self._submissions = submissions
        self._watches = watches
        self._wakeup = wakeup

    # ── jobs ────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, call: Submission) -> Sequence[Submitted]:
        return await self._submissions.submit(call)

    async def get(self, job_id: int, *, wait_seconds: float = 0.0) -> JobRecord:
        """The job, once it has ended or after `wait_seconds`."""
        check_job_id(job_id)
        if wait_seconds < 0:
            raise InvalidArgument("wait", "must not be negative")
        now = asyncio.get_running_loop().time
        deadline = now() + min(wait_seconds, WAIT_SECONDS_MAX)
        while True:
            job = await self._store.get(job_id)
            left = deadline - now()
            if job.state is RunState.ENDED or left <= 0:
                return job
            await self._watches.ended(job_id, left)

    async def watch(self, job_id: int) -> AsyncIterator[JobRecord]:
        """The job, then again after each change, until it has ended."""
        check_job_id(job_id)
        shown: JobRecord | None = None
        while True:
            job = await self._store.get(job_id)
            if job != shown:
                yield job
                shown = job
            if job.state is RunState.ENDED or job.version is None:
                return
            await self._watches.changed(job_id, job.version, _WATCH_SECONDS)

    async def page(
        self, wanted: JobFilter, *, before: int | None, limit: int
    ) -> Sequence[JobRecord]:
        """Newest first, those older than `before`."""
        check_filter(wanted)
        return await self._store.page(wanted, before=before, limit=limit)

    async def cancel(self, selection: Selection, note: str) -> Cancelled:
        check_text("note", note)
        check_selection(selection)
        check_live(selection)
        done = await self._store.cancel(selection, f"cancelled: {note}" if note else "cancelled")
        self._changed()
        if done.requested:
            self._wakeup.cancelled()
        await self._submissions.complete_batches(done.batches)
        return done

    async def retry(self, job_id: int) -> JobRecord:
        check_job_id(job_id)
        waited = await self._store.retry(job_id)
        job = await self._store.get(job_id)
        if not waited:
            raise FailedPrecondition(
                f"job {job_id} is {job.outcome or job.state}: only a job that waits for its next"
                " attempt can be retried; a dead letter can be replayed"
            )
        self._changed()
        return job

    async def reschedule(self, job_id: int, due_at: datetime) -> JobRecord:
        check_job_id(job_id)
        moved = await self._store.reschedule(job_id, due_at)
        job = await self._store.get(job_id)
        if not moved:
            raise FailedPrecondition(f"job {job_id} is {job.outcome or job.state}: it has started")
        self._changed()
        return job

    # ── queues and batches ──────────────────────────────────────────────────────────────────────

    async def stats(self, queue: str = "") -> Sequence[Queue]:
        check_characters("queue", queue)
        return await self._store.stats(queue)

    async def pause_queue(self, queue: str, note: str) -> Queue:
        check_not_empty("queue", queue)
        check_characters("queue", queue)
        check_text("note", note)
        await self._store.pause_queue(queue, note)
        return await self._queue(queue)

    async def resume_queue(self, queue: str) -> Queue:
        check_not_empty("queue", queue)
        check_characters("queue", queue)
        await self._store.resume_queue(queue)
        return await self._queue(queue)

    async def batch(self, batch: str) -> Batch:
        check_not_empty("batch", batch)
        check_characters("batch", batch)
        return await self._store.batch(batch)

    # ── dead letters ────────────────────────────────────────────────────────────────────────────

    async def page_of_dead(
        self, wanted: JobFilter, *, before: int | None, limit: int
    ) -> Sequence[JobRecord]:
        check_filter(wanted)
        check_dead(wanted)
        return await self._store.page(wanted, before=before, limit=limit, dead=True)

    async def replay(self, selection: Selection, *, dry_run: bool) -> int:
        """Queue dead letters again; how many."""
        selection = _dead(selection)
        if dry_run:
            return await self._store.count_dead(selection)
        count = await self._store.replay(selection)
        self._changed()
        return count

    async def discard(self, selection: Selection, *, dry_run: bool) -> int:
        """Remove dead letters; how many."""
        selection = _dead(selection)
        if dry_run:
            return await self._store.count_dead(selection)
        return await self._store.discard(selection)

    def _changed(self) -> None:
        self._wakeup.submitted()
        self._watches.look()

    async def _queue(self, queue: str) -> Queue:
        self._wakeup.submitted()
        found = await self._store.stats(queue)
        return found[0] if found else Queue(queue)


def _dead(selection: Selection) -> Selection:
    """Checked. That dead letters have ended and failed restricts nothing."""
    check_dead(selection.filter)
    wanted = replace(selection.filter, state=None, outcome=None)
    selection = replace(selection, filter=wanted)
    check_selection(selection)
    return selection
