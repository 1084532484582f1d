"""`baton preview`: the next fire times of a cron expression, one RFC 3339 instant per line.

Exit code 0, or 2 and one line on standard error. Nothing but fire times goes to standard output.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta, tzinfo

from sidecar.model.cron import Cron, parse

COUNT_MAX = 1_000
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_HASHED = re.compile(r"(^|[\s,])H(?![A-Z])", re.IGNORECASE)


def main(options: argparse.Namespace) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", options.count):
        return _refused(f"-n: {options.count[:40]!r} is not a number; allowed is 1 to {COUNT_MAX}")
    return run(options.expression, options.timezone, options.start, int(options.count))


def run(expression: str, timezone: str, start: str | None, count: int) -> int:
    """Print the next `count` fire times after `start` (default: now), with the zone's offset."""
    try:
        cron = parse(expression, timezone=timezone)
        after = datetime.now(UTC) if start is None else _instant(start)
    except ValueError as error:  # a CronError is one
        return _refused(str(error))
    if not 1 <= count <= COUNT_MAX:
        return _refused(f"-n: {count} is out of range; allowed is 1 to {COUNT_MAX}")
    _print_ticks(cron, after, count)
    if _HASHED.search(expression):
        _note("H depends on cluster and schedule name, which a preview does not know")
    return 0


def _print_ticks(cron: Cron, after: datetime, count: int) -> None:
    for _ in range(count):
        tick = cron.next(after)
        if tick is None:
            _note("there are no further fire times before the year 2200")
            return
        print(_rfc3339(tick, cron.zone))
        after = tick


def _instant(text: str) -> datetime:
    problem = f"--from: {text[:40]!r} is not an RFC 3339 instant such as 2026-03-29T00:00:00Z"
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(problem)
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(problem) from None


def _rfc3339(instant: datetime, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    # Until the 1970s some offsets had seconds, which RFC 3339 cannot write.
    whole = not (local.utcoffset() or timedelta(0)) % timedelta(minutes=1)
    return (local if whole else instant).isoformat()


def _refused(problem: str) -> int:
    print(f"baton preview: {problem}", file=sys.stderr)
    return 2


def _note(text: str) -> None:
    print(f"baton preview: note: {text}", file=sys.stderr)
