"""Machine numbers of snowflake ids, leased in Postgres.

Guarantees: each lease of a number reserves a window of time that begins where the last one ended,
by the database's clock; a number goes to another runner only after its lease and a grace period.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sidecar.adapters.postgres.database import Database, Row
from sidecar.model.errors import LimitExceeded, StoreUnavailable
from sidecar.model.identity import Identity
from sidecar.model.snowflake import EPOCH_UNIX_MS, MACHINES_MAX, Lease, Window

GRACE_SECONDS = 60.0  # clocks may run at different rates
_TRIES = 50
_SECONDS_MAX = 3.0


class Machines:
    """The machine numbers of one cluster. `identity` is called each time."""

    def __init__(
        self, database: Database, identity: Callable[[], Identity], *, lease_seconds: float
    ) -> None:
        self._database = database
        self._identity = identity
        self._lease_seconds = lease_seconds

    async def acquire(self) -> Lease:
        """Lease a number; LimitExceeded if all are leased."""
        for _ in range(_TRIES):
            row = await self._fetch("acquire", {"machines_max": MACHINES_MAX})
            if row is not None and row["number"] is not None:
                return _lease(row)
            if row is not None and row["taken"] >= MACHINES_MAX:
                raise LimitExceeded(
                    f"all {MACHINES_MAX:,} machine numbers of this cluster are leased; one is free "
                    f"again {self._lease_seconds + GRACE_SECONDS:g} s after its runner vanished"
                )
        raise StoreUnavailable("other runners were faster to take each machine number")

    async def renew(self, number: int, used_ms: int) -> Lease | None:
        """Extend the lease. None: another runner has the number now."""
        row = await self._fetch("renew", {"number": number, "used_ms": used_ms})
        return None if row is None else _lease(row)

    async def release(self, number: int, used_ms: int) -> None:
        await self._fetch("release", {"number": number, "used_ms": used_ms})

    async def _fetch(self, query: str, parameters: Mapping[str, Any]) -> Row | None:
        identity = self._identity()
        common = {
            "cluster_id": identity.cluster_id,
            "runner_id": identity.runner_id,
            "epoch_ms": EPOCH_UNIX_MS,
            "lease_seconds": self._lease_seconds,
            "grace_seconds": GRACE_SECONDS,
            "window_ms": round((self._lease_seconds + GRACE_SECONDS) * 1000),
        }
        return await self._database.fetch_one(
            f"machines/{query}", {**common, **parameters}, seconds=_SECONDS_MAX
        )


def _lease(row: Row) -> Lease:
    return Lease(Window(row["number"], row["floor_ms"], row["ceiling_ms"]), row["now_ms"])
