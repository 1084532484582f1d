"""Parses the text of a cron expression into bit masks.

Each field accepts `*`, values, names, ranges `a-b`, steps `*/n` `a-b/n` `a/n`, lists of these, and
hashed values `H` `H(a-b)` `H/n` `H(a-b)/n`. Both day fields accept `?` (the same as `*`); day of
month accepts `L` and `LW`; day of week accepts `nL` (or `Ln`) and `n#k`. Names and macros are case
insensitive.

Where cron implementations differ: a range may wrap around (`FRI-MON`, `22-2`; Vixie cron rejects
it), and its step continues across the end; `a/n` means from a to the end of the field; a step
beyond the end of the field is allowed, as in Debian, and selects only the first value; `a-a` is a.

Croniter expands lists, ranges and steps. It expands `a-a` to the whole field and miscounts steps
across the end of a field, so it only gets a canonical form that contains neither.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from croniter import croniter

LENGTH_MAX = 500
LAST = 0  # the k that marks the last such weekday of the month

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronError(ValueError):
    """The expression is invalid; the message names the field and the allowed values."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its range, the names of its values, and the largest value of a bare `H`."""

    name: str
    low: int
    high: int
    hash_high: int
    names: tuple[str, ...] = ()
    is_day: bool = False

    def refused(self, text: str, why: str) -> CronError:
        return CronError(f"{self.name}: {text[:40]!r} {why}")


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SECOND = Field("second", 0, 59, 59)
_MINUTE = Field("minute", 0, 59, 59)
_HOUR = Field("hour", 0, 23, 23)
_DAY = Field("day of month", 1, 31, 28, is_day=True)  # every month has a 28th
_MONTH = Field("month", 1, 12, 12, _MONTHS)
_WEEKDAY = Field("day of week", 0, 6, 6, _WEEKDAYS, is_day=True)
_FIELDS = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)

