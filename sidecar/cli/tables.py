"""The tables that commands print; control characters in texts of others are escaped."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sidecar._proto.baton.v1 import runs_pb2
from sidecar.adapters.convert import to_datetime
from sidecar.logs import visible

_CELL_MAX = 60
RUN_HEADER = ("RUN", "NAME", "DUE", "LATE", "ATTEMPT", "OUTCOME", "TOOK", "DETAIL")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; empty without rows."""
    cells = [[visible(str(cell))[:_CELL_MAX] for cell in row] for row in rows]
    if not cells:
        return ""
    lines = [list(header), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def run_row(run: runs_pb2.Run, now: datetime) -> Sequence[object]:
    state = runs_pb2.RunState.Name(run.state).removeprefix("RUN_STATE_").lower()
    outcome = runs_pb2.Outcome.Name(run.outcome).removeprefix("OUTCOME_").lower()
    reason = runs_pb2.SkipReason.Name(run.reason).removeprefix("SKIP_REASON_").lower()
    skipped = f" ({reason})" if run.outcome == runs_pb2.OUTCOME_SKIPPED else ""
    shown = run.progress or run.progress_message
    progress = f"{run.progress:.0%} {run.progress_message}".rstrip() if shown else ""
    return (
        run.run_id,
        run.name,
        ago(run, "scheduled_at", now),
        _between(run, "scheduled_at", "started_at"),
        run.attempt,
        (outcome if run.outcome else state) + skipped,
        _between(run, "started_at", "finished_at"),
        run.error or _declined(run) or progress,
    )


def _declined(run: runs_pb2.Run) -> str:
    """The app's reason for declining the run; known if the run has its history."""
    if run.reason != runs_pb2.SKIP_REASON_APP_DECLINED or not run.history:
        return ""
    return run.history[-1].cause


def ago(message: Any, field: str, now: datetime) -> str:
    """`3s ago`, `in 2m`, or `never`."""
    if not message.HasField(field):
        return "never" if field.startswith("last") else ""
    seconds = (now - to_datetime(getattr(message, field))).total_seconds()
    text = rough(abs(seconds))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


def _between(message: Any, start: str, end: str) -> str:
    if not message.HasField(start) or not message.HasField(end):
        return ""
    span = to_datetime(getattr(message, end)) - to_datetime(getattr(message, start))
    return rough(max(0.0, span.total_seconds()))


def rough(seconds: float) -> str:
    """A duration with three significant digits."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds * 1000:.3g}ms"
