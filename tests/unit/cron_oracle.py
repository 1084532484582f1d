"""Cron by walking: every instant of a window is looked at, as the daemon would, one after another.

Written from the manual pages and from the design, not from `sidecar.model.cron`; slow, and with no
idea of offsets or changes. It only asks what the wall clock shows at each instant:

- a job that follows the wall clock fires when the time shown matches;
- a fixed job fires when the clock reaches, or has just jumped over, a matching time that it never
  showed before. So the furthest time ever shown is kept, and whatever lies between it and the time
  shown now is due now.
"""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

_MONTHS = [name.upper() for name in calendar.month_abbr]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_LIMITS = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "month": (1, 12)}


class Job:
    """One expression, taken apart in the plainest way."""

    def __init__(self, expression: str) -> None:
        texts = expression.upper().split()
        second, minute, hour, self.day, month, self.weekday = ["0", *texts][-6:]
        self.seconds = _values("second", second)
        self.minutes = _values("minute", minute)
        self.hours = _values("hour", hour)
        self.months = _values("month", month)
        self.follows_wall_clock = minute[0] == "*" or hour[0] == "*"
        self.dates: dict[date, bool] = {}

    def matches(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.second in self.seconds
            and self.matches_date(wall.date())
        )

    def matches_date(self, day: date) -> bool:
        if day not in self.dates:
            self.dates[day] = self._matches_date(day)
        return self.dates[day]

    def _matches_date(self, day: date) -> bool:
        by_day = any(_is_day(element, day) for element in self.day.split(","))
        by_weekday = any(_is_weekday(element, day) for element in self.weekday.split(","))
        starred = self.day[0] in "*?" or self.weekday[0] in "*?"
        matched = (by_day and by_weekday) if starred else (by_day or by_weekday)
        return day.month in self.months and matched


def _number(text: str) -> int:
    if text in _MONTHS:
        return _MONTHS.index(text)
    return _WEEKDAYS.index(text) if text in _WEEKDAYS else int(text)


def _walk(element: str, low: int, high: int) -> list[int]:
    """The values of `*`, `a`, `a-b`, each with an optional step; a range may pass the end."""
    span, _, step = element.partition("/")
    first, _, last = span.partition("-")
    if first == "*":
        return list(range(low, high + 1, int(step or 1)))
    start = _number(first)
    stop = _number(last) if last else high if step else start
    if stop < start:
        stop += high - low + 1
    size = high - low + 1
    return [(value - low) % size + low for value in range(start, stop + 1, int(step or 1))]


def _values(field: str, text: str) -> set[int]:
    return {value for element in text.split(",") for value in _walk(element, *_LIMITS[field])}


def _is_day(element: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if element == "?":
        return True
    if element == "L":
        return day.day == last
    if element == "LW":
        rest = [date(day.year, day.month, d) for d in range(day.day + 1, last + 1)]
        return day.weekday() < 5 and all(later.weekday() >= 5 for later in rest)
    return day.day in _walk(element, 1, 31)


def _is_weekday(element: str, day: date) -> bool:
    if element == "?":
        return True
    weekday = day.isoweekday() % 7
    if "#" in element:
        name, _, nth = element.partition("#")
        return _number(name) % 7 == weekday and (day.day + 6) // 7 == int(nth)
    if element.endswith("L"):
        in_a_week = day + timedelta(days=7)
        return _number(element[:-1]) % 7 == weekday and in_a_week.month != day.month
    return weekday in _walk(element, 0, 6)


@cache
def walls(
    zone: str, start: datetime, end: datetime, step: timedelta
) -> list[tuple[datetime, datetime]]:
    """Each instant of the window with what the wall clock shows then."""
    info, shown = ZoneInfo(zone), []
    while start <= end:
        wall = start.astimezone(info).replace(tzinfo=None)
        shown.append((start, wall))
        start += step
    return shown


def fire_times(
    expression: str, zone: str, start: datetime, end: datetime, *, step: timedelta
) -> list[datetime]:
    """The fire times after `start`, which must not lie in a repeated time, until `end`."""
    job, shown = Job(expression), walls(zone, start.astimezone(UTC), end.astimezone(UTC), step)
    if job.follows_wall_clock:
        return [instant for instant, wall in shown[1:] if job.matches(wall)]
    fired, furthest = [], shown[0][1]
    for instant, wall in shown[1:]:
        due = False
        while furthest < wall:
            furthest += step
            due = due or job.matches(furthest)
        if due:
            fired.append(instant)
    return fired
