"""The copies in Redis: looked up within a time limit, written in the background.

Guarantees: no method raises because of Redis, and only `find` waits for it. `find` waits at most
the cache's own time limit, and not at all while the circuit breaker is open. The queue of pending
copies is bounded: the oldest is dropped when it is full, and other pods see that change when their
copy expires.
"""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol, TypeVar

import structlog

from sidecar import metrics
from sidecar.batching import Batcher
from sidecar.model.errors import LimitExceeded, SidecarError
from sidecar.model.state_types import Address, Cached, CacheError, Reading, Record
from sidecar.state.freshness import DatabaseTimeBound, Floors
from sidecar.state.ports import Cache, StateTable

log = structlog.get_logger()
T = TypeVar("T")

PENDING_MAX = 2000
PENDING_BYTES_MAX = 16 * 1024 * 1024
READ_BATCH = 32  # values of up to 1 MiB: bounds the memory that one round trip needs
COPIED_MAX = 10_000
OUTDATED_MAX = 50_000
CLEARED_MAX = 100
_WRITE_BATCH = 64
_WRITE_BATCH_BYTES = 4 * 1024 * 1024
# Retrying faster would use up the connections that readers wait for.
_RETRY_SECONDS = 0.5
_QUIET_SECONDS = 10.0


class Copies(Protocol):
    """What the store needs from the copies; `NoCopies` where no Redis is configured."""

    async def find(self, address: Address) -> Record | None:
        """A copy that is fresh enough, tombstones included; None: read Postgres."""
        ...

    def remember(self, address: Address, reading: Reading, asked: float) -> None:
        """Remember what Postgres returned, so that it is copied. `asked`: when the read began."""
        ...

    def outdated(self, address: Address) -> None:
        """The entry was written without the store: this pod rejects copies made before now."""
        ...

    def cleared(self, prefix: str) -> None:
        """All entries were deleted just now: this pod rejects copies made before now."""
        ...


class Breaker(Protocol):
    def room(self, now: float) -> float: ...
    def began(self, now: float) -> bool: ...
    def succeeded(self) -> None: ...
    def failed(self, now: float, *, probe: bool) -> None: ...
    def abandoned(self, *, probe: bool) -> None: ...


class NoCopies:
    """No Redis: every read goes to Postgres."""

    async def find(self, address: Address) -> Record | None:
        return None

    def remember(self, address: Address, reading: Reading, asked: float) -> None:
        return None

    def outdated(self, address: Address) -> None:
        return None

    def cleared(self, prefix: str) -> None:
        return None


