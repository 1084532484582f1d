"""The Schedules service: converts messages; the rules are in `sidecar/scheduling/`."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf
from time import monotonic
from typing import Any, Protocol

import structlog

from sidecar._proto.baton.v1 import schedules_pb2, schedules_pb2_grpc, state_pb2
from sidecar.adapters.app.messages import metadata_message
from sidecar.adapters.convert import duration, instant_of, seconds_of, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, fitting, position_of, token_of
from sidecar.adapters.grpc_server.warnings import warn
from sidecar.model.definitions import Retry, Schedule, State
from sidecar.model.errors import InvalidArgument, SidecarError
from sidecar.model.health import EntityKey
from sidecar.model.schedule import skips_missed_ticks
from sidecar.model.stored_schedule import StoredSchedule
from sidecar.tracing import current_span

log = structlog.get_logger()

PREVIEW_DEFAULT = 10
WARN_SECONDS = 60.0
_CATCH_UPS = ("latest", "latest", "all", "none")
_OVERLAPS = ("allow", "allow", "skip", "queue", "replace")
_SOURCES = {
    "config": schedules_pb2.SCHEDULE_SOURCE_CONFIG,
    "api": schedules_pb2.SCHEDULE_SOURCE_API,
    "code": schedules_pb2.SCHEDULE_SOURCE_CODE,
}


class Schedules(Protocol):
    async def create(self, definition: Schedule) -> StoredSchedule: ...
    async def load_warning(self, created: Schedule) -> str: ...
    async def get(self, name: str) -> StoredSchedule: ...
    async def page(
        self,
        *,
        after: str,
        limit: int,
        include_retired: bool,
        name_prefix: str = "",
        paused: bool | None = None,
    ) -> Sequence[StoredSchedule]: ...
    async def update(self, definition: Schedule) -> StoredSchedule: ...
    async def delete(self, name: str) -> None: ...
    async def pause(self, name: str, note: str) -> StoredSchedule: ...
    async def resume(self, name: str) -> StoredSchedule: ...
    async def trigger(self, name: str, *, payload: bytes | None, request_id: str) -> int: ...
    async def backfill(self, name: str, from_at: datetime, to_at: datetime) -> list[int]: ...
    async def preview(
        self, target: str | Schedule, *, count: int, after: datetime | None
    ) -> list[datetime]: ...


class SchedulesService(schedules_pb2_grpc.SchedulesServicer):
    """`stale_reasons` returns the reason for each stale entity; it is called once per request.
    `unhandled` says why the attached app cannot execute this; empty: it can."""

    def __init__(
        self,
        schedules: Schedules,
        stale_reasons: Callable[[], Mapping[EntityKey, str]],
        unhandled: Callable[[str, str], str] = lambda kind, name: "",
    ) -> None:
        self._schedules = schedules
        self._stale_reasons = stale_reasons
        self._unhandled = unhandled
        self._warned_at = -inf

    async def Create(
        self, request: schedules_pb2.SchedulesCreateRequest, context: Any
    ) -> schedules_pb2.SchedulesCreateResponse:
        definition = definition_of(request.schedule)
        stored = await self._schedules.create(definition)
        if problem := skips_missed_ticks(definition.catch_up, definition.overlap):
            log.warning("schedule_skips_missed_ticks", schedule=definition.name, problem=problem)
        warn(context, filter(None, (problem, await self._load_warning(definition))))
        return schedules_pb2.SchedulesCreateResponse(schedule=self._shown(stored))

    async def _load_warning(self, definition: Schedule) -> str:
        try:
            problem = await self._schedules.load_warning(definition)
        except SidecarError:  # it is created: a missing warning must not fail the call
            return ""
        now = monotonic()
        if problem and now - self._warned_at >= WARN_SECONDS:
            self._warned_at = now
            log.warning("schedules_exceed_capacity", group=definition.group, problem=problem)
        return problem

    async def Get(
        self, request: schedules_pb2.SchedulesGetRequest, context: Any
    ) -> schedules_pb2.SchedulesGetResponse:
        stored = await self._schedules.get(request.name)
        return schedules_pb2.SchedulesGetResponse(schedule=self._shown(stored))

    async def List(
        self, request: schedules_pb2.SchedulesListRequest, context: Any
    ) -> schedules_pb2.SchedulesListResponse:
        size = checked_size(request.page_size)
        paused = request.paused if request.HasField("paused") else None
        listed = ("schedules", str(request.include_retired), request.name_prefix, str(paused))
        found = await self._schedules.page(
            after=position_of(request.page_token, *listed),
            limit=size + 1,
            include_retired=request.include_retired,
            name_prefix=request.name_prefix,
            paused=paused,
        )
        stale = self._stale_reasons()
        shown = fitting(self._message(stored, stale) for stored in found[:size])
        last = shown[-1].name if len(shown) < len(found) else ""
        token = token_of(last, *listed)
        return schedules_pb2.SchedulesListResponse(schedules=shown, next_page_token=token)

    async def Update(
        self, request: schedules_pb2.SchedulesUpdateRequest, context: Any
    ) -> schedules_pb2.SchedulesUpdateResponse:
        stored = await self._schedules.update(definition_of(request.schedule))
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
        from_at = instant_of(request, "from_at")
        to_at = instant_of(request, "to_at")
        if from_at is None or to_at is None:
            raise InvalidArgument("from_at" if from_at is None else "to_at", "is required")
        run_ids = await self._schedules.backfill(request.name, from_at, to_at)
        for run_id in run_ids:
            current_span().link_run(run_id)
        return schedules_pb2.SchedulesBackfillResponse(run_ids=run_ids)

    async def Preview(
        self, request: schedules_pb2.SchedulesPreviewRequest, context: Any
    ) -> schedules_pb2.SchedulesPreviewResponse:
        which = request.WhichOneof("target")
        if which is None:
            raise InvalidArgument("name", "a name or a schedule is required")
        target = request.name if which == "name" else definition_of(request.schedule)
        ticks = await self._schedules.preview(
            target, count=request.n or PREVIEW_DEFAULT, after=instant_of(request, "after")
        )
        return schedules_pb2.SchedulesPreviewResponse(ticks=[timestamp(tick) for tick in ticks])

    def _shown(self, stored: StoredSchedule) -> schedules_pb2.Schedule:
        return self._message(stored, self._stale_reasons())

    def _message(
        self, stored: StoredSchedule, stale: Mapping[EntityKey, str]
    ) -> schedules_pb2.Schedule:
        message = _message(stored, stale)
        if not message.stale:
            message.stale_reason = self._unhandled("schedule", stored.name)
        return message


def _message(stored: StoredSchedule, stale: Mapping[EntityKey, str]) -> schedules_pb2.Schedule:
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
            getattr(message, field).CopyFrom(timestamp(instant))
    message.metadata.CopyFrom(metadata_message(stored.metadata))
    message.stale_reason = stale.get(("schedule", stored.definition.name), "")
    message.stale = bool(message.stale_reason)
    return message


def definition_of(message: schedules_pb2.Schedule, place: str = "schedule") -> Schedule:
    """The caller's schedule, with defaults for unset fields; limits are checked later."""
    timing, dot = message.WhichOneof("timing"), f"{place}."
    return Schedule(
        name=message.name,
        cron=message.cron if timing == "cron" else None,
        every_seconds=duration_in(message, "every", 0.0, dot) if timing == "every" else None,
        at=instant_of(message, "at", dot),
        timezone=message.timezone or "UTC",
        group=message.group or "default",
        enabled=message.enabled if message.HasField("enabled") else True,
        payload=message.payload,
        content_type=message.content_type or "application/json",
        start_at=instant_of(message, "start_at", dot),
        end_at=instant_of(message, "end_at", dot),
        expected_interval_seconds=duration_in(message, "expected_interval", 0.0, dot),
        skip_if_older_than_seconds=duration_in(message, "skip_if_older_than", 86_400.0, dot),
        catch_up=_word(_CATCH_UPS, message.catch_up, f"{dot}catch_up"),
        catch_up_max=message.catch_up_max or 100,
        overlap=_word(_OVERLAPS, message.overlap, f"{dot}overlap"),
        retry=Retry(
            attempts=message.retry.attempts or 3,
            initial_seconds=duration_in(message.retry, "initial", 1.0, f"{dot}retry."),
            max_seconds=duration_in(message.retry, "max", 60.0, f"{dot}retry."),
        ),
        timeout_seconds=duration_in(message, "timeout", 0.0, dot),
        jitter_seconds=duration_in(message, "jitter", 0.0, dot),
        ping_url=message.ping_url,
        state=state_of(message.state, f"{dot}state."),
    )


def state_of(message: state_pb2.StatePolicy, prefix: str) -> State:
    return State(
        version=message.version or 1,
        initial=_json(message.initial, f"{prefix}initial"),
        schema=_schema(message.schema, f"{prefix}schema"),
        ttl_seconds=duration_in(message, "ttl", 0.0, prefix),
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
        message.every.CopyFrom(duration(definition.every_seconds))
    elif definition.at is not None:
        message.at.CopyFrom(timestamp(definition.at))
    return message


def duration_in(message: Any, field: str, default: float, prefix: str) -> float:
    """The duration in this field, in whole milliseconds; `default` if it is not set."""
    seconds = seconds_of(message, field, prefix)
    if seconds is None:
        return default
    if seconds < 0:
        raise InvalidArgument(prefix + field, "must not be negative")
    # Durations are stored in milliseconds, as those of the config file.
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


def _schema(text: bytes, field: str) -> dict[str, Any]:
    schema = _json(text, field)
    if not isinstance(schema, dict):
        raise InvalidArgument(field, "is not a JSON object")
    return schema


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
