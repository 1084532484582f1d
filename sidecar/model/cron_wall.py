"""Matching times of a cron expression on the calendar, without a time zone.

A wall time is the number of Unix seconds that it would be in UTC. All functions use arithmetic on
bit masks: a search for the next match takes microseconds even if the match is decades away, and a
count of the matches of a year does not visit each match.
"""

from __future__ import annotations

import calendar
from datetime import date
from functools import lru_cache

from sidecar.model.cron_fields import LAST, Fields
from sidecar.model.zones import DAY_SECONDS

YEAR_LAST = 2199
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MONTHS_CACHED = 120  # the next ten years: `monthrange` is the slowest step of a search
_SEVENTHS = tuple(sum(1 << day for day in range(first, 32, 7)) for first in range(1, 8))


def next_wall(fields: Fields, start: int) -> int | None:
    """The first matching wall time at or after `start`."""
    ordinal, second = divmod(start, DAY_SECONDS)
    today = date.fromordinal(ordinal + _EPOCH_ORDINAL)
    day = next_day(fields, today)
    if day == today:
        time = _next_time(fields, second)
        if time is not None:
            return start - second + time
        day = next_day(fields, date.fromordinal(today.toordinal() + 1))
    if day is None:
        return None
    return (day.toordinal() - _EPOCH_ORDINAL) * DAY_SECONDS + _first_time(fields)


def _next_time(fields: Fields, start: int) -> int | None:
    """The first matching second of the day at or after `start`."""
    minute_of_day, second = divmod(start, 60)
    hour, minute = divmod(minute_of_day, 60)
    if fields.hours >> hour & 1:
        if fields.minutes >> minute & 1:
            found = _next_bit(fields.seconds, second)
            if found is not None:
                return start - second + found
        found = _next_bit(fields.minutes, minute + 1)
        if found is not None:
            return hour * 3600 + found * 60 + _lowest_bit(fields.seconds)
    found = _next_bit(fields.hours, hour + 1)
    if found is None:
        return None
    return found * 3600 + _first_time(fields) % 3600


def _first_time(fields: Fields) -> int:
    hour, minute, second = map(_lowest_bit, (fields.hours, fields.minutes, fields.seconds))
    return hour * 3600 + minute * 60 + second


def next_day(fields: Fields, start: date, year_last: int = YEAR_LAST) -> date | None:
    """The first matching day at or after `start`; None after `year_last`."""
    year, month, day = start.year, start.month, start.day
    while year <= year_last:
        if fields.months >> month & 1:
            found = _next_bit(_days_of_month(fields, year, month), day)
            if found is not None:
                return date(year, month, found)
        day = 1
        later = _next_bit(fields.months, month + 1)
        year, month = (year, later) if later else (year + 1, _lowest_bit(fields.months))
    return None


def count_walls(fields: Fields, start: int, end: int) -> int:
    """The number of matching wall times in [start, end)."""
    if start >= end:
        return 0
    (first_day, first_second), (last_day, last_second) = (
        divmod(wall, DAY_SECONDS) for wall in (start, end)
    )
    whole_days = _count_days(fields, first_day, last_day) * _count_times(fields, DAY_SECONDS)
    too_early = _count_days(fields, first_day, first_day + 1) * _count_times(fields, first_second)
    on_last_day = _count_days(fields, last_day, last_day + 1) * _count_times(fields, last_second)
    return whole_days - too_early + on_last_day


def _count_times(fields: Fields, end: int) -> int:
    """The number of matching seconds of a day before `end`."""
    hour, minute, second = end // 3600, end // 60 % 60, end % 60
    count = _bits_below(fields.hours, hour) * fields.minutes.bit_count()
    if fields.hours >> hour & 1:
        count += _bits_below(fields.minutes, minute)
    count *= fields.seconds.bit_count()
    if fields.hours >> hour & fields.minutes >> minute & 1:
        count += _bits_below(fields.seconds, second)
    return count


def _count_days(fields: Fields, start: int, end: int) -> int:
    """The number of matching days in [start, end), both in days since the epoch."""
    first, past = (date.fromordinal(day + _EPOCH_ORDINAL) for day in (start, end))
    past = min(past, date(YEAR_LAST + 1, 1, 1))
    year, month, count = first.year, first.month, 0
    while (year, month) <= (past.year, past.month):
        if fields.months >> month & 1:
            days = _days_of_month(fields, year, month)
            if (year, month) == (past.year, past.month):
                days &= (1 << past.day) - 1
            if (year, month) == (first.year, first.month):
                days = days >> first.day << first.day
            count += days.bit_count()
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return count


def _days_of_month(fields: Fields, year: int, month: int) -> int:
    """The matching days of one month, as a mask."""
    sunday_based, length = _month(year, month)
    by_day = _matching_days(fields, sunday_based, length)
    by_weekday = _matching_weekdays(fields, sunday_based, length)
    matching = by_day | by_weekday if fields.either_day else by_day & by_weekday
    return matching & ((1 << length + 1) - 1)


@lru_cache(_MONTHS_CACHED)
def _month(year: int, month: int) -> tuple[int, int]:
    """The weekday of the first day (Sunday is 0), and the number of days."""
    monday_based, length = calendar.monthrange(year, month)
    return (monday_based + 1) % 7, length


def _matching_days(fields: Fields, weekday_of_first: int, length: int) -> int:
    days = fields.days
    if fields.last_day:
        days |= 1 << length
    if fields.last_workday:
        weekday_of_last = (weekday_of_first + length - 1) % 7
        days |= 1 << length - {0: 2, 6: 1}.get(weekday_of_last, 0)
    return days


def _matching_weekdays(fields: Fields, weekday_of_first: int, length: int) -> int:
    days = 0
    for weekday in range(7):
        first = (weekday - weekday_of_first) % 7 + 1
        if fields.weekdays >> weekday & 1:
            days |= _SEVENTHS[first - 1]
        nth = fields.nth_weekdays >> 8 * weekday & 0xFF
        if nth >> LAST & 1:
            days |= 1 << first + (length - first) // 7 * 7
        for k in range(1, 6):
            if nth >> k & 1:
                days |= 1 << first + (k - 1) * 7
    return days


def _next_bit(mask: int, start: int) -> int | None:
    rest = mask >> start
    return start + _lowest_bit(rest) if rest else None


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _bits_below(mask: int, end: int) -> int:
    return (mask & ((1 << end) - 1)).bit_count()
