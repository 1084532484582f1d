"""Parses and formats durations: `500ms`, `3s`, `5m`, `1h`, `7d`, and `1h30m`.

Guarantees: `parse(format_duration(s)) == s` for every whole number of milliseconds; `parse` rejects
a number without a unit, because it could mean seconds or milliseconds.
"""

import re

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = r"(?:[0-9]{1,12}(?:\.[0-9]{1,9})?)"
# Largest unit first, each at most once: "30m1h" and "1s1s" are more likely typos than intended.
_FORM = re.compile(
    rf"(?:({_PART})d)?(?:({_PART})h)?(?:({_PART})m(?!s))?(?:({_PART})s)?(?:({_PART})ms)?", re.ASCII
)


def parse(text: str) -> float:
    """The duration in seconds; raise ValueError with a message that does not contain the text."""
    match = _FORM.fullmatch(text)
    if match is None or not text:
        if re.fullmatch(r"[0-9.]+", text):
            raise ValueError("has no unit")
        raise ValueError("is not a duration")
    parts = zip(match.groups(), _UNITS_MS.values(), strict=True)
    return sum(float(number) * unit for number, unit in parts if number) / 1000


def format_duration(seconds: float) -> str:
    """A short form, exact to the millisecond: 5400 -> `1h30m`, 3.2 -> `3.2s`, 0.1 -> `100ms`."""
    if seconds < 0:
        raise ValueError("a duration is never negative")
    left = round(seconds * 1000)
    if left == 0:
        return "0s"
    if left > 1000 and left < 60_000 and left % 1000:
        return f"{left // 1000}.{f'{left % 1000:03d}'.rstrip('0')}s"
    text = ""
    for unit, size in _UNITS_MS.items():
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text
