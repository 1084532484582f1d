"""The last results of singletons (table `execution`), readable from any pod."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.runs import metadata_of
from sidecar.model.identity import Identity
from sidecar.model.run import ExecutionMetadata


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
