"""Jobs and queues as tables or JSON; control characters in texts of others are escaped."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from sidecar._proto.baton.v1 import job_types_pb2, runs_pb2
from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar.adapters.convert import to_datetime, to_seconds
from sidecar.cli.tables import ago, rough, table
from sidecar.logs import visible

_JOB_HEADER = ("JOB", "NAME", "QUEUE", "PRIORITY", "DUE", "ATTEMPT", "STATE", "DETAIL")
_QUEUE_HEADER = ("QUEUE", "READY", "LATER", "RUNNING", "DEAD", "OLDEST", "PER MINUTE", "DETAIL")


def print_json(shown: Message | dict[str, Any] | list[Any]) -> None:
    if isinstance(shown, Message):
        shown = MessageToDict(shown, preserving_proto_field_name=True)
    print(json.dumps(shown, indent=2))


def print_jobs(jobs: Sequence[pb.Job], output: str, none: str) -> None:
    if output == "json":
        print_json([MessageToDict(job, preserving_proto_field_name=True) for job in jobs])
    else:
        now = datetime.now(UTC)
        print(table(_JOB_HEADER, (_job_row(job, now) for job in jobs)) or none)


def print_queues(queues: Sequence[pb.Queue], output: str) -> None:
    if output == "json":
        print_json([MessageToDict(queue, preserving_proto_field_name=True) for queue in queues])
    else:
        print(table(_QUEUE_HEADER, (_queue_row(queue) for queue in queues)) or "no queues")


def described(job: pb.Job) -> str:
    """Everything about one job, one line per fact."""
    lines = [f"{name}: {value}" for name, value in _facts(job) if value]
    for event in job.history:
        when = to_datetime(event.at).isoformat(timespec="milliseconds")
        lines.append(f"  {when} attempt {event.attempt} {event.runner_id}: {event.cause}")
    return "\n".join(visible(line) for line in lines)


def _facts(job: pb.Job) -> Iterator[tuple[str, object]]:
    now = datetime.now(UTC)
    yield "job", job.job_id
    yield "name", job.name
    yield "queue", job.queue
    yield "priority", _priority(job)
    yield "key", job.key
    yield "batch", job.batch
    yield "labels", ", ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))
    yield "state", _state(job)
    yield "waits for", job.blocked_by
    yield "attempt", job.attempt
    yield "rescues", job.rescues
    for name in ("created_at", "due_at", "expires_at", "started_at", "finished_at"):
        yield name.removesuffix("_at"), ago(job, name, now)
    yield "runner", job.runner_id
    yield "progress", _progress(job)
    yield "error", job.error
    yield "payload", job.payload.decode(errors="backslashreplace")
    yield "result", job.result.decode(errors="backslashreplace")


def _job_row(job: pb.Job, now: datetime) -> Sequence[object]:
    detail = job.error or job.blocked_by or _progress(job)
    due = ago(job, "due_at", now)
    return (
        job.job_id, job.name, job.queue, _priority(job), due, job.attempt, _state(job), detail
    )  # fmt: skip


def _queue_row(queue: pb.Queue) -> Sequence[object]:
    oldest = rough(to_seconds(queue.oldest_wait)) if queue.HasField("oldest_wait") else ""
    paused = f"paused: {queue.pause_note}".rstrip(": ") if queue.paused else ""
    return (
        queue.name, queue.ready, queue.scheduled, queue.running, queue.dead, oldest,
        queue.ended_last_minute, paused,
    )  # fmt: skip


def _state(job: pb.Job) -> str:
    if job.state != runs_pb2.RUN_STATE_ENDED:
        state = runs_pb2.RunState.Name(job.state).removeprefix("RUN_STATE_").lower()
        return f"{state} (cancelling)" if job.cancel_requested else state
    outcome = runs_pb2.Outcome.Name(job.outcome).removeprefix("OUTCOME_").lower()
    reason = runs_pb2.SkipReason.Name(job.reason).removeprefix("SKIP_REASON_").lower()
    return f"{outcome} ({reason})" if job.reason else outcome


def _priority(job: pb.Job) -> str:
    return job_types_pb2.JobPriority.Name(job.priority).removeprefix("JOB_PRIORITY_").lower()


def _progress(job: pb.Job) -> str:
    if not (job.progress or job.progress_message):
        return ""
    return f"{job.progress:.0%} {job.progress_message}".rstrip()
