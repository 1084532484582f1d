"""The schedules of the cluster, for everybody: made, changed, paused, triggered, from any pod.

Guarantees: bad input names its field and changes nothing (G11); a schedule belongs to the source
that made it; every change holds the schedule while it is decided, so no tick falls between before
and after (G4).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from sidecar.config.work import Schedule
from sidecar.model.duration import format_duration
from sidecar.model.errors import FailedPrecondition, InvalidArgument, NotFound
from sidecar.model.run import PAYLOAD_BYTES_MAX
from sidecar.model.schedule import Timing
from sidecar.model.stored_schedule import (
    Change,
    created,
    paused,
    resumed,
    retired,
    stored_timing,
    updated,
)
from sidecar.scheduling.ports import Hints, ScheduleStore, Stored
from sidecar.scheduling.validation import checked

BACKFILL_MAX = 1000
PREVIEW_MAX = 1000
TEXT_BYTES_MAX = 255


class Schedules:
    def __init__(
        self,
        store: ScheduleStore,
        hints: Hints,
        *,
        cluster: str,
        history_seconds: float = 7 * 86_400.0,
    ) -> None:
        self._store = store
        self._hints = hints
        self._cluster = cluster
        self._history_seconds = history_seconds
        self._checking = asyncio.Lock()

    async def create(self, definition: Schedule) -> Stored:
        await self._checked(definition)

        def decide(now: datetime) -> Change[Schedule]:
            change = created(definition, "api", self._cluster, now)
            if change.after.next_tick is None:
                raise _nothing_left(definition, now)
            return change

        await self._store.create(definition.name, decide)
        return await self._changed(definition.name)

    async def get(self, name: str) -> Stored:
        return await self._store.get(_name(name))

    async def page(self, *, after: str, limit: int, include_retired: bool) -> Sequence[Stored]:
        """By name, those after `after`."""
        _text("page_token", after)
        return await self._store.page(after=after, limit=limit, include_retired=include_retired)

    async def update(self, definition: Schedule) -> Stored:
        await self._checked(definition)

        def decide(stored: Stored, now: datetime) -> Change[Schedule]:
            _only_api(stored)
            change = updated(stored, definition, self._cluster, now)
            # An end in the past is a way to end it; an instant in the past is a mistake.
            moved = definition.at is not None and definition.at != stored.definition.at
            if moved and change.after.next_tick is None:
                raise _nothing_left(definition, now)
            return change

        await self._store.change(definition.name, decide)
        return await self._changed(definition.name)

    async def delete(self, name: str) -> None:
        def decide(stored: Stored, now: datetime) -> Change[Schedule]:
            _only_api(stored)
            return retired(stored, self._cluster, now)

        await self._store.change(_name(name), decide)
        self._hints.notify("schedules")
        self._hints.notify("runs")

    async def pause(self, name: str, note: str) -> Stored:
        _text("note", note)

        def decide(stored: Stored, now: datetime) -> Change[Schedule]:
            if stored.paused:
                return Change(replace(stored, pause_note=note))
            return paused(stored, note, self._cluster, now)

        await self._store.change(_name(name), decide)
        return await self._changed(name)

    async def resume(self, name: str) -> Stored:
        def decide(stored: Stored, now: datetime) -> Change[Schedule] | None:
            return resumed(stored, self._cluster, now) if stored.paused else None

        await self._store.change(_name(name), decide)
        return await self._changed(name)

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str) -> int:
        """Queue one run beside the ticks; the same request gives the same run."""
        _text("request_id", request_id)
        if payload is not None and len(payload) > PAYLOAD_BYTES_MAX:
            raise InvalidArgument(
                "payload", f"has {len(payload)} bytes; at most {PAYLOAD_BYTES_MAX}"
            )
        run_id = await self._store.trigger(
            _name(name), payload=payload, request_id=request_id or None
        )
        self._hints.notify("runs")
        return run_id

    async def backfill(self, name: str, from_at: datetime, to_at: datetime) -> list[int]:
        """Queue runs for the ticks in [from_at, to_at) that were passed over without a row.

        Those after the watermark are the leader's: it still gives each of them its one row (G4).
        Those whose rows may have been pruned are refused: they may have run.
        """
        if from_at >= to_at:
            raise InvalidArgument("to_at", "must be after from_at")

        def decide(stored: Stored, now: datetime) -> Sequence[datetime]:
            if to_at > now:
                raise InvalidArgument("to_at", "must not be in the future")
            self._check_history(stored, from_at, to_at, now)
            until = min(to_at, stored.watermark + datetime.resolution)
            return _ticks_between(stored_timing(stored, self._cluster), from_at, until)

        run_ids = await self._store.backfill(_name(name), decide)
        self._hints.notify("runs")
        return run_ids

    def _check_history(
        self, stored: Stored, from_at: datetime, to_at: datetime, now: datetime
    ) -> None:
        kept_from = now - timedelta(seconds=self._history_seconds)
        lived_from = max(from_at, stored.created_at or from_at)
        if lived_from < min(to_at, kept_from):
            raise InvalidArgument(
                "from_at",
                f"lies before {kept_from.isoformat(timespec='seconds')}: runs are kept for "
                f"{format_duration(self._history_seconds)}, and what ran earlier is not known",
            )

    async def preview(
        self, target: str | Schedule, *, count: int, after: datetime | None
    ) -> list[datetime]:
        """The next ticks of a stored schedule, or of a definition that need not be stored."""
        if not 1 <= count <= PREVIEW_MAX:
            raise InvalidArgument("n", f"must be between 1 and {PREVIEW_MAX}")
        if isinstance(target, str):
            stored = await self._store.get(_name(target))
            if stored.retired_at is not None:
                raise NotFound(f"there is no schedule {target!r}")
            timing = stored_timing(stored, self._cluster)
        else:
            timing = await self._checked(target)
        start = after or await self._store.now()
        return list(islice(timing.ticks(start, _END), count))

    async def _checked(self, definition: Schedule) -> Timing:
        """In a thread: to apply a schema may take seconds, and pings must not wait for it. One at
        a time: others need threads too."""
        async with self._checking:
            return await asyncio.to_thread(checked, definition, self._cluster)

    async def _changed(self, name: str) -> Stored:
        self._hints.notify("schedules")
        return await self._store.get(name)


def _nothing_left(definition: Schedule, now: datetime) -> InvalidArgument:
    if not definition.at and definition.end_at and definition.end_at > now:
        return InvalidArgument("schedule.end_at", "there is no tick between now and then")
    field = "schedule.at" if definition.at else "schedule.end_at"
    return InvalidArgument(field, "lies in the past: there would never be a tick")


_END = datetime.max.replace(tzinfo=UTC)


def _ticks_between(timing: Timing, from_at: datetime, to_at: datetime) -> list[datetime]:
    before_first, last = from_at - datetime.resolution, to_at - datetime.resolution
    count = timing.count(before_first, last)
    if count > BACKFILL_MAX:
        problem = f"the range holds {count} ticks; at most {BACKFILL_MAX} at once"
        raise InvalidArgument("to_at", problem)
    return list(timing.ticks(before_first, last))


def _only_api(stored: Stored) -> None:
    if stored.source != "api":
        raise FailedPrecondition(
            f"schedule {stored.name!r} belongs to the configuration file: change it there"
        )


def _name(name: str) -> str:
    if not name:
        raise InvalidArgument("name", "is empty")
    return _text("name", name)


def _text(field: str, text: str) -> str:
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InvalidArgument(field, f"is longer than {TEXT_BYTES_MAX} bytes")
    if "\0" in text:
        raise InvalidArgument(field, "holds a NUL character")
    return text
