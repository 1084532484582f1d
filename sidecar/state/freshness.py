"""Which copies from Redis may be believed: pure rules over the database's clock, as far as we know
it.

Guarantees, whatever Redis holds, keeps or brings back:
- no copy is believed once it is older than the time to live, counted from when Postgres was read;
- no copy is older than what this pod itself has acknowledged or read, in bounded memory.

No wall clocks need to agree: all times here are of the database's clock, which is carried forward
on this machine's monotonic clock from the last answer. It is taken at the time of *asking*, so the
estimate is never behind, and a copy never looks younger than it is.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from sidecar.model.state_words import Address, Cached

FLOORS_MAX = 50_000


class DatabaseClock:
    """An estimate of the database's clock that is never behind it."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._asked: float = 0.0

    def heard(self, at: datetime, *, asked: float) -> None:
        """The database said `at` in an answer to what was asked at `asked` (monotonic seconds)."""
        self._at, self._asked = at, asked

    def now(self, monotonic: float) -> datetime | None:
        """None as long as the database has said nothing yet."""
        return self._at and self._at + timedelta(seconds=max(0.0, monotonic - self._asked))


@dataclass(frozen=True, slots=True)
class _Floor:
    version: int
    known_at: datetime  # a reading begun later than this shows `version` or a newer one


class Floors:
    """The versions that this pod has acknowledged or seen, while copies may be older than them."""

    def __init__(self, ttl_seconds: float, most: int = FLOORS_MAX) -> None:
        self._ttl = timedelta(seconds=ttl_seconds)
        self._most = most
        self._floors: OrderedDict[Address, _Floor] = OrderedDict()
        self._forgotten_until: datetime | None = None

    def raise_to(self, address: Address, version: int, now: datetime) -> None:
        """`version` is known to stand under `address`; `now` is when that became known."""
        held = self._floors.pop(address, None)
        if held is not None and held.version > version:
            version = held.version
        self._floors[address] = _Floor(version, now)
        if len(self._floors) > self._most:
            # The oldest goes; until its copies have died out, everything read before it is refused.
            _, oldest = self._floors.popitem(last=False)
            self._forgotten_until = max(oldest.known_at, self._forgotten_until or oldest.known_at)

    def believable(self, cached: Cached, now: datetime) -> bool:
        """May this copy be given as an answer?"""
        if not now - self._ttl < cached.as_of <= now + self._ttl:
            return False
        floor = self._floors.get(cached.address)
        if floor is not None:
            return cached.record.version >= floor.version or cached.as_of > floor.known_at
        return self._forgotten_until is None or cached.as_of > self._forgotten_until

    def __len__(self) -> int:
        return len(self._floors)
