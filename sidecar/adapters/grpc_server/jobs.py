"""The Jobs service: converts messages; the rules are in `sidecar/jobs/`."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import jobs_pb2_grpc
from sidecar.adapters.app.job_specs import spec_of
from sidecar.adapters.convert import instant_of
from sidecar.adapters.grpc_server.job_messages import (
    filter_of,
    job_message,
    queue_message,
    selection_of,
    wait_of,
)
from sidecar.adapters.grpc_server.paging import checked_size, fitting, position_of, token_of
from sidecar.adapters.grpc_server.runs import position_before
from sidecar.model.errors import InvalidArgument
from sidecar.model.job import Submitted
from sidecar.model.job_spec import Submission
from sidecar.model.job_views import Batch, Cancelled, JobFilter, JobRecord, Queue, Selection
from sidecar.tracing import current_span


class Jobs(Protocol):
    async def submit(self, call: Submission) -> Sequence[Submitted]: ...
    async def get(self, job_id: int, *, wait_seconds: float = 0.0) -> JobRecord: ...
    def watch(self, job_id: int) -> AsyncIterator[JobRecord]: ...
    async def page(
        self, wanted: JobFilter, *, before: int | None, limit: int
    ) -> Sequence[JobRecord]: ...
    async def page_of_dead(
        self, wanted: JobFilter, *, before: int | None, limit: int
    ) -> Sequence[JobRecord]: ...
    async def cancel(self, selection: Selection, note: str) -> Cancelled: ...
    async def retry(self, job_id: int) -> JobRecord: ...
    async def reschedule(self, job_id: int, due_at: datetime) -> JobRecord: ...
    async def stats(self, queue: str = "") -> Sequence[Queue]: ...
    async def pause_queue(self, queue: str, note: str) -> Queue: ...
    async def resume_queue(self, queue: str) -> Queue: ...
    async def batch(self, batch: str) -> Batch: ...
    async def replay(self, selection: Selection, *, dry_run: bool) -> int: ...
    async def discard(self, selection: Selection, *, dry_run: bool) -> int: ...


class JobsService(jobs_pb2_grpc.JobsServicer):
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def Submit(self, request: pb.JobsSubmitRequest, context: Any) -> pb.JobsSubmitResponse:
        has_last = request.HasField("on_complete")
        call = Submission(
            jobs=[spec_of(job, f"jobs[{number}]") for number, job in enumerate(request.jobs)],
            request_id=request.request_id,
            on_complete=spec_of(request.on_complete, "on_complete") if has_last else None,
            closes=request.batch,
        )
        submitted = await self._jobs.submit(call)
        if len(submitted) == 1:
            current_span().link_run(submitted[0].job_id)
        jobs = [pb.SubmittedJob(job_id=job.job_id, duplicate=job.duplicate) for job in submitted]
        return pb.JobsSubmitResponse(jobs=jobs)

    async def Get(self, request: pb.JobsGetRequest, context: Any) -> pb.JobsGetResponse:
        job = await self._jobs.get(request.job_id, wait_seconds=wait_of(request))
        return pb.JobsGetResponse(job=job_message(job))

    async def List(self, request: pb.JobsListRequest, context: Any) -> pb.JobsListResponse:
        jobs, token = await _page("jobs", self._jobs.page, request)
        return pb.JobsListResponse(jobs=jobs, next_page_token=token)

    async def Cancel(self, request: pb.JobsCancelRequest, context: Any) -> pb.JobsCancelResponse:
        done = await self._jobs.cancel(selection_of(request), request.note)
        return pb.JobsCancelResponse(cancelled=done.ended, requested=done.requested)

    async def Retry(self, request: pb.JobsRetryRequest, context: Any) -> pb.JobsRetryResponse:
        return pb.JobsRetryResponse(job=job_message(await self._jobs.retry(request.job_id)))

    async def Reschedule(
        self, request: pb.JobsRescheduleRequest, context: Any
    ) -> pb.JobsRescheduleResponse:
        due_at = instant_of(request, "due_at")
        if due_at is None:
            raise InvalidArgument("due_at", "is required")
        job = await self._jobs.reschedule(request.job_id, due_at)
        return pb.JobsRescheduleResponse(job=job_message(job))

    async def Watch(
        self, request: pb.JobsWatchRequest, context: Any
    ) -> AsyncIterator[pb.JobsWatchResponse]:
        async for job in self._jobs.watch(request.job_id):
            yield pb.JobsWatchResponse(job=job_message(replace(job, history=())))

    async def Stats(self, request: pb.JobsStatsRequest, context: Any) -> pb.JobsStatsResponse:
        queues = await self._jobs.stats(request.queue)
        return pb.JobsStatsResponse(queues=fitting(queue_message(queue) for queue in queues))

    async def PauseQueue(
        self, request: pb.JobsPauseQueueRequest, context: Any
    ) -> pb.JobsPauseQueueResponse:
        queue = await self._jobs.pause_queue(request.queue, request.note)
        return pb.JobsPauseQueueResponse(queue=queue_message(queue))

    async def ResumeQueue(
        self, request: pb.JobsResumeQueueRequest, context: Any
    ) -> pb.JobsResumeQueueResponse:
        queue = await self._jobs.resume_queue(request.queue)
        return pb.JobsResumeQueueResponse(queue=queue_message(queue))

    async def GetBatch(
        self, request: pb.JobsGetBatchRequest, context: Any
    ) -> pb.JobsGetBatchResponse:
        batch = await self._jobs.batch(request.batch)
        return pb.JobsGetBatchResponse(
            total=batch.total,
            succeeded=batch.succeeded,
            failed=batch.failed,
            skipped=batch.skipped,
            closed=batch.closed,
            complete=batch.complete,
            completion_job_id=batch.completion_job_id,
        )

    async def ListDead(
        self, request: pb.JobsListDeadRequest, context: Any
    ) -> pb.JobsListDeadResponse:
        jobs, token = await _page("dead", self._jobs.page_of_dead, request)
        return pb.JobsListDeadResponse(jobs=jobs, next_page_token=token)

    async def Replay(self, request: pb.JobsReplayRequest, context: Any) -> pb.JobsReplayResponse:
        count = await self._jobs.replay(selection_of(request), dry_run=request.dry_run)
        return pb.JobsReplayResponse(replayed=count)

    async def Discard(self, request: pb.JobsDiscardRequest, context: Any) -> pb.JobsDiscardResponse:
        count = await self._jobs.discard(selection_of(request), dry_run=request.dry_run)
        return pb.JobsDiscardResponse(discarded=count)


class _List(Protocol):
    async def __call__(
        self, wanted: JobFilter, *, before: int | None, limit: int
    ) -> Sequence[JobRecord]: ...


async def _page(
    kind: str, find: _List, request: pb.JobsListRequest | pb.JobsListDeadRequest
) -> tuple[list[pb.Job], str]:
    """The jobs of one page, and the token of the next one."""
    size = checked_size(request.page_size)
    wanted = filter_of(request.filter)
    listed = (kind, request.filter.SerializeToString(deterministic=True).hex())
    before = position_before(position_of(request.page_token, *listed))
    found = await find(wanted, before=before, limit=size + 1)
    shown = fitting(job_message(job) for job in found[:size])
    last = str(shown[-1].job_id) if len(shown) < len(found) else ""
    return shown, token_of(last, *listed)
