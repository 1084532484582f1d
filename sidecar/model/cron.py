"""Fire times of a cron expression, with the rules of Debian's cron(8), in any time zone.

- A job whose minute or hour field starts with `*` follows the wall clock: it fires each time the
  clock shows a matching time, so a repeated time fires twice and a skipped time does not fire.
- Any other job is fixed: a time that a gap skips fires once, at the first instant after the gap
  (several skipped times share that instant); a repeated time fires once, the first time.
  Debian limits this rule to changes under three hours, because it cannot distinguish a larger
  change from a clock that was set. The zone database can, so here the rule applies to every gap,
  including the day that Samoa skipped.
- Day of month and day of week are ORed unless one of them starts with `*` (or `?`).

Guarantees: `next(after) > after`; fire times are whole seconds; `parse` rejects an expression that
never fires; every call returns within milliseconds. The supported years are 1900 to 2199.
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
_END = datetime(YEAR_LAST + 1, 1, 2, tzinfo=UTC)  # after the end of the last year in every zone


def parse(expression: str, *, timezone: str = "UTC", hash_key: str = "") -> Cron:
    """Parse an expression; `hash_key` (cluster and schedule name) determines the values of `H`."""
    try:
        zone = load_zone(timezone)
    except ZoneError as error:
        raise CronError(f"timezone: {error}") from None
    cron = Cron(expression, timezone, zone, parse_fields(expression, hash_key))
    # The calendar repeats every 400 years: no match in one such period means no match at all.
    if next_day(cron.fields, date(2000, 1, 1), year_last=2400) is None:
        raise CronError(f"day of month: {expression.strip()!r} never fires: no such day exists")
    return cron


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression in its zone: a few integers, so that ten thousand fit into memory."""

    expression: str
    timezone: str
    zone: ZoneInfo = field(repr=False)
    fields: Fields = field(repr=False)

    def next(self, after: datetime) -> datetime | None:
        """The first fire time strictly after `after` (aware), in UTC; None after the last year."""
        if after.tzinfo is None:
            raise ValueError("after: needs a time zone")
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
        """The number of fire times in (after, until], computed without visiting each one."""
        if after.tzinfo is None or until.tzinfo is None:
            raise ValueError("after, until: need a time zone")
        start, end = _whole_seconds(after) + 1, _whole_seconds(until) + 1
        count = self._count_shown if self.fields.follows_wall_clock else self._count_fixed
        return count(start, end) if start < end else 0

    def _count_shown(self, start: int, end: int) -> int:
        return sum(
            count_walls(self.fields, first + offset, past + offset)
            for first, past, offset in spans(self.zone, start, end)
        )

    def _count_fixed(self, start: int, end: int) -> int:
        """Count each wall time when the clock first reaches it; count a gap at most once."""
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
                start = change  # the offset changes before the match: search again from there
            elif instant <= start + 2 * DAY_SECONDS:
                return instant
            else:
                # Skip ahead: whatever offset changes lie on the way, the clock shows only times
                # before the match there, and none of those matches.
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
            # The clock was set back between that instant and `after`, which is inside the repeated
            # time: continue at the end of the first pass.
            change = change_between(self.zone, instant, after)
            start = change + offset_at(self.zone, change - 1)


def _whole_seconds(instant: datetime) -> int:
    return (min(max(instant, _BEGINNING), _END) - _EPOCH) // _SECOND
