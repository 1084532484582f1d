"""Jobs: from protobuf to the model and back. Checks the well-known types; the rules for values are
in `sidecar/model/job_spec.py`."""

from typing import Any

from sidecar._proto.baton.v1 import jobs_pb2
from sidecar.adapters.convert import chosen, duration, instant_of, seconds_of, timestamp
from sidecar.adapters.grpc_server.runs import (
    OUTCOME_FILTER,
    OUTCOMES,
    REASONS,
    STATE_FILTER,
    STATES,
    event_message,
)
from sidecar.model.errors import InvalidArgument
from sidecar.model.job_views import JobFilter, JobRecord, Queue, Selection


def filter_of(message: jobs_pb2.JobFilter) -> JobFilter:
    return JobFilter(
        queue=message.queue,
        name=message.name,
        state=chosen(STATE_FILTER, message.state, "filter.state"),
        outcome=chosen(OUTCOME_FILTER, message.outcome, "filter.outcome"),
        key=message.key,
        labels=dict(message.labels),
        since=instant_of(message, "since", "filter."),
        until=instant_of(message, "until", "filter."),
        batch=message.batch,
        error_contains=message.error_contains,
    )


def selection_of(request: Any) -> Selection:
    """The jobs of a request with `job_ids` and `filter`."""
    return Selection(tuple(sorted(set(request.job_ids))), filter_of(request.filter))


def wait_of(request: jobs_pb2.JobsGetRequest) -> float:
    seconds = seconds_of(request, "wait") or 0.0
    if seconds > 60:
        raise InvalidArgument("wait", "must be at most 60 s")
    return seconds


def job_message(job: JobRecord) -> jobs_pb2.Job:
    return jobs_pb2.Job(
        job_id=job.job_id,
        name=job.name,
        queue=job.queue,
        priority=f"JOB_PRIORITY_{job.priority.name}",
        key=job.key,
        labels=job.labels,
        batch=job.batch,
        state=STATES[job.state],
        outcome=OUTCOMES[job.outcome] if job.outcome else None,
        reason=REASONS[job.reason] if job.reason else None,
        attempt=job.attempt,
        failures=job.failures,
        rescues=job.rescues,
        created_at=timestamp(job.created_at),
        due_at=timestamp(job.due_at),
        expires_at=timestamp(job.expires_at),
        started_at=timestamp(job.started_at),
        finished_at=timestamp(job.finished_at),
        runner_id=job.runner_id,
        progress=job.progress,
        progress_message=job.progress_message,
        error=job.error,
        content_type=job.content_type,
        payload=job.payload,
        result=job.result,
        history=[event_message(event) for event in job.history],
        cancel_requested=job.cancel_requested,
        blocked_by=job.blocked_by,
        idempotency_key=job.idempotency_key,
    )


def queue_message(queue: Queue) -> jobs_pb2.Queue:
    return jobs_pb2.Queue(
        name=queue.name,
        ready=queue.ready,
        scheduled=queue.scheduled,
        running=queue.running,
        dead=queue.dead,
        oldest_wait=duration(queue.oldest_wait_seconds),
        ended_last_minute=queue.ended_last_minute,
        failed_last_minute=queue.failed_last_minute,
        paused=queue.paused,
        pause_note=queue.pause_note,
        max_running=queue.max_running,
        cluster_max_running=queue.cluster_max_running,
        rate=queue.rate,
    )