_VALUE = r"[0-9]{1,4}|[A-Z]{3}"
_RANGE = re.compile(rf"(?:(\*)|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]{{1,4}}))?", re.ASCII)
_HASH = re.compile(r"H(?:\(([0-9]{1,4})-([0-9]{1,4})\))?(?:/([0-9]{1,4}))?", re.ASCII)
_NTH = re.compile(rf"({_VALUE})#([0-9]{{1,4}})", re.ASCII)
_LAST_WEEKDAY = re.compile(r"(?:L([0-9]|[A-Z]{3})|([0-9]|[A-Z]{3})L)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fields:
    """A parsed expression as bit masks: bit n represents the value n."""

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    last_day: bool  # L
    last_workday: bool  # LW
    nth_weekdays: int  # bit 8 * weekday + k for `weekday#k`; k is LAST for the last one
    follows_wall_clock: bool  # minute or hour starts with `*`
    either_day: bool  # neither day field starts with `*`: a match of either is enough


@dataclass(slots=True)
class _Column:
    """One parsed field; `pieces` are in the canonical form that croniter expands correctly."""

    pieces: list[str]
    last: bool = False
    last_workday: bool = False
    nth: int = 0
    mask: int = 0  # of the plain values


def parse_fields(expression: str, hash_key: str) -> Fields:
    """Parse an expression; raise CronError for syntax that the module docstring does not list."""
    texts = _split(expression)
    columns = [
        # Only hashed fields depend on the key: without it, all others share one cache entry.
        _read_column(position, text, hash_key if "H" in text else "")
        for position, text in enumerate(texts)
    ]
    seconds, minutes, hours, days, months, weekdays = (column.mask for column in columns)
    return Fields(
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        last_day=columns[3].last,
        last_workday=columns[3].last_workday,
        nth_weekdays=columns[5].nth,
        follows_wall_clock=texts[1].startswith("*") or texts[2].startswith("*"),
        either_day=not texts[3].startswith(("*", "?")) and not texts[5].startswith(("*", "?")),
    )


def _split(expression: str) -> list[str]:
    if len(expression) > LENGTH_MAX:
        raise CronError(f"expression: longer than {LENGTH_MAX} characters")
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in _MACROS:
            raise CronError(f"expression: {text[:40]!r} is unknown; use {', '.join(_MACROS)}")
        text = _MACROS[text.lower()]
    texts = text.upper().split()
    if len(texts) not in (5, 6):
        raise CronError(f"expression: has {len(texts)} fields, not 5 (or 6 with seconds first)")
    return texts if len(texts) == 6 else ["0", *texts]


@lru_cache(maxsize=1024)  # ten thousand schedules share a few hundred distinct fields
def _read_column(position: int, text: str, hash_key: str) -> _Column:
    field, column = _FIELDS[position], _Column([])
    if field.is_day and text == "?":
        column.pieces.append("*")
    else:
        for element in text.split(","):
            if not _read_special(field, element, column):
                column.pieces.extend(_read_plain(field, element, hash_key))
    if column.pieces:  # empty if the field has only L, LW, nL or n#k
        column.mask = _expand(position, ",".join(column.pieces))
    return column


def _read_special(field: Field, element: str, column: _Column) -> bool:
    """Parse L, LW, nL or n#k into `column`; return False for any other element."""
    if field is _DAY and element in ("L", "LW"):
        column.last |= element == "L"
        column.last_workday |= element == "LW"
        return True
    if field is not _WEEKDAY:
        return False
    if match := _NTH.fullmatch(element):
        nth = int(match[2])
        if not 1 <= nth <= 5:
            raise field.refused(element, "asks for a week that no month has; allowed is #1 to #5")
        column.nth |= 1 << 8 * (_value(field, match[1], element) % 7) + nth
        return True
    if match := _LAST_WEEKDAY.fullmatch(element):
        column.nth |= 1 << 8 * (_value(field, match[1] or match[2], element) % 7) + LAST
        return True
    return False


def _read_plain(field: Field, element: str, hash_key: str) -> Iterator[str]:
    if match := _HASH.fullmatch(element):
        return _hashed(field, match, hash_key)
    match = _RANGE.fullmatch(element)
    if match is None:
        raise field.refused(element, f"is not understood; {_allowed(field)}")
    star, first, last, step_text = match.groups()
    step = _step(field, step_text, element)
    if star:
        return _canonical(field, field.low, field.high, step)
    low = _value(field, first, element)
    if last:
        return _canonical(field, low, _value(field, last, element), step)
    return _canonical(field, low, field.high if step_text else low, step)


def _hashed(field: Field, match: re.Match[str], hash_key: str) -> Iterator[str]:
    """`H` is one value, `H/n` every n-th value from a hashed start, both within the range."""
    low, high = field.low, field.hash_high
    if match[1]:
        low, high = (_value(field, match[i], match[0]) for i in (1, 2))
        if low > high:
            raise field.refused(match[0], "is a range that ends before it begins")
    digest = hashlib.sha256(f"{hash_key}/{field.name}".encode()).digest()
    step = _step(field, match[3], match[0]) if match[3] else high - low + 1
    start = low + int.from_bytes(digest[:8], "big") % min(step, high - low + 1)
    return _canonical(field, start, high if match[3] else start, step)


def _canonical(field: Field, low: int, high: int, step: int) -> Iterator[str]:
    """The same values without a range that wraps, without weekday 7 and without `a-a`."""
    if (low, high, step) == (field.low, field.high, 1):
        yield "*"
        return
    if field is _WEEKDAY:
        if (low, high) == (0, 7):
            high = 6
        low, high = low % 7, high % 7
    if low > high:
        yield _piece(low, field.high, step)
        low = field.low + -(field.high - low + 1) % step
        if low > high:
            return
    yield _piece(low, high, step)


def _piece(low: int, high: int, step: int) -> str:
    return f"{low}-{high}/{step}" if low < high else str(low)


def _step(field: Field, text: str | None, element: str) -> int:
    step = int(text) if text else 1
    if step == 0:
        raise field.refused(element, "has a step of 0")
    return step


def _value(field: Field, text: str, element: str) -> int:
    if text in field.names:
        return field.low + field.names.index(text)
    top = 7 if field is _WEEKDAY else field.high  # Sunday is 0 and 7
    if not text.isdecimal():
        raise field.refused(element, f"is not understood; {_allowed(field)}")
    if not field.low <= int(text) <= top:
        raise field.refused(element, f"is out of range; {_allowed(field)}")
    return int(text)


def _allowed(field: Field) -> str:
    top = 7 if field is _WEEKDAY else field.high
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return f"allowed are values from {field.low} to {top}{names}, ranges, lists, steps and H"


def _expand(position: int, text: str) -> int:
    texts = ["*"] * len(_FIELDS)
    texts[position] = text
    seconds_last = croniter.expand(" ".join(texts), second_at_beginning=True)[0]
    values = seconds_last[position - 1]
    field = _FIELDS[position]
    numbers = range(field.low, field.high + 1) if "*" in values else values
    return sum(1 << int(number) for number in numbers)
