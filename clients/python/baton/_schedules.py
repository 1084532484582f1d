"""Schedules: making, changing, steering and previewing them.

A definition is the message `Schedule`; datetimes and timedeltas may be given to it as they are:
`Schedule(name="report", every=timedelta(minutes=5))`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from baton._connection import Connection
from baton._paging import pages
from baton._values import to_bytes
from baton.v1 import schedules_pb2 as pb
from baton.v1.schedules_pb2_grpc import SchedulesStub


class Schedules:
    """The schedules of the cluster; works on any pod."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(self, schedule: pb.Schedule) -> pb.Schedule:
        """Makes a schedule; ticks count from now on."""
        request = pb.SchedulesCreateRequest(schedule=schedule)
        response = await self._connection.call(self._stub.Create, request, repeatable=False)
        return response.schedule

    async def get(self, name: str) -> pb.Schedule:
        """One schedule, also a retired one."""
        request = pb.SchedulesGetRequest(name=name)
        return (await self._connection.call(self._stub.Get, request)).schedule

    async def update(self, schedule: pb.Schedule) -> pb.Schedule:
        """Replaces the whole definition of the schedule of that name."""
        request = pb.SchedulesUpdateRequest(schedule=schedule)
        return (await self._connection.call(self._stub.Update, request)).schedule

    async def delete(self, name: str) -> None:
        """Retires a schedule."""
        request = pb.SchedulesDeleteRequest(name=name)
        await self._connection.call(self._stub.Delete, request, repeatable=False)

    async def pause(self, name: str, note: str = "") -> pb.Schedule:
        """Stops a schedule until `resume`."""
        request = pb.SchedulesPauseRequest(name=name, note=note)
        return (await self._connection.call(self._stub.Pause, request)).schedule

    async def resume(self, name: str) -> pb.Schedule:
        """Ends a pause."""
        request = pb.SchedulesResumeRequest(name=name)
        return (await self._connection.call(self._stub.Resume, request)).schedule

    async def trigger(self, name: str, payload: Any = None, *, request_id: str = "") -> int:
        """Runs it once, now; the id of the run. `payload` None: the schedule's own."""
        request = pb.SchedulesTriggerRequest(
            name=name,
            payload=None if payload is None else to_bytes(payload),
            request_id=request_id or uuid.uuid4().hex,
        )
        return (await self._connection.call(self._stub.Trigger, request)).run_id

    async def backfill(self, name: str, from_at: datetime, to_at: datetime) -> list[int]:
        """Runs the ticks of a past range that have no outcome; the ids of the runs made."""
        request = pb.SchedulesBackfillRequest(name=name, from_at=from_at, to_at=to_at)
        response = await self._connection.call(self._stub.Backfill, request, repeatable=False)
        return [*response.run_ids]

    async def preview(
        self, schedule: str | pb.Schedule, n: int = 10, *, after: datetime | None = None
    ) -> list[datetime]:
        """The next ticks of a stored schedule, by name, or of one that is not stored."""
        request = pb.SchedulesPreviewRequest(n=n, after=after)
        if isinstance(schedule, str):
            request.name = schedule
        else:
            request.schedule.CopyFrom(schedule)
        response = await self._connection.call(self._stub.Preview, request)
        return [tick.ToDatetime(tzinfo=UTC) for tick in response.ticks]

    async def list(self, *, include_retired: bool = False) -> AsyncIterator[pb.Schedule]:
        """Schedules, by name."""
        request = pb.SchedulesListRequest(include_retired=include_retired)
        async for page in pages(self._connection, self._stub.List, request):
            for schedule in page.schedules:
                yield schedule

    @property
    def _stub(self) -> SchedulesStub:
        return self._connection.stub(SchedulesStub)
