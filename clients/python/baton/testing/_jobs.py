"""The service Jobs of the fake."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC

import grpc

from baton.testing._common import Call, accepted, not_found, page, require
from baton.testing._job_book import JobBook, JobRecord
from baton.v1 import jobs_pb2 as pb
from baton.v1 import runs_pb2
from baton.v1.jobs_pb2_grpc import JobsServicer

_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
_INVALID = grpc.StatusCode.INVALID_ARGUMENT
_FIELDS = ("queue", "name", "state", "outcome", "key", "batch")


class FakeJobs(JobsServicer):
    """Answers from the book; `pump` starts what has become due."""

    def __init__(self, book: JobBook, pump: Callable[[], None]) -> None:
        self._book, self._pump = book, pump

    async def Submit(self, request: pb.JobsSubmitRequest, call: Call) -> pb.JobsSubmitResponse:
        allowed = 1 <= len(request.jobs) <= 1000
        await require(call, allowed, _INVALID, "jobs: 1 to 1,000 are allowed")
        for spec in request.jobs:
            await require(call, bool(spec.name), _INVALID, "name: 1 to 255 bytes are allowed")
        jobs = await accepted(call, lambda: self._book.submit(request.jobs, request.request_id))
        if request.batch:
            on_complete = request.on_complete if request.HasField("on_complete") else None
            self._book.close_batch(request.batch, on_complete)
        self._pump()
        return pb.JobsSubmitResponse(jobs=jobs)

    async def Get(self, request: pb.JobsGetRequest, call: Call) -> pb.JobsGetResponse:
        record = await self._known(request.job_id, call)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(request.wait.ToTimedelta().total_seconds()):
                await self._book.until(lambda: not record.is_live)
        return pb.JobsGetResponse(job=record.shown(body=True))

    async def List(self, request: pb.JobsListRequest, call: Call) -> pb.JobsListResponse:
        found = [record.shown(body=False) for record in self._found(request.filter)]
        jobs, token = page(found, request)
        return pb.JobsListResponse(jobs=jobs, next_page_token=token)

    async def Cancel(self, request: pb.JobsCancelRequest, call: Call) -> pb.JobsCancelResponse:
        given = request.filter if request.HasField("filter") else None
        response = pb.JobsCancelResponse()
        for record in await self._named(request.job_ids, given, call):
            if record.record.cancel is not None:
                record.job.cancel_requested = True
                record.record.cancel()
                response.requested += 1
            elif record.is_live:
                operator = runs_pb2.SKIP_REASON_OPERATOR
                outcome = runs_pb2.OUTCOME_SKIPPED
                self._book.end(record, outcome, reason=operator, cause=request.note)
                response.cancelled += 1
        return response

    async def Retry(self, request: pb.JobsRetryRequest, call: Call) -> pb.JobsRetryResponse:
        record = await self._known(request.job_id, call)
        waits = record.job.state == runs_pb2.RUN_STATE_WAITING
        await require(call, waits, _PRECONDITION, "it does not wait for its next attempt")
        self._book.later(record, self._book.clock.now, "retried")
        self._pump()
        return pb.JobsRetryResponse(job=record.shown(body=False))

    async def Reschedule(
        self, request: pb.JobsRescheduleRequest, call: Call
    ) -> pb.JobsRescheduleResponse:
        record = await self._known(request.job_id, call)
        idle = record.is_live and record.job.state != runs_pb2.RUN_STATE_RUNNING
        await require(call, idle, _PRECONDITION, "it runs, or has ended")
        record.job.due_at.CopyFrom(request.due_at)
        self._pump()
        return pb.JobsRescheduleResponse(job=record.shown(body=False))

    async def Watch(
        self, request: pb.JobsWatchRequest, call: Call
    ) -> AsyncIterator[pb.JobsWatchResponse]:
        record, last = await self._known(request.job_id, call), None
        while True:
            changed, job = self._book.changed, record.shown(body=True)
            job.ClearField("history")
            if job != last:
                yield pb.JobsWatchResponse(job=job)
                last = job
            if not record.is_live:
                return
            await changed.wait()

    async def Stats(self, request: pb.JobsStatsRequest, call: Call) -> pb.JobsStatsResponse:
        names = {record.job.queue for record in self._book.jobs.values()} | {*self._book.paused}
        wanted = sorted(name for name in names if request.queue in ("", name))
        return pb.JobsStatsResponse(queues=[self._queue(name) for name in wanted])

    async def PauseQueue(
        self, request: pb.JobsPauseQueueRequest, call: Call
    ) -> pb.JobsPauseQueueResponse:
        self._book.paused[request.queue] = request.note
        return pb.JobsPauseQueueResponse(queue=self._queue(request.queue))

    async def ResumeQueue(
        self, request: pb.JobsResumeQueueRequest, call: Call
    ) -> pb.JobsResumeQueueResponse:
        self._book.paused.pop(request.queue, None)
        self._pump()
        return pb.JobsResumeQueueResponse(queue=self._queue(request.queue))

    async def GetBatch(
        self, request: pb.JobsGetBatchRequest, call: Call
    ) -> pb.JobsGetBatchResponse:
        name, jobs = request.batch, self._book.batch(request.batch)
        if not jobs:
            await not_found(call, f"batch {name}")
        outcomes = [record.job.outcome for record in jobs]
        closed = name in self._book.batches_closed
        return pb.JobsGetBatchResponse(
            total=len(jobs),
            succeeded=outcomes.count(runs_pb2.OUTCOME_SUCCEEDED),
            failed=outcomes.count(runs_pb2.OUTCOME_FAILED),
            skipped=outcomes.count(runs_pb2.OUTCOME_SKIPPED),
            closed=closed,
            complete=closed and not any(record.is_live for record in jobs),
            completion_job_id=self._book.completions.get(name, 0),
        )

    async def ListDead(
        self, request: pb.JobsListDeadRequest, call: Call
    ) -> pb.JobsListDeadResponse:
        dead = [record for record in self._found(request.filter) if self._book.is_dead(record)]
        jobs, token = page([record.shown(body=False) for record in dead], request)
        return pb.JobsListDeadResponse(jobs=jobs, next_page_token=token)

    async def Replay(self, request: pb.JobsReplayRequest, call: Call) -> pb.JobsReplayResponse:
        dead = await self._dead(request, call)
        if not request.dry_run:
            for record in dead:
                record.job.failures = 0
                record.job.outcome = runs_pb2.OUTCOME_UNSPECIFIED
                record.job.ClearField("finished_at")
                record.job.due_at.FromDatetime(self._book.clock.now)
                self._book.move(record, runs_pb2.RUN_STATE_QUEUED, "replayed")
            self._pump()
        return pb.JobsReplayResponse(replayed=len(dead))

    async def Discard(self, request: pb.JobsDiscardRequest, call: Call) -> pb.JobsDiscardResponse:
        dead = await self._dead(request, call)
        if not request.dry_run:
            for record in dead:
                del self._book.jobs[record.job.job_id]
        return pb.JobsDiscardResponse(discarded=len(dead))

    async def _dead(
        self, request: pb.JobsReplayRequest | pb.JobsDiscardRequest, call: Call
    ) -> list[JobRecord]:
        given = request.filter if request.HasField("filter") else None
        named = await self._named(request.job_ids, given, call)
        return [record for record in named if self._book.is_dead(record)]

    async def _named(
        self, job_ids: Sequence[int], given: pb.JobFilter | None, call: Call
    ) -> list[JobRecord]:
        restricts = bool(job_ids) or (given is not None and given != pb.JobFilter())
        await require(call, restricts, _INVALID, "filter: it must restrict something")
        found = [self._book.jobs[number] for number in job_ids if number in self._book.jobs]
        return found + ([*self._found(given)] if given is not None else [])

    def _found(self, given: pb.JobFilter) -> Iterable[JobRecord]:
        return [
            record for record in reversed(self._book.jobs.values()) if _matches(record.job, given)
        ]

    def _queue(self, name: str) -> pb.Queue:
        jobs = [record.job for record in self._book.jobs.values() if record.job.queue == name]
        idle = {runs_pb2.RUN_STATE_QUEUED, runs_pb2.RUN_STATE_WAITING}
        due = [job.due_at.ToDatetime(tzinfo=UTC) for job in jobs if job.state in idle]
        ready = [self._book.clock.now - at for at in due if at <= self._book.clock.now]
        return pb.Queue(
            name=name,
            ready=len(ready),
            scheduled=len(due) - len(ready),
            running=sum(job.state == runs_pb2.RUN_STATE_RUNNING for job in jobs),
            dead=sum(job.outcome == runs_pb2.OUTCOME_FAILED for job in jobs),
            oldest_wait=max(ready, default=None),
            paused=name in self._book.paused,
            pause_note=self._book.paused.get(name, ""),
        )

    async def _known(self, job_id: int, call: Call) -> JobRecord:
        return self._book.jobs.get(job_id) or await not_found(call, f"job {job_id}")


def _matches(job: pb.Job, given: pb.JobFilter) -> bool:
    at = job.created_at.ToDatetime(tzinfo=UTC)
    return (
        all(getattr(given, name) in ("", 0, getattr(job, name)) for name in _FIELDS)
        and given.labels.items() <= dict(job.labels).items()
        and given.error_contains in job.error
        and not (given.HasField("since") and at < given.since.ToDatetime(tzinfo=UTC))
        and not (given.HasField("until") and at >= given.until.ToDatetime(tzinfo=UTC))
    )
