"""The last results of singletons (table `execution`), readable from any pod."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

from sidecar.adapters.postgres.database import Database, Row
from sidecar.model.identity import Identity
from sidecar.model.run import ExecutionMetadata

_MEASURED_SECONDS_MAX = 1e9


@dataclass(frozen=True, slots=True)
class Remembered:
    metadata: ExecutionMetadata
    heartbeat_at: datetime | None = None


class PostgresExecutions:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def of_singletons(self, names: Sequence[str]) -> dict[str, Remembered]:
        """By name; a singleton that never ran is missing."""
        identity = await self._identity()
        rows = await self._database.fetch(
            "executions/singletons", {"cluster_id": identity.cluster_id, "names": list(names)}
        )
        return {row["name"]: Remembered(metadata_of(row), row["heartbeat_at"]) for row in rows}


def metadata_of(row: Row) -> ExecutionMetadata:
    return ExecutionMetadata(
        last_run_at=row["last_run_at"],
        last_success_at=row["last_success_at"],
        run_count=max(0, row["run_count"] or 0),
        last_error=row["last_error"] or "",
        missed_count=max(0, row.get("missed_count") or 0),
        average_seconds=_measured(row["average_seconds"]),
        last_seconds=_measured(row["last_seconds"]),
    )


def _measured(seconds: float | None) -> float | None:
    """None if the stored value cannot be a duration."""
    valid = seconds is not None and isfinite(seconds) and 0 <= seconds < _MEASURED_SECONDS_MAX
    return seconds if valid else None
