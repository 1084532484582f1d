"""Snowflake ids from a machine number that is leased with the first request.

Guarantees: ids are unique in the cluster, and those of one runner increase. The lease counts from
its request, on a clock that includes suspended time; a runner that was suspended past its lease
renews it before it generates another id. Its ids lie in a time window that no other runner gets
(see `model/snowflake.py`), so even an answer that is hours late repeats no id. The time in an id is
the database's. Without Postgres ids are available until the lease expires: 5 minutes. The one
exception: a failover of Postgres that loses a committed lease may assign its number again.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.model import snowflake
from sidecar.model.errors import InvalidArgument, StoreUnavailable
from sidecar.model.snowflake import BATCH_MAX, Lease, Parts

log = structlog.get_logger()

LEASE_SECONDS = 300.0
RENEW_AFTER_SECONDS = 60.0
RETRY_SECONDS = 1.0  # after a renewal that failed, while the lease lasts
_TRIES = 3


class Machines(Protocol):
    """Leases of machine numbers; each lasts LEASE_SECONDS from its request."""

    async def acquire(self) -> Lease: ...
    async def renew(self, number: int, used_ms: int) -> Lease | None: ...
    async def release(self, number: int, used_ms: int) -> None: ...


class Ids:
    """Generates ids and decomposes them."""

    def __init__(self, machines: Machines, clock: Callable[[], float]) -> None:
        self._machines = machines
        self._clock = clock
        self._lease: Lease | None = None
        self._received_at = 0.0
        self._asked_at = 0.0
        self._renew_at = 0.0
        self._position = 0
        self._renewal: asyncio.Task[None] | None = None

    async def generate(self, count: int) -> list[int]:
        """`count` new ids in increasing order; 0 means 1."""
        if not 0 <= count <= BATCH_MAX:
            raise InvalidArgument("count", f"must be 0 to {BATCH_MAX:,}, not {count}")
        for _ in range(_TRIES):
            ids = self._taken(count or 1)
            if ids is not None:
                metrics.IDS_GENERATED.inc(len(ids))
                return ids
            # Shielded: other callers may wait for the same lease.
            await asyncio.shield(self._renewing())
        raise StoreUnavailable("no machine number could be leased in time")

    def decompose(self, id: int) -> Parts:
        """The parts that an id was made from."""
        try:
            return snowflake.decomposed(id)
        except ValueError as error:
            raise InvalidArgument("id", str(error)) from None

    async def close(self) -> None:
        """Release the machine number, so that another runner can lease it at once."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            await self._machines.release(lease.window.machine, snowflake.used_ms(self._position))
        except StoreUnavailable as error:
            log.info("machine_number_not_released", error=error)  # the lease expires by itself

    def _taken(self, count: int) -> list[int] | None:
        """Does not await: no other task runs between the check of the lease and its use."""
        now = self._clock()
        if self._lease is None or now >= self._asked_at + LEASE_SECONDS:
            return None
        now_ms = self._lease.now_ms + int((now - self._received_at) * 1000)
        found = snowflake.taken(self._lease.window, self._position, now_ms, count)
        if found is None:
            return None
        ids, self._position = found
        if now >= self._renew_at:
            self._renewing()
        return ids

    def _renewing(self) -> asyncio.Task[None]:
        """The renewal in progress, started if there is none."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(), name="ids.renew")
            self._renewal.add_done_callback(_report)
        return self._renewal

    async def _renew(self) -> None:
        asked_at = self._clock()
        self._renew_at = asked_at + RETRY_SECONDS
        lease = None
        if self._lease is not None:
            used_ms = snowflake.used_ms(self._position)
            lease = await self._machines.renew(self._lease.window.machine, used_ms)
            if lease is None:
                log.warning("machine_number_lost", number=self._lease.window.machine)
                self._lease = None
                asked_at = self._clock()
        if lease is None:
            lease = await self._machines.acquire()
            self._position = snowflake.first_position(lease.window, self._position)
            log.info("machine_number_leased", number=lease.window.machine)
        self._lease, self._asked_at, self._received_at = lease, asked_at, self._clock()
        self._renew_at = asked_at + RENEW_AFTER_SECONDS


def _report(renewal: asyncio.Task[None]) -> None:
    """Log the error of a renewal in the background, which no caller may await."""
    if not renewal.cancelled() and (error := renewal.exception()) is not None:
        log.warning("machine_number_not_renewed", error=error)
