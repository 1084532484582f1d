"""What the leader of the first group does for jobs: admissions, expiry, batches; and cleaning up.

Guarantee: admissions hold the group's term; under an old epoch they change nothing and raise
`Fenced` (G3).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sidecar.adapters.postgres.database import Database, Row
from sidecar.model.errors import Fenced
from sidecar.model.identity import Identity
from sidecar.model.job_records import Admitted
from sidecar.model.queue_limits import QueueLimits
from sidecar.model.term import Term

PARK_MAX = 100_000


class PostgresJobAdmission:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def limits(self) -> list[QueueLimits]:
        identity = await self._identity()
        rows = await self._database.fetch("jobs/limits", {"cluster_id": identity.cluster_id})
        return [QueueLimits(**row) for row in rows]

    async def park(self, term: Term, queues: Sequence[str]) -> int:
        rows = await self._fenced("jobs/park", term, queues=list(queues), limit=PARK_MAX)
        return int(rows[0]["parked"])

    async def admit(self, term: Term, rooms: Mapping[str, int]) -> Admitted:
        rows = await self._fenced(
            "jobs/admit", term, queues=list(rooms), rooms=list(rooms.values())
        )
        counts = {row["queue"]: row["count"] for row in rows if row["queue"] is not None}
        return Admitted(counts, rows[0]["now"], rows[0]["next_due_at"])

    async def complete_batches(self, term: Term) -> int:
        """Submit what closed batches wait for whose jobs have all ended; how many."""
        rows = await self._fenced("jobs/complete_batches", term)
        return int(rows[0]["count"])

    async def expire(self, *, limit: int) -> int:
        """End jobs that were not started in time; how many."""
        identity = await self._identity()
        parameters = {"cluster_id": identity.cluster_id, "limit": limit}
        return len(await self._database.fetch("jobs/expire", parameters))

    async def sweep(self, *, keep_seconds: float) -> None:
        identity = await self._identity()
        parameters = {"cluster_id": identity.cluster_id, "keep_seconds": keep_seconds}
        await self._database.fetch("jobs/sweep", parameters)

    async def partitions(self, *, keep_seconds: float) -> list[str]:
        """Make and drop day partitions; what was done."""
        row = await self._database.fetch_one("jobs/partitions", {"keep_seconds": keep_seconds})
        return list(row["done"]) if row else []

    async def _fenced(self, query: str, term: Term, **parameters: Any) -> list[Row]:
        identity = await self._identity()
        rows = await self._database.fetch(query, _of(term, identity) | parameters)
        if not rows[0]["is_current"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        return rows


def _of(term: Term, identity: Identity) -> dict[str, Any]:
    return {
        "cluster_id": identity.cluster_id,
        "group_id": term.group_id,
        "epoch": term.epoch,
    }
