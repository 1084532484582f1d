"""Which copies from Redis may be used: pure rules over an estimate of the database's clock.

Guarantees, whatever Redis contains:
- no copy is used once it is older than the time to live, counted from the read of Postgres;
- no copy is older than what this pod itself has acknowledged or read, in bounded memory.

Wall clocks need not agree: all times here are of the database's clock, extrapolated from the last
answer with this machine's monotonic clock. The estimate counts from when the query was *sent*, so
it is never behind, and a copy never looks younger than it is.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from sidecar.model.state_types import Address, Cached

FLOORS_MAX = 50_000


class DatabaseTimeBound:
    """An upper bound of the database's clock."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._asked: float = 0.0

    def update(self, at: datetime, *, asked: float) -> None:
        """The database returned the time `at` to a query sent at `asked` (monotonic seconds)."""
        self._at, self._asked = at, asked

    def now(self, monotonic: float) -> datetime | None:
        """None before the first `update`."""
        return self._at and self._at + timedelta(seconds=max(0.0, monotonic - self._asked))


@dataclass(frozen=True, slots=True)
class _Floor:
    version: int
    known_at: datetime  # a read that began later returns `version` or a newer one


class Floors:
    """The lowest version of each entry that this pod may still return."""

    def __init__(self, ttl_seconds: float, most: int = FLOORS_MAX) -> None:
        self._ttl = timedelta(seconds=ttl_seconds)
        self._most = most
        self._floors: OrderedDict[Address, _Floor] = OrderedDict()
        self._forgotten_until: datetime | None = None

    def raise_to(self, address: Address, version: int, now: datetime) -> None:
        """This pod acknowledged or read `version` at the time `now`."""
        held = self._floors.pop(address, None)
        if held is not None and held.version > version:
            version = held.version
        self._floors[address] = _Floor(version, now)
        if len(self._floors) > self._most:
            # Drop the oldest; reject every copy read before it until such copies have expired.
            _, oldest = self._floors.popitem(last=False)
            self._forgotten_until = max(oldest.known_at, self._forgotten_until or oldest.known_at)

    def allow(self, cached: Cached, now: datetime) -> bool:
        """Whether this copy may be returned."""
        if not now - self._ttl < cached.as_of <= now + self._ttl:
            return False
        floor = self._floors.get(cached.address)
        if floor is not None:
            return cached.record.version >= floor.version or cached.as_of > floor.known_at
        return self._forgotten_until is None or cached.as_of > self._forgotten_until

    def __len__(self) -> int:
        return len(self._floors)
