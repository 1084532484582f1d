"""Converts rows of the schedule queries, including damaged ones."""

import json
from contextlib import suppress
from functools import lru_cache
from time import monotonic

import structlog

from sidecar.adapters.postgres.database import Row
from sidecar.adapters.postgres.definition_cache import from_text
from sidecar.adapters.postgres.definitions import from_json
from sidecar.adapters.postgres.executions import metadata_of
from sidecar.model.definitions import Schedule
from sidecar.model.errors import DamagedRow
from sidecar.model.stored_schedule import SOURCES, StoredSchedule

log = structlog.get_logger()

_LOG_SECONDS = 60


@lru_cache(maxsize=1000)
def _log_damage(name: str, problem: str, _minute: int) -> None:
    """Log a damaged row at most once a minute: the same rows are read in every round."""
    log.warning("schedule_unusable", schedule=name, problem=problem)


def upcoming(row: Row, group: str) -> StoredSchedule | None:
    """The columns that the leader needs; None, and a warning in the log, if damaged."""
    try:
        definition = from_text(row["name"], group, row["definition"])
        _check_watermark(row)
    except DamagedRow as error:
        _log_damage(row["name"], str(error), int(monotonic() / _LOG_SECONDS))
        return None
    return StoredSchedule(
        definition=definition,
        source="api",
        watermark=row["watermark"],
        next_tick=row["next_tick"],
        next_due_at=row["next_due_at"],
        paused=row["paused"],
        id=row["id"],
        version=row["version"],
    )


def locked(row: Row) -> StoredSchedule:
    """A row locked for a change; a damaged one comes without its definition."""
    try:
        return stored(row)
    except DamagedRow as error:
        _log_damage(row["name"], str(error), int(monotonic() / _LOG_SECONDS))
        bare = Schedule(name=row["name"], group=row["group_name"], payload=bytes(row["payload"]))
        return StoredSchedule(
            definition=bare,
            source=row["source"] if row["source"] in SOURCES else "api",
            watermark=row["now"],
            paused=row["paused"],
            pause_note=row["pause_note"],
            retired_at=row["retired_at"],
            id=row["id"],
            version=row["version"],
            damage=str(error),
        )


def _check_watermark(row: Row) -> None:
    for column in ("watermark", "next_tick"):
        instant = row[column]
        if instant is not None and not 1970 <= instant.year < 2300:
            problem = f"its {column} lies in the year {instant.year}"
            raise DamagedRow(f"schedule {row['name']!r} is damaged in the database: {problem}")


def stored(row: Row) -> StoredSchedule:
    """All columns; DamagedRow if one cannot be read."""
    payload = bytes(row["payload"])
    _check_watermark(row)
    if row["source"] not in SOURCES:
        problem = f"its source {row['source']!r} is not known"
        raise DamagedRow(f"schedule {row['name']!r} is damaged in the database: {problem}")
    definition = row["definition"]
    if isinstance(definition, str):
        with suppress(ValueError):  # a damaged definition may be a JSON string
            definition = json.loads(definition)
    return StoredSchedule(
        definition=from_json(row["name"], row["group_name"], payload, definition),
        source=row["source"],
        watermark=row["watermark"],
        next_tick=row["next_tick"],
        next_due_at=row["next_due_at"],
        paused=row["paused"],
        pause_note=row["pause_note"],
        retired_at=row["retired_at"],
        id=row["id"],
        version=row["version"],
        created_at=row["created_at"],
        changed_at=row["changed_at"],
        counted_from=row["counted_from"],
        heartbeat_at=row.get("heartbeat_at"),
        metadata=metadata_of({"last_run_at": None, **_NOTHING, **row}),
    )


_NOTHING: Row = {
    "last_success_at": None,
    "run_count": 0,
    "last_error": "",
    "average_seconds": None,
    "last_seconds": None,
}
