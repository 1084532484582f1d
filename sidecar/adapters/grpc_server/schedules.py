"""The Schedules service: conversion between its messages and our words."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from sidecar._proto.baton.v1 import schedules_pb2, schedules_pb2_grpc, state_pb2
from sidecar.adapters.grpc_execute import duration, metadata_message, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, fitting
from sidecar.config.work import Retry, Schedule, State
from sidecar.model.errors import InvalidArgument
from sidecar.model.health import EntityKey
from sidecar.model.stored_schedule import StoredSchedule
from sidecar.tracing import current_span

Stored = StoredSchedule[Schedule]
PREVIEW_DEFAULT = 10
_CATCH_UPS = ("latest", "latest", "all", "none")
_OVERLAPS = ("allow", "allow", "skip", "queue", "replace")
_SOURCES = {
    "config": schedules_pb2.SCHEDULE_SOURCE_CONFIG,
    "api": schedules_pb2.SCHEDULE_SOURCE_API,
}


class Schedules(Protocol):
    async def create(self, definition: Schedule) -> Stored: ...
    async def get(self, name: str) -> Stored: ...
    async def page(self, *, after: str, limit: int, include_retired: bool) -> Sequence[Stored]: ...
    async def update(self, definition: Schedule) -> Stored: ...
    async def delete(self, name: str) -> None: ...
    async def pause(self, name: str, note: str) -> Stored: ...
    async def resume(self, name: str) -> Stored: ...
    async def trigger(self, name: str, *, payload: bytes | None, request_id: str) -> int: ...
    async def backfill(self, name: str, from_at: datetime, to_at: datetime) -> list[int]: ...
    async def preview(
        self, target: str | Schedule, *, count: int, after: datetime | None
    ) -> list[datetime]: ...


class SchedulesService(schedules_pb2_grpc.SchedulesServicer):
    """`stale_reasons` says why what is stale counts as stale; it is asked once per call."""

    def __init__(
        self, schedules: Schedules, stale_reasons: Callable[[], Mapping[EntityKey, str]]
    ) -> None:
        self._schedules = schedules
        self._stale_reasons = stale_reasons

    async def Create(
        self, request: schedules_pb2.SchedulesCreateRequest, context: Any
    ) -> schedules_pb2.SchedulesCreateResponse:
        stored = await self._schedules.create(_definition(request.schedule))
        return schedules_pb2.SchedulesCreateResponse(schedule=self._shown(stored))

    async def Get(
        self, request: schedules_pb2.SchedulesGetRequest, context: Any
    ) -> schedules_pb2.SchedulesGetResponse:
        stored = await self._schedules.get(request.name)
        return schedules_pb2.SchedulesGetResponse(schedule=self._shown(stored))

    async def List(
        self, request: schedules_pb2.SchedulesListRequest, context: Any
    ) -> schedules_pb2.SchedulesListResponse:
        size = checked_size(request.page_size)
        found = await self._schedules.page(
            after=request.page_token, limit=size + 1, include_retired=request.include_retired
        )
        stale = self._stale_reasons()
        shown = fitting(_message(stored, stale) for stored in found[:size])
        token = shown[-1].name if len(shown) < len(found) else ""
        return schedules_pb2.SchedulesListResponse(schedules=shown, next_page_token=token)

    async def Update(
        self, request: schedules_pb2.SchedulesUpdateRequest, context: Any
    ) -> schedules_pb2.SchedulesUpdateResponse:
        stored = await self._schedules.update(_definition(request.schedule))
        return schedules_pb2.SchedulesUpdateResponse(schedule=self._shown(stored))

    async def Delete(
        self, request: schedules_pb2.SchedulesDeleteRequest, context: Any
    ) -> schedules_pb2.SchedulesDeleteResponse:
        await self._schedules.delete(request.name)
        return schedules_pb2.SchedulesDeleteResponse()

    async def Pause(
        self, request: schedules_pb2.SchedulesPauseRequest, context: Any
    ) -> schedules_pb2.SchedulesPauseResponse:
        stored = await self._schedules.pause(request.name, request.note)
        return schedules_pb2.SchedulesPauseResponse(schedule=self._shown(stored))

    async def Resume(
        self, request: schedules_pb2.SchedulesResumeRequest, context: Any
    ) -> schedules_pb2.SchedulesResumeResponse:
        stored = await self._schedules.resume(request.name)
        return schedules_pb2.SchedulesResumeResponse(schedule=self._shown(stored))

    async def Trigger(
        self, request: schedules_pb2.SchedulesTriggerRequest, context: Any
    ) -> schedules_pb2.SchedulesTriggerResponse:
        payload = request.payload if request.HasField("payload") else None
        run_id = await self._schedules.trigger(
            request.name, payload=payload, request_id=request.request_id
        )
        current_span().link_run(run_id)
        return schedules_pb2.SchedulesTriggerResponse(run_id=run_id)

    async def Backfill(
        self, request: schedules_pb2.SchedulesBackfillRequest, context: Any
    ) -> schedules_pb2.SchedulesBackfillResponse:
        from_at = _instant(request, "from_at")
        to_at = _instant(request, "to_at")
        if from_at is None or to_at is None:
            raise InvalidArgument("from_at" if from_at is None else "to_at", "is needed")
        run_ids = await self._schedules.backfill(request.name, from_at, to_at)
        for run_id in run_ids:
            current_span().link_run(run_id)
        return schedules_pb2.SchedulesBackfillResponse(run_ids=run_ids)

    async def Preview(
        self, request: schedules_pb2.SchedulesPreviewRequest, context: Any
    ) -> schedules_pb2.SchedulesPreviewResponse:
        which = request.WhichOneof("target")
        if which is None:
            raise InvalidArgument("name", "either a name or a schedule is needed")
        target = request.name if which == "name" else _definition(request.schedule)
        ticks = await self._schedules.preview(
            target, count=request.n or PREVIEW_DEFAULT, after=_instant(request, "after")
        )
        return schedules_pb2.SchedulesPreviewResponse(ticks=[_stamp(tick) for tick in ticks])

    def _shown(self, stored: Stored) -> schedules_pb2.Schedule:
        return _message(stored, self._stale_reasons())


def _message(stored: Stored, stale: Mapping[EntityKey, str]) -> schedules_pb2.Schedule:
    message = _defined(stored.definition)
    message.paused = stored.paused
    message.pause_note = stored.pause_note
    message.source = _SOURCES[stored.source]
    active = not stored.idle and stored.retired_at is None
    for field, instant in (
        ("next_run_at", stored.next_tick if active else None),
        ("last_run_at", stored.metadata.last_run_at),
        ("created_at", stored.created_at),
        ("updated_at", stored.changed_at),
        ("retired_at", stored.retired_at),
    ):
        if instant is not None:
            getattr(message, field).CopyFrom(_stamp(instant))
    message.metadata.CopyFrom(metadata_message(stored.metadata))
    message.stale_reason = stale.get(("schedule", stored.definition.name), "")
    message.stale = bool(message.stale_reason)
    return message


def _definition(message: schedules_pb2.Schedule) -> Schedule:
    """What a caller sent, with defaults where it left something unset; limits are checked later."""
    timing = message.WhichOneof("timing")
    return Schedule(
        name=message.name,
        cron=message.cron if timing == "cron" else None,
        every_seconds=_seconds(message, "every", 0.0) if timing == "every" else None,
        at=_instant(message, "at", "schedule."),
        timezone=message.timezone or "UTC",
        group=message.group or "default",
        enabled=message.enabled if message.HasField("enabled") else True,
        payload=message.payload,
        content_type=message.content_type or "application/json",
        start_at=_instant(message, "start_at", "schedule."),
        end_at=_instant(message, "end_at", "schedule."),
        expected_interval_seconds=_seconds(message, "expected_interval", 0.0),
        skip_if_older_than_seconds=_seconds(message, "skip_if_older_than", 86_400.0),
        catch_up=_word(_CATCH_UPS, message.catch_up, "schedule.catch_up"),
        catch_up_max=message.catch_up_max or 100,
        overlap=_word(_OVERLAPS, message.overlap, "schedule.overlap"),
        retry=Retry(
            attempts=message.retry.attempts or 3,
            initial_seconds=_seconds(message.retry, "initial", 1.0, "schedule.retry."),
            max_seconds=_seconds(message.retry, "max", 60.0, "schedule.retry."),
        ),
        timeout_seconds=_seconds(message, "timeout", 0.0),
        jitter_seconds=_seconds(message, "jitter", 0.0),
        ping_url=message.ping_url,
        state=State(
            version=message.state.version or 1,
            initial=_json(message.state.initial, "schedule.state.initial"),
            schema=_schema(message.state.schema),
            ttl_seconds=_seconds(message.state, "ttl", 0.0, "schedule.state."),
        ),
    )


def _defined(definition: Schedule) -> schedules_pb2.Schedule:
    message = schedules_pb2.Schedule(
        name=definition.name,
        group=definition.group,
        timezone=definition.timezone,
        enabled=definition.enabled,
        payload=definition.payload,
        content_type=definition.content_type,
        start_at=timestamp(definition.start_at),
        end_at=timestamp(definition.end_at),
        expected_interval=duration(definition.expected_interval_seconds),
        skip_if_older_than=duration(definition.skip_if_older_than_seconds),
        catch_up=f"CATCH_UP_{definition.catch_up.upper()}",
        catch_up_max=definition.catch_up_max,
        overlap=f"OVERLAP_{definition.overlap.upper()}",
        retry=schedules_pb2.RetryPolicy(
            attempts=definition.retry.attempts,
            initial=duration(definition.retry.initial_seconds),
            max=duration(definition.retry.max_seconds),
        ),
        timeout=duration(definition.timeout_seconds),
        jitter=duration(definition.jitter_seconds),
        ping_url=definition.ping_url,
        state=state_pb2.StatePolicy(
            version=definition.state.version,
            initial=_bytes(definition.state.initial),
            schema=_bytes(dict(definition.state.schema)) if definition.state.schema else b"",
            ttl=duration(definition.state.ttl_seconds),
        ),
    )
    if definition.cron is not None:
        message.cron = definition.cron
    elif definition.every_seconds is not None:
        message.every.FromNanoseconds(round(definition.every_seconds * 1e9))
    elif definition.at is not None:
        message.at.CopyFrom(_stamp(definition.at))
    return message


def _stamp(instant: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(instant.astimezone(UTC))
    return message


def _instant(message: Any, field: str, prefix: str = "") -> datetime | None:
    if not message.HasField(field):
        return None
    try:
        instant: datetime = getattr(message, field).ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            prefix + field, "is not a time between the years 1 and 9999"
        ) from None
    if not 1970 <= instant.year <= 2199:
        raise InvalidArgument(prefix + field, "must lie between the years 1970 and 2199")
    return instant


def _seconds(message: Any, field: str, default: float, prefix: str = "schedule.") -> float:
    if not message.HasField(field):
        return default
    value: Duration = getattr(message, field)
    seconds = value.seconds + value.nanos / 1e9
    if seconds < 0:
        raise InvalidArgument(prefix + field, "must not be negative")
    # Milliseconds are as fine as durations are kept, here as in the file.
    if abs(seconds * 1000 - round(seconds * 1000)) > 1e-6:
        raise InvalidArgument(prefix + field, "must be a whole number of milliseconds")
    return round(seconds * 1000) / 1000


def _word(words: Sequence[str], number: int, field: str) -> Any:
    if not 0 <= number < len(words):
        raise InvalidArgument(field, f"{number} is not known")
    return words[number]


def _json(text: bytes, field: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(field, f"is not JSON: {error}") from None


def _schema(text: bytes) -> dict[str, Any]:
    schema = _json(text, "schedule.state.schema")
    if not isinstance(schema, dict):
        raise InvalidArgument("schedule.state.schema", "is not a JSON object")
    return schema


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
