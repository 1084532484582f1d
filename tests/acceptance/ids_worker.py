"""One runner that makes ids as fast as it can and writes down those it was given.

    python -m tests.acceptance.ids_worker DATABASE_URL RUNNER FILE

The file holds 64-bit numbers in the order in which they came. Leases last 2 s instead of minutes:
a runner that is frozen for a moment has slept through its own.
"""

from __future__ import annotations

import asyncio
import random
import sys
from array import array
from contextlib import suppress
from pathlib import Path

from sidecar import ids
from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres import machines
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.membership import Membership
from sidecar.model.errors import StoreUnavailable
from sidecar.model.identity import Identity

ids.LEASE_SECONDS = 2.0
ids.RENEW_AFTER_SECONDS = 0.4
machines.GRACE_SECONDS = 0.5


async def joined(membership: Membership) -> Identity:
    """Beside seven others that start just now, the database may take its time."""
    while True:
        with suppress(StoreUnavailable):
            return await membership.join("orders", "", ["default"])
        await asyncio.sleep(0.2)


async def work(url: str, runner: str, file: Path) -> None:
    database = Database(lambda: url, schema="baton", size=1, statement_seconds=3.0)
    membership = Membership(database, runner_id=runner, host="h", version="0")
    identity = await joined(membership)
    leases = machines.Machines(database, lambda: identity, lease_seconds=ids.LEASE_SECONDS)
    source = ids.Ids(leases, boottime)
    with file.open("ab", buffering=0) as given:
        while True:
            with suppress(StoreUnavailable):
                batch = await source.generate(random.choice([1, 10, 1000, 10_000]))
                given.write(array("Q", batch).tobytes())
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
