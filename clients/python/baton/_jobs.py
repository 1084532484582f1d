"""Jobs: submitting, reading, cancelling and replaying them; works on any pod."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from baton._clock import boottime
from baton._connection import CALL_SECONDS, Connection
from baton._durations import Span, span
from baton._enqueue import Enqueue
from baton._paging import pages
from baton._specs import JobOptions, JobSpec, SubmitOptions
from baton.errors import DeadlineExceeded
from baton.v1 import jobs_pb2 as pb
from baton.v1.jobs_pb2_grpc import JobsStub
from baton.v1.runs_pb2 import RUN_STATE_ENDED, Outcome, RunState

_WAIT_SECONDS = 30.0  # per call; the sidecar allows 60


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submitted job; `duplicate`: `id` is that of an earlier one."""

    id: int
    duplicate: bool


class Which(TypedDict, total=False):
    """Which jobs: all conditions hold."""

    queue: str
    name: str
    state: RunState
    outcome: Outcome
    key: str
    labels: Mapping[str, str]
    since: datetime
    until: datetime
    batch: str
    error_contains: str


class Jobs:
    """The jobs of the cluster; `options` are the app's defaults by name."""

    def __init__(self, connection: Connection, options: Mapping[str, JobOptions]) -> None:
        self._connection, self._options = connection, options

    async def submit(
        self,
        name: str,
        payload: Any = None,
        *,
        request_id: str = "",
        **options: Unpack[SubmitOptions],
    ) -> Submitted:
        """Stores a job; durable once this returns. Safe to repeat with the same `request_id`."""
        spec = JobSpec(name, payload, **options)
        return (await self.submit_many([spec], request_id=request_id))[0]

    async def submit_many(
        self,
        jobs: Sequence[JobSpec],
        *,
        request_id: str = "",
        close_batch: str = "",
        on_complete: JobSpec | None = None,
    ) -> list[Submitted]:
        """Stores up to 1,000 jobs, all or none.

        `close_batch` says that no more jobs of that batch will come; `on_complete` is submitted
        when all of them have ended.
        """
        request = pb.JobsSubmitRequest(
            jobs=[self._message(job) for job in jobs],
            request_id=request_id or uuid.uuid4().hex,
            on_complete=None if on_complete is None else self._message(on_complete),
            batch=close_batch,
        )
        response = await self._connection.call(self._stub.Submit, request)
        return [Submitted(job.job_id, job.duplicate) for job in response.jobs]

    def in_transaction(self, cluster: str) -> Enqueue:
        """Submits jobs by SQL on a connection of yours: they exist if its transaction commits."""
        return Enqueue(cluster, self._options)

    async def get(self, job_id: int) -> pb.Job:
        """One job, with payload, result and history."""
        request = pb.JobsGetRequest(job_id=job_id)
        return (await self._connection.call(self._stub.Get, request)).job

    async def wait(self, job_id: int, timeout: Span | None = None) -> pb.Job:
        """The job once it has ended; `DeadlineExceeded` if it has not within `timeout`."""
        limit = span(timeout)
        deadline = None if limit is None else boottime() + limit.total_seconds()
        while True:
            left = _WAIT_SECONDS if deadline is None else max(deadline - boottime(), 0.0)
            seconds = min(left, _WAIT_SECONDS)
            request = pb.JobsGetRequest(job_id=job_id, wait=timedelta(seconds=seconds))
            response = await self._connection.call(
                self._stub.Get, request, timeout=seconds + CALL_SECONDS
            )
            if response.job.state == RUN_STATE_ENDED:
                return response.job
            if deadline is not None and boottime() >= deadline:
                raise DeadlineExceeded(f"job {job_id} has not ended within {timeout}")

    async def cancel(
        self, *job_ids: int, note: str = "", **which: Unpack[Which]
    ) -> pb.JobsCancelResponse:
        """Cancels these jobs, or all live ones that match: how many ended, or were asked to."""
        request = pb.JobsCancelRequest(job_ids=job_ids, filter=_filter(which), note=note)
        return await self._connection.call(self._stub.Cancel, request)

    async def retry(self, job_id: int) -> pb.Job:
        """Makes a job that waits for its next attempt due now."""
        request = pb.JobsRetryRequest(job_id=job_id)
        response = await self._connection.call(self._stub.Retry, request, repeatable=False)
        return response.job

    async def reschedule(self, job_id: int, due_at: datetime) -> pb.Job:
        """Changes when a job that is not running is due."""
        request = pb.JobsRescheduleRequest(job_id=job_id, due_at=due_at)
        return (await self._connection.call(self._stub.Reschedule, request)).job

    async def watch(self, job_id: int) -> AsyncGenerator[pb.Job, None]:
        """The job, now and after every change, until it has ended or the stream breaks."""
        request = pb.JobsWatchRequest(job_id=job_id)
        async with aclosing(self._connection.stream(self._stub.Watch, request)) as stream:
            async for message in stream:
                yield message.job
                if message.job.state == RUN_STATE_ENDED:
                    return

    async def stats(self, queue: str = "") -> list[pb.Queue]:
        """Depth, age and limits of each queue, by name."""
        request = pb.JobsStatsRequest(queue=queue)
        return [*(await self._connection.call(self._stub.Stats, request)).queues]

    async def pause_queue(self, queue: str, note: str = "") -> pb.Queue:
        """Stops starting jobs of a queue, on all pods."""
        request = pb.JobsPauseQueueRequest(queue=queue, note=note)
        return (await self._connection.call(self._stub.PauseQueue, request)).queue

    async def resume_queue(self, queue: str) -> pb.Queue:
        """Starts jobs of a paused queue again."""
        request = pb.JobsResumeQueueRequest(queue=queue)
        return (await self._connection.call(self._stub.ResumeQueue, request)).queue

    async def batch(self, batch: str) -> pb.JobsGetBatchResponse:
        """Counts the jobs of a batch."""
        request = pb.JobsGetBatchRequest(batch=batch)
        return await self._connection.call(self._stub.GetBatch, request)

    async def dead(self, **which: Unpack[Which]) -> AsyncIterator[pb.Job]:
        """Dead letters, newest first, without payloads."""
        request = pb.JobsListDeadRequest(filter=pb.JobFilter(**which))
        async for page in pages(self._connection, self._stub.ListDead, request):
            for job in page.jobs:
                yield job

    async def replay(self, *job_ids: int, dry_run: bool = False, **which: Unpack[Which]) -> int:
        """Queues these dead letters again, or all that match; how many."""
        request = pb.JobsReplayRequest(job_ids=job_ids, filter=_filter(which), dry_run=dry_run)
        response = await self._connection.call(self._stub.Replay, request, repeatable=False)
        return response.replayed

    async def discard(self, *job_ids: int, dry_run: bool = False, **which: Unpack[Which]) -> int:
        """Removes these dead letters, or all that match; how many."""
        request = pb.JobsDiscardRequest(job_ids=job_ids, filter=_filter(which), dry_run=dry_run)
        response = await self._connection.call(self._stub.Discard, request, repeatable=False)
        return response.discarded

    async def list(self, **which: Unpack[Which]) -> AsyncIterator[pb.Job]:
        """Jobs, newest first, without payload, result and history."""
        request = pb.JobsListRequest(filter=pb.JobFilter(**which))
        async for page in pages(self._connection, self._stub.List, request):
            for job in page.jobs:
                yield job

    def _message(self, job: JobSpec) -> Any:
        return job.completed(self._options.get(job.name)).message()

    @property
    def _stub(self) -> JobsStub:
        return self._connection.stub(JobsStub)


def _filter(which: Which) -> pb.JobFilter | None:
    return pb.JobFilter(**which) if which else None
