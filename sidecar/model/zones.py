"""Time zones in whole seconds: the offset at an instant, and the instant of a wall time.

Instants are Unix seconds. A wall time is the number of Unix seconds that it would be in UTC, so no
code needs a naive datetime, and arithmetic is exact. Guarantees: only names of the IANA database
are accepted, never a path or the zone of this machine; `first_instant` never decreases while the
wall time increases, in every zone.

This module relies on one property of the database, which a test verifies: no zone changes its
offset twice within two days.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

DAY_SECONDS = 86_400
_SHAPE = re.compile(r"[A-Z][A-Z0-9_+-]*(/[A-Z0-9_+-]+){0,2}", re.IGNORECASE | re.ASCII)
# Other files in the zone folder, such as this machine's zone and the POSIX default rule.
_NOT_ZONES = frozenset({"localtime", "factory", "posixrules", "leapseconds", "tzdata.zi"})
_NOT_FOLDERS = ("posix/", "right/")  # copies of the database; `right` counts leap seconds
_SECOND = timedelta(seconds=1)
_STRIDE = 2 * DAY_SECONDS
_CHUNK = 192 * _STRIDE


class ZoneError(ValueError):
    """The name is not a zone of the IANA database."""


def load_zone(name: str) -> ZoneInfo:
    """The zone with that IANA name; one shared object per name."""
    if not name:
        raise ZoneError("empty; allowed is an IANA name such as Europe/Berlin or UTC")
    folded = name.lower()
    well_formed = len(name) <= 64 and _SHAPE.fullmatch(name) is not None
    if well_formed and folded not in _NOT_ZONES and not folded.startswith(_NOT_FOLDERS):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # OSError: the name of a folder, such as America
    raise ZoneError(f"{name[:64]!r} is not an IANA time zone{_suggestion(folded)}")


def offset_at(zone: ZoneInfo, instant: int) -> int:
    """The offset of the wall clock from UTC at that instant, in seconds."""
    offset = datetime.fromtimestamp(instant, zone).utcoffset()
    return 0 if offset is None else offset // _SECOND


def next_change(zone: ZoneInfo, start: int, end: int) -> int | None:
    """The first instant in (start, end] with a new offset; `end - start` is at most two days."""
    changed = offset_at(zone, start) != offset_at(zone, end)
    return change_between(zone, start, end) if changed else None


def change_between(zone: ZoneInfo, start: int, end: int) -> int:
    """The instant of the change in (start, end]; the caller knows that there is one."""
    before = offset_at(zone, start)
    while end - start > 1:
        middle = (start + end) // 2
        if offset_at(zone, middle) == before:
            start = middle
        else:
            end = middle
    return end


def first_instant(zone: ZoneInfo, wall: int) -> int:
    """The instant at which the wall clock first shows `wall` or jumps over it."""
    start, end = wall - DAY_SECONDS, wall + DAY_SECONDS
    before, after = offset_at(zone, start), offset_at(zone, end)
    if before == after:
        return wall - before
    change = change_between(zone, start, end)
    if wall < change + before:
        return wall - before  # shown before the change; a second time would be later
    return max(change, wall - after)  # a wall time in the gap gives the instant of the change


def furthest_shown(zone: ZoneInfo, instant: int) -> int:
    """The latest wall time that the clock has shown up to that instant."""
    shown = instant + offset_at(zone, instant)
    change = next_change(zone, instant - 2 * DAY_SECONDS, instant)
    if change is None:
        return shown
    return max(shown, change - 1 + offset_at(zone, change - 1))


def spans(zone: ZoneInfo, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Split [start, end) at offset changes; yield start, end and offset of each part."""
    for chunk in range(start // _CHUNK, (end - 1) // _CHUNK + 1):
        for change in _changes(zone, chunk):
            if start < change < end:
                yield start, change, offset_at(zone, start)
                start = change
    yield start, end, offset_at(zone, start)


@lru_cache(maxsize=2048)
def _changes(zone: ZoneInfo, chunk: int) -> tuple[int, ...]:
    """All offset changes in one chunk of time, about a year."""
    found = []
    for start in range(chunk * _CHUNK - 1, (chunk + 1) * _CHUNK - 1, _STRIDE):
        change = next_change(zone, start, start + _STRIDE)
        if change is not None:
            found.append(change)
    return tuple(found)


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones() if name.lower() not in _NOT_ZONES}


def _suggestion(folded: str) -> str:
    names = _names()
    cities = {name.rsplit("/", 1)[-1]: name for name in names}
    for known in (names, cities):
        for close in difflib.get_close_matches(folded[:64], known, n=1, cutoff=0.8):
            return f"; did you mean {names[cities.get(close, close)]}?"
    return "; allowed is a name such as Europe/Berlin or UTC"
