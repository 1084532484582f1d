"""Worker leases, and what is done for workers that lost theirs.

Guarantees: a beat waits for no completion; a fenced worker can neither claim nor complete; its jobs
are returned only after it was fenced, and its row goes after the last of them (G14).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sidecar.adapters.postgres.database import Database
from sidecar.model.errors import StoreUnavailable
from sidecar.model.identity import Identity
from sidecar.model.job import RESCUES_MAX
from sidecar.model.worker_lease import Beat, Lease

RETURN_MAX = 1000
_BEAT_SECONDS_MAX = 1.5  # then it is sent again: the trust of the last one still lasts
_FENCE_SECONDS_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Returned:
    """How many jobs of a worker are due again, and how many became dead letters."""

    count: int = 0
    dead: int = 0


class PostgresWorkers:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def register(self) -> Lease:
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "runner_id": identity.runner_id,
            "host": identity.host,
        }
        row = await self._database.fetch_one("jobs/register", parameters)
        if row is None:
            raise StoreUnavailable("the worker lease was not stored")
        return Lease(row["id"])

    async def beat(self, lease: Lease, *, neighbours: int | None) -> list[Beat] | None:
        """Renew the lease; the beats of other workers. None: the lease is over."""
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "worker_id": lease.worker_id,
            "neighbours": neighbours,
        }
        rows = await self._database.fetch("jobs/beat", parameters, seconds=_BEAT_SECONDS_MAX)
        if not any(row["own"] for row in rows):
            return None
        return [
            Beat(row["worker_id"], row["sequence"], row["fenced"]) for row in rows if not row["own"]
        ]

    async def fence(self, worker_id: int, *, sequence: int | None = None) -> bool:
        """Fence a worker; with `sequence`, only if that is still its last beat."""
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "runner_id": identity.runner_id,
            "worker_id": worker_id,
            "sequence": sequence,
        }
        return bool(
            await self._database.fetch("jobs/fence", parameters, seconds=_FENCE_SECONDS_MAX)
        )

    async def return_jobs(self, worker_id: int, *, rescued: bool, cause: str) -> Returned:
        """Give back all jobs of a fenced worker, then forget the worker."""
        count = dead = 0
        while True:
            row = await self._database.fetch_one(
                "jobs/return",
                {
                    "worker_id": worker_id,
                    "rescued": rescued,
                    "rescues_max": RESCUES_MAX,
                    "limit": RETURN_MAX,
                    "cause": cause,
                },
            )
            if row is None or not row["found"]:
                break
            count, dead = count + row["returned"], dead + row["dead"]
        await self._database.fetch("jobs/forget_worker", {"worker_id": worker_id})
        return Returned(count, dead)
