"""Lengths of time as users write them: a timedelta, seconds, or text such as `30s`."""

from __future__ import annotations

import re
from datetime import timedelta

Span = timedelta | float | str

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def span(value: Span | None) -> timedelta | None:
    """The length of time; text is written as in the configuration file: `500ms`, `3s`, `7d`."""
    if value is None or isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        return timedelta(seconds=value)
    match = _TEXT.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is no duration; write it as 500ms, 3s, 5m, 1h or 7d")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2]])
