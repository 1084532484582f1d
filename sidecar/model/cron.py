"""When a cron expression fires, as Debian's cron(8) means it, in any time zone.

- A job whose minute or hour field starts with `*` follows the wall clock: it fires whenever the
  clock shows a matching time, twice if the clock shows it twice, not at all if it never does.
- Any other job is fixed: a time that a gap skips fires once, at the first instant after the gap
  (several skipped times share that one instant); a repeated time fires once, the first time.
  Debian limits this to changes under three hours, because it cannot tell a larger one from a clock
  being set; the zone database can, so here it holds for every gap, also for Samoa's lost day.
- Day of month and day of week are ORed unless one of them starts with `*` (or `?`).

Guarantees: `next(after) > after`; fire times are whole seconds; an expression that never fires is
refused; every call ends within milliseconds. Time ends with the year 2199 and begins with 1900.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sidecar.model.cron_fields import CronError, Fields, parse_fields
from sidecar.model.cron_wall import YEAR_LAST, count_walls, next_day, next_wall
from sidecar.model.zones import (
    DAY_SECONDS,
    ZoneError,
    change_between,
    first_instant,
    furthest_shown,
    load_zone,
    next_change,
    offset_at,
    spans,
)

__all__ = ["Cron", "CronError", "parse"]

YEAR_FIRST = 1900
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_BEGINNING = datetime(YEAR_FIRST, 1, 1, tzinfo=UTC)
_END = datetime(YEAR_LAST + 1, 1, 2, tzinfo=UTC)  # the year has ended in every zone


def parse(expression: str, *, timezone: str = "UTC", hash_key: str = "") -> Cron:
    """Read an expression; `hash_key` (cluster and schedule name) decides what `H` stands for."""
    try:
        zone = load_zone(timezone)
    except ZoneError as error:
        raise CronError(f"timezone: {error}") from None
    cron = Cron(expression, timezone, zone, parse_fields(expression, hash_key))
    # The calendar repeats after 400 years: what has no day in one such span never has.
    if next_day(cron.fields, date(2000, 1, 1), year_last=2400) is None:
        raise CronError(f"day of month: {expression.strip()!r} never fires: no such day exists")
    return cron


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression in its zone: a few integers, cheap enough to keep by the ten thousand."""

    expression: str
    timezone: str
    zone: ZoneInfo = field(repr=False)
    fields: Fields = field(repr=False)

    def next(self, after: datetime) -> datetime | None:
        """The first fire time strictly after `after` (aware), in UTC; None if time ends before."""
        if after.tzinfo is None:
            raise ValueError("after: a time zone is needed")
        if after >= _END:
            return None
        start = _whole_seconds(after)
        advance = self._next_shown if self.fields.follows_wall_clock else self._next_fixed
        instant = advance(start)
        return None if instant is None else datetime.fromtimestamp(instant, UTC)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The fire times in (after, until], oldest first."""
        tick = self.next(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.next(tick)

    def count(self, after: datetime, until: datetime) -> int:
        """How many fire times lie in (after, until], by arithmetic."""
        if after.tzinfo is None or until.tzinfo is None:
            raise ValueError("after, until: a time zone is needed")
        start, end = _whole_seconds(after) + 1, _whole_seconds(until) + 1
        count = self._count_shown if self.fields.follows_wall_clock else self._count_fixed
        return count(start, end) if start < end else 0

    def _count_shown(self, start: int, end: int) -> int:
        return sum(
            count_walls(self.fields, first + offset, past + offset)
            for first, past, offset in spans(self.zone, start, end)
        )

    def _count_fixed(self, start: int, end: int) -> int:
        """Count each wall time when the clock first reaches it, and a jump once at most."""
        count, fresh = 0, furthest_shown(self.zone, start - 1) + 1
        for first, past, offset in spans(self.zone, start, end):
            shown = first + offset
            if shown > fresh:
                count += count_walls(self.fields, fresh, shown + 1) > 0
                fresh = shown + 1
            count += count_walls(self.fields, fresh, past + offset)
            fresh = max(fresh, past + offset)
        return count

    def _next_shown(self, after: int) -> int | None:
        """The first instant at which the wall clock shows a matching time."""
        start = after + 1
        while True:
            offset = offset_at(self.zone, start)
            wall = next_wall(self.fields, start + offset)
            if wall is None:
                return None
            instant = wall - offset
            change = next_change(self.zone, start, min(instant, start + 2 * DAY_SECONDS))
            if change is not None:
                start = change  # the match was computed with an offset that ends before it
            elif instant <= start + 2 * DAY_SECONDS:
                return instant
            else:
                # Nothing matches on the way: however the clock is changed there, it shows a time
                # between the first day and the last, and the next match lies beyond.
                start = instant - 2 * DAY_SECONDS

    def _next_fixed(self, after: int) -> int | None:
        """The instant of the first matching wall time that had not begun by `after`."""
        start = after + offset_at(self.zone, after) + 1
        while True:
            wall = next_wall(self.fields, start)
            if wall is None:
                return None
            instant = first_instant(self.zone, wall)
            if instant > after:
                return instant
            # The clock was set back between that instant and `after`, which lies in the repeated
            # time: go on where the first pass ended.
            change = change_between(self.zone, instant, after)
            start = change + offset_at(self.zone, change - 1)


def _whole_seconds(instant: datetime) -> int:
    return (min(max(instant, _BEGINNING), _END) - _EPOCH) // _SECOND
