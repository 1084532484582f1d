"""The schedules of the cluster: any pod creates, changes, pauses and triggers them.

Guarantees: invalid input is rejected with the name of its field and changes nothing (G11); only the
source that created a schedule changes it; a change locks the schedule while it is decided, so no
tick is lost or repeated between the old and the new definition (G4).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import inf

from sidecar.hints import Hints
from sidecar.model.definitions import Schedule
from sidecar.model.duration import format_duration
from sidecar.model.errors import FailedPrecondition, InvalidArgument, NotFound
from sidecar.model.load import overload_warning, ticks_per_second
from sidecar.model.run import PAYLOAD_BYTES_MAX
from sidecar.model.schedule import Timing
from sidecar.model.stored_schedule import (
    Change,
    StoredSchedule,
    created,
    paused,
    resumed,
    retired,
    stored_timing,
    updated,
)
from sidecar.model.validation import check_name, check_size, check_text
from sidecar.scheduling.ports import ScheduleStore
from sidecar.scheduling.validation import checked

BACKFILL_MAX = 1000
PREVIEW_MAX = 1000
LOAD_SECONDS = 10.0


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
        self._declared: dict[str, tuple[float, float]] = {}  # when it was read, ticks per second

    async def create(self, definition: Schedule) -> StoredSchedule:
        await self._checked(definition)

        def decide(now: datetime) -> Change:
            change = created(definition, "api", self._cluster, now)
            if change.after.next_tick is None:
                raise _never_ticks(definition, now)
            return change

        await self._store.create(definition.name, decide)
        return await self._changed(definition.name)

    async def load_warning(self, created: Schedule) -> str:
        """A warning if the group of this new schedule declares more ticks than a leader sustains.

        The sum is read at most every LOAD_SECONDS: thousands may be created in a row.
        """
        group, now = created.group, asyncio.get_running_loop().time()
        read_at, declared = self._declared.get(group, (-inf, 0.0))
        if now - read_at < LOAD_SECONDS:
            declared += ticks_per_second(created)
        else:
            read_at, declared = now, await self._store.declared_load(group)
        self._declared[group] = read_at, declared
        return overload_warning(group, declared)

    async def get(self, name: str) -> StoredSchedule:
        check_name("name", name)
        return await self._store.get(name)

    async def page(
        self,
        *,
        after: str,
        limit: int,
        include_retired: bool,
        name_prefix: str = "",
        paused: bool | None = None,
    ) -> Sequence[StoredSchedule]:
        """Return the schedules whose names are greater than `after`, ordered by name."""
        check_text("page_token", after)
        check_text("name_prefix", name_prefix)
        return await self._store.page(
            after=after,
            limit=limit,
            include_retired=include_retired,
            name_prefix=name_prefix,
            paused=paused,
        )

    async def update(self, definition: Schedule) -> StoredSchedule:
        await self._checked(definition)

        def decide(stored: StoredSchedule, now: datetime) -> Change:
            _only_api(stored)
            change = updated(stored, definition, self._cluster, now)
            # An `end_at` in the past ends the schedule; a new `at` in the past is a mistake.
            moved = definition.at is not None and definition.at != stored.definition.at
            if moved and change.after.next_tick is None:
                raise _never_ticks(definition, now)
            return change

        await self._store.change(definition.name, decide)
        return await self._changed(definition.name)

    async def delete(self, name: str) -> None:
        def decide(stored: StoredSchedule, now: datetime) -> Change:
            _only_api(stored)
            return retired(stored, self._cluster, now)

        check_name("name", name)
        await self._store.change(name, decide)
        self._hints.notify("schedules")
        self._hints.notify("runs")

    async def pause(self, name: str, note: str) -> StoredSchedule:
        check_text("note", note)

        def decide(stored: StoredSchedule, now: datetime) -> Change:
            if stored.paused:
                return Change(replace(stored, pause_note=note))
            return paused(stored, note, self._cluster, now)

        check_name("name", name)
        await self._store.change(name, decide)
        return await self._changed(name)

    async def resume(self, name: str) -> StoredSchedule:
        def decide(stored: StoredSchedule, now: datetime) -> Change | None:
            return resumed(stored, self._cluster, now) if stored.paused else None

        check_name("name", name)
        await self._store.change(name, decide)
        return await self._changed(name)

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str) -> int:
        """Queue one run in addition to the ticks; a repeated request ID returns the same run."""
        check_text("request_id", request_id)
        check_size("payload", payload or b"", PAYLOAD_BYTES_MAX)
        check_name("name", name)
        run_id = await self._store.trigger(name, payload=payload, request_id=request_id or None)
        self._hints.notify("runs")
        return run_id

    async def backfill(self, name: str, from_at: datetime, to_at: datetime) -> list[int]:
        """Queue runs for the ticks in [from_at, to_at) that have no row.

        Ticks after the watermark are left out: the leader gives each of them its one row (G4).
        A range whose rows may have been pruned is refused: its ticks may have run.
        """
        if from_at >= to_at:
            raise InvalidArgument("to_at", "must be after from_at")

        def decide(stored: StoredSchedule, now: datetime) -> Sequence[datetime]:
            if to_at > now:
                raise InvalidArgument("to_at", "must not be in the future")
            self._check_history(stored, from_at, to_at, now)
            until = min(to_at, stored.watermark + datetime.resolution)
            return _ticks_between(stored_timing(stored, self._cluster), from_at, until)

        check_name("name", name)
        run_ids = await self._store.backfill(name, decide)
        self._hints.notify("runs")
        return run_ids

    def _check_history(
        self, stored: StoredSchedule, from_at: datetime, to_at: datetime, now: datetime
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
        """Return the next ticks of a stored schedule, or of a definition that is not stored."""
        if not 1 <= count <= PREVIEW_MAX:
            raise InvalidArgument("n", f"must be between 1 and {PREVIEW_MAX}")
        if isinstance(target, str):
            check_name("name", target)
            stored = await self._store.get(target)
            if stored.retired_at is not None:
                raise NotFound(f"there is no schedule {target!r}")
            timing = stored_timing(stored, self._cluster)
        else:
            timing = await self._checked(target)
        start = after or await self._store.now()
        return list(islice(timing.ticks(start, _END), count))

    async def _checked(self, definition: Schedule) -> Timing:
        """Check in a thread, because a schema may take seconds to apply and must not delay pings.

        One check runs at a time, so that threads remain for other work.
        """
        async with self._checking:
            return await asyncio.to_thread(checked, definition, self._cluster)

    async def _changed(self, name: str) -> StoredSchedule:
        self._hints.notify("schedules")
        return await self._store.get(name)


def _never_ticks(definition: Schedule, now: datetime) -> InvalidArgument:
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


def _only_api(stored: StoredSchedule) -> None:
    if stored.source != "api":
        owner = "the configuration file" if stored.source == "config" else "the app's code"
        raise FailedPrecondition(f"schedule {stored.name!r} belongs to {owner}: change it there")
