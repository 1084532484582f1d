"""Checkpoints and heartbeats of jobs, sent by the app for the live attempt.

Guarantee: of an attempt that is not live, or of a fenced worker, nothing is stored (G3).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from sidecar.adapters.postgres.database import Database
from sidecar.model.errors import Fenced
from sidecar.model.identity import Identity
from sidecar.model.run import CHECKPOINT_BYTES_MAX, CHECKPOINTS_MAX, RunRef
from sidecar.model.run_records import StoredStep


class PostgresJobRecords:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep:
        parameters = await self._of(run) | {
            "step": step,
            "value": value,
            "count_max": CHECKPOINTS_MAX,
            "bytes_max": CHECKPOINT_BYTES_MAX,
        }
        (row,) = await self._database.fetch("jobs/checkpoint", parameters)
        if not row["is_current"]:
            raise Fenced(f"attempt {run.attempt} of job {run.run_id} is not the live one")
        existing = row["existing"]
        return StoredStep(row["stored"], None if existing is None else bytes(existing))

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> bool:
        """False: the attempt is not the live one."""
        parameters = await self._of(run) | {"progress": progress, "message": message}
        return bool(await self._database.fetch("jobs/heartbeat", parameters))

    async def _of(self, run: RunRef) -> dict[str, Any]:
        identity = await self._identity()
        return {
            "cluster_id": identity.cluster_id,
            "run_id": run.run_id,
            "attempt": run.attempt,
            "worker_id": run.epoch,
        }
