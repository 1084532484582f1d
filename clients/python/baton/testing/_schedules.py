"""Schedules of the fake: kept, paused, triggered. Nothing ticks; a trigger runs if it is led.

Times are known for `every` and `at`. A cron would need a cron library: asking for its ticks is
answered with UNIMPLEMENTED.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import grpc

from baton.testing._common import Call, not_found, now, page, require
from baton.testing._runs import RunBook, RunRecord
from baton.v1 import runs_pb2
from baton.v1 import schedules_pb2 as pb
from baton.v1.schedules_pb2_grpc import SchedulesServicer

if TYPE_CHECKING:
    from collections.abc import Iterator

Deliver = Callable[[RunRecord], None]
_UNIX_EPOCH = datetime.fromtimestamp(0, UTC)


class FakeSchedules(SchedulesServicer):
    """Keeps schedules in memory; `deliver` begins the runs that are asked for."""

    def __init__(self, book: RunBook, deliver: Deliver) -> None:
        self._book, self._deliver = book, deliver
        self._schedules: dict[str, pb.Schedule] = {}
        self._requested: dict[tuple[str, str], int] = {}
        self._backfilled: set[tuple[str, datetime]] = set()

    async def Create(
        self, request: pb.SchedulesCreateRequest, call: Call
    ) -> pb.SchedulesCreateResponse:
        schedule = await self._valid(request.schedule, call)
        held = self._schedules.get(schedule.name)
        taken = held is not None and not held.HasField("retired_at")
        await require(call, not taken, grpc.StatusCode.ALREADY_EXISTS, f"{schedule.name} is taken")
        schedule.created_at.GetCurrentTime()
        self._schedules[schedule.name] = schedule
        return pb.SchedulesCreateResponse(schedule=schedule)

    async def Get(self, request: pb.SchedulesGetRequest, call: Call) -> pb.SchedulesGetResponse:
        found = self._schedules.get(request.name) or await not_found(call, request.name)
        return pb.SchedulesGetResponse(schedule=found)

    async def List(self, request: pb.SchedulesListRequest, call: Call) -> pb.SchedulesListResponse:
        found = [
            self._schedules[name]
            for name in sorted(self._schedules)
            if request.include_retired or not self._schedules[name].HasField("retired_at")
        ]
        schedules, token = page(found, request)
        return pb.SchedulesListResponse(schedules=schedules, next_page_token=token)

    async def Update(
        self, request: pb.SchedulesUpdateRequest, call: Call
    ) -> pb.SchedulesUpdateResponse:
        schedule = await self._valid(request.schedule, call)
        held = await self._live(schedule.name, call)
        schedule.paused, schedule.pause_note = held.paused, held.pause_note
        schedule.created_at.CopyFrom(held.created_at)
        self._schedules[schedule.name] = schedule
        return pb.SchedulesUpdateResponse(schedule=schedule)

    async def Delete(
        self, request: pb.SchedulesDeleteRequest, call: Call
    ) -> pb.SchedulesDeleteResponse:
        (await self._live(request.name, call)).retired_at.GetCurrentTime()
        return pb.SchedulesDeleteResponse()

    async def Pause(
        self, request: pb.SchedulesPauseRequest, call: Call
    ) -> pb.SchedulesPauseResponse:
        schedule = await self._live(request.name, call)
        schedule.paused, schedule.pause_note = True, request.note
        return pb.SchedulesPauseResponse(schedule=schedule)

    async def Resume(
        self, request: pb.SchedulesResumeRequest, call: Call
    ) -> pb.SchedulesResumeResponse:
        schedule = await self._live(request.name, call)
        schedule.paused, schedule.pause_note = False, ""
        return pb.SchedulesResumeResponse(schedule=schedule)

    async def Trigger(
        self, request: pb.SchedulesTriggerRequest, call: Call
    ) -> pb.SchedulesTriggerResponse:
        schedule = await self._live(request.name, call)
        ticket = (request.name, request.request_id)
        if request.request_id and ticket in self._requested:
            return pb.SchedulesTriggerResponse(run_id=self._requested[ticket])
        payload = request.payload if request.HasField("payload") else schedule.payload
        run_id = self._begin(schedule, runs_pb2.RUN_KIND_TRIGGER, payload, now())
        self._requested[ticket] = run_id
        return pb.SchedulesTriggerResponse(run_id=run_id)

    async def Backfill(
        self, request: pb.SchedulesBackfillRequest, call: Call
    ) -> pb.SchedulesBackfillResponse:
        schedule = await self._live(request.name, call)
        begin = request.from_at.ToDatetime(tzinfo=UTC) - timedelta(microseconds=1)
        end = request.to_at.ToDatetime(tzinfo=UTC)
        ticks = await self._ticks(schedule, begin, call)
        due = [*islice(takewhile(lambda tick: tick < end, ticks), 1001)]
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        await require(call, len(due) <= 1000, invalid, "more than 1,000 ticks")
        fresh = [tick for tick in due if (schedule.name, tick) not in self._backfilled]
        self._backfilled.update((schedule.name, tick) for tick in fresh)
        kind = runs_pb2.RUN_KIND_SCHEDULE
        run_ids = [self._begin(schedule, kind, schedule.payload, tick) for tick in fresh]
        return pb.SchedulesBackfillResponse(run_ids=run_ids)

    async def Preview(
        self, request: pb.SchedulesPreviewRequest, call: Call
    ) -> pb.SchedulesPreviewResponse:
        by_name = request.WhichOneof("target") == "name"
        schedule = await self._live(request.name, call) if by_name else request.schedule
        after = request.after.ToDatetime(tzinfo=UTC) if request.HasField("after") else now()
        ticks = await self._ticks(schedule, after, call)
        return pb.SchedulesPreviewResponse(ticks=islice(ticks, min(request.n or 10, 1000)))

    def _begin(
        self, schedule: pb.Schedule, kind: runs_pb2.RunKind, payload: bytes, at: datetime
    ) -> int:
        record = self._book.add(schedule.name, schedule.group, kind, payload)
        record.run.scheduled_at.FromDatetime(at)
        self._deliver(record)
        return record.run.run_id

    async def _live(self, name: str, call: Call) -> pb.Schedule:
        schedule = self._schedules.get(name)
        if schedule is None or schedule.HasField("retired_at"):
            await not_found(call, f"schedule {name}")
        return schedule

    async def _valid(self, given: pb.Schedule, call: Call) -> pb.Schedule:
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        named = 1 <= len(given.name.encode()) <= 255
        await require(call, named, invalid, "name: 1 to 255 bytes are allowed")
        timed = given.WhichOneof("timing") is not None
        await require(call, timed, invalid, "timing: one of cron, every, at is required")
        schedule = pb.Schedule()
        schedule.CopyFrom(given)
        schedule.group = given.group or "default"
        schedule.timezone = given.timezone or "UTC"
        schedule.content_type = given.content_type or "application/json"
        schedule.enabled = given.enabled or not given.HasField("enabled")
        schedule.source = pb.SCHEDULE_SOURCE_API
        schedule.updated_at.GetCurrentTime()
        return schedule

    async def _ticks(
        self, schedule: pb.Schedule, after: datetime, call: Call
    ) -> Iterator[datetime]:
        known = schedule.WhichOneof("timing") != "cron"
        message = "the fake knows no cron; use every or at"
        await require(call, known, grpc.StatusCode.UNIMPLEMENTED, message)
        return _ticks(schedule, after)


def _ticks(schedule: pb.Schedule, after: datetime) -> Iterator[datetime]:
    if schedule.HasField("at"):
        at = schedule.at.ToDatetime(tzinfo=UTC)
        yield from [at] if at > after else []
        return
    every = schedule.every.ToTimedelta()
    origin = schedule.start_at.ToDatetime(tzinfo=UTC) if schedule.HasField("start_at") else None
    begin = origin or _UNIX_EPOCH
    tick = begin + max((after - begin) // every + 1, 0) * every
    while not schedule.HasField("end_at") or tick < schedule.end_at.ToDatetime(tzinfo=UTC):
        yield tick
        tick += every
