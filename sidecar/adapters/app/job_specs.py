"""Jobs that are submitted, by a call or by a handler's answer: from protobuf to the model.

Checks the well-known types; the rules for values are in `sidecar/model/job_spec.py`.
"""

from typing import Any

from sidecar._proto.baton.v1 import job_types_pb2
from sidecar.adapters.convert import chosen, instant_of, seconds_of
from sidecar.model.definitions import Retry
from sidecar.model.job import JobSpec, OnConflict, Priority, Unique

_PRIORITIES = {int(priority): priority for priority in Priority}
_CONFLICTS = dict(enumerate(OnConflict, start=1))


def spec_of(message: job_types_pb2.JobSpec, place: str) -> JobSpec:
    """`place` names the message in errors."""
    prefix = f"{place}."
    due_at = delay = None
    if message.WhichOneof("due") == "due_at":
        due_at = instant_of(message, "due_at", prefix)
    elif message.WhichOneof("due") == "delay":
        delay = seconds_of(message, "delay", prefix)
    return JobSpec(
        name=message.name,
        payload=message.payload,
        content_type=message.content_type or "application/json",
        queue=message.queue or "default",
        priority=chosen(_PRIORITIES, message.priority, f"{prefix}priority") or Priority.NORMAL,
        due_at=due_at,
        delay_seconds=delay,
        expires_at=instant_of(message, "expires_at", prefix),
        key=message.key,
        unique=_unique(message.unique, f"{prefix}unique") if message.HasField("unique") else None,
        retry=_retry(message.retry, f"{prefix}retry.") if message.HasField("retry") else None,
        timeout_seconds=seconds_of(message, "timeout", prefix),
        labels=dict(message.labels),
        batch=message.batch,
    )


def _unique(message: job_types_pb2.JobUnique, place: str) -> Unique:
    conflict = chosen(_CONFLICTS, message.on_conflict, f"{place}.on_conflict")
    window = seconds_of(message, "window", f"{place}.")
    return Unique(message.key, window, conflict or OnConflict.EXISTING)


def _retry(message: Any, prefix: str) -> Retry:
    default = Retry()
    initial = seconds_of(message, "initial", prefix)
    longest = seconds_of(message, "max", prefix)
    return Retry(
        attempts=message.attempts or default.attempts,
        initial_seconds=default.initial_seconds if initial is None else initial,
        max_seconds=default.max_seconds if longest is None else longest,
    )