class RedisCopies:
    """Copies in a cache that may be slow, down, flushed or stale. `run` writes them."""

    def __init__(
        self,
        cache: Cache,
        table: StateTable,
        breaker: Breaker,
        *,
        ttl_seconds: float,
        budget_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._table = table
        self._breaker = breaker
        self._ttl_seconds = ttl_seconds
        self._budget_seconds = budget_seconds
        self._monotonic = monotonic
        self._clock = DatabaseTimeBound()
        self._floors = Floors(ttl_seconds)
        self._space = ""
        self._pending: dict[Address, Cached] = {}
        self._pending_bytes = 0
        self._copied: dict[Address, tuple[int, float]] = {}
        self._outdated: dict[Address, float] = {}  # since when
        self._cleared: dict[str, float] = {}  # prefixes, and when
        self._wake = asyncio.Event()
        self._quiet_until = 0.0
        self._find_batch = Batcher(
            self._lookup, name_of=lambda address: address.key, size=READ_BATCH
        )

    async def find(self, address: Address) -> Record | None:
        now = self._clock.now(self._monotonic())
        if now is None or not self._space or address in self._outdated:
            return None
        if not self._breaker.room(self._monotonic()):
            return None
        with suppress(CacheError, LimitExceeded, TimeoutError):
            async with asyncio.timeout(self._budget_seconds):
                cached = await self._find_batch(address)
            # Take the time again: the lookup took a while, and this pod may have written meanwhile.
            now = self._clock.now(self._monotonic()) or now
            if cached is not None and self._fresh(cached, now):
                return cached.record
            self._copied.pop(address, None)  # Redis no longer has the copy that we sent
        return None

    def remember(self, address: Address, reading: Reading, asked: float) -> None:
        self._clock.update(reading.as_of, asked=asked)
        if self._outdated.get(address, math.inf) <= asked:
            del self._outdated[address]
        now = self._clock.now(self._monotonic())
        if now is None or reading.record is None:
            return
        self._floors.raise_to(address, reading.record.version, now)
        if not reading.current or self._has_copy(address, reading.record.version):
            return
        self._take_pending(address)
        self._pending[address] = Cached(address, reading.record, reading.as_of)
        self._pending_bytes += len(reading.record.value or b"")
        self._copied[address] = (reading.record.version, self._monotonic())
        if len(self._copied) > COPIED_MAX:
            del self._copied[next(iter(self._copied))]
        while len(self._pending) > PENDING_MAX or self._pending_bytes > PENDING_BYTES_MAX:
            self._take_pending(next(iter(self._pending)))
        self._wake.set()

    def outdated(self, address: Address) -> None:
        self._outdated[address] = self._monotonic()
        if len(self._outdated) > OUTDATED_MAX:
            del self._outdated[next(iter(self._outdated))]
        self._wake.set()

    def cleared(self, prefix: str) -> None:
        now = self._monotonic()
        young = {p: at for p, at in self._cleared.items() if now - at < self._ttl_seconds}
        # Too many prefixes to compare with each copy: treat every key as cleared.
        self._cleared = {**young, prefix: now} if len(young) < CLEARED_MAX else {"": now}

    def _fresh(self, cached: Cached, now: datetime) -> bool:
        if cached.address in self._outdated or not self._floors.allow(cached, now):
            return False
        if cached.record.value is not None and cached.record.expired(now):
            return False  # Postgres decides: our clock is never behind, but it may be ahead
        age = (now - cached.as_of).total_seconds()
        since = (at for p, at in self._cleared.items() if cached.address.key.startswith(p))
        return all(age < self._monotonic() - at for at in since)

    def _take_pending(self, address: Address) -> Cached | None:
        cached = self._pending.pop(address, None)
        if cached is not None:
            self._pending_bytes -= len(cached.record.value or b"")
        return cached

    def _has_copy(self, address: Address, version: int) -> bool:
        """Whether this version or a newer one was sent to Redis recently."""
        copied_version, copied_at = self._copied.get(address, (0, 0.0))
        young = self._monotonic() - copied_at < self._ttl_seconds / 3
        return copied_version > version or (copied_version == version and young)

    async def run(self) -> None:
        """Write pending copies until cancelled."""
        while True:
            await self._wake.wait()
            if not self._space and not await self._find_space():
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._wake.clear()
            await self._read_outdated()
            while self._pending:
                await self._write(self._next_batch())

    async def _read_outdated(self) -> None:
        """Read entries that were written without the store, so that they are copied too."""
        while self._outdated:
            addresses = list(itertools.islice(self._outdated, READ_BATCH))
            asked = self._monotonic()
            try:
                readings = await self._table.get(addresses)
            except SidecarError:
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()
                return
            for address, reading in zip(addresses, readings, strict=True):
                self.remember(address, reading, asked)

    async def _find_space(self) -> bool:
        try:
            self._space = await self._table.installation()
        except SidecarError:
            return False
        return True

    def _next_batch(self) -> list[Cached]:
        batch: list[Cached] = []
        room = _WRITE_BATCH_BYTES
        while self._pending and len(batch) < _WRITE_BATCH and room > 0:
            cached = self._take_pending(next(iter(self._pending)))
            if cached is not None:
                batch.append(cached)
                room -= len(cached.record.value or b"")
        return batch

    async def _write(self, batch: list[Cached]) -> None:
        now = self._clock.now(self._monotonic())
        if now is None or not self._breaker.room(self._monotonic()):
            return  # dropped: copies in Redis expire, and our floors reject them until then
        young = [(cached, self._seconds_left(cached, now)) for cached in batch]
        young = [(cached, seconds) for cached, seconds in young if seconds > 0]
        with suppress(CacheError):
            entries, seconds = [c for c, _ in young], [s for _, s in young]
            await self._guarded(lambda: self._cache.put(self._space, entries, seconds))

    def _seconds_left(self, cached: Cached, now: datetime) -> float:
        return self._ttl_seconds - (now - cached.as_of).total_seconds()

    async def _lookup(self, addresses: Sequence[Address]) -> list[Cached | None]:
        return await self._guarded(lambda: self._cache.get(self._space, addresses))

    async def _guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        if not self._breaker.room(self._monotonic()):
            raise CacheError("the circuit breaker is open")
        probe = self._breaker.began(self._monotonic())
        try:
            answer = await call()
        except CacheError as error:
            metrics.CACHE_ERRORS.inc()
            self._breaker.failed(self._monotonic(), probe=probe)
            self._report(error)
            raise
        except BaseException:
            self._breaker.abandoned(probe=probe)
            raise
        self._breaker.succeeded()
        return answer

    def _report(self, error: CacheError) -> None:
        """Log at most one line in ten seconds; the counter counts every failure."""
        now = self._monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_SECONDS
            log.warning("cache_failed", problem=str(error))
