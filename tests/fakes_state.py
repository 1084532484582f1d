"""A cache in memory, for unit tests; `tests/contract/test_cache.py` holds it to the contract."""

import time
from collections.abc import Sequence

from sidecar.model.state_types import Address, Cached, CacheError


class MemoryCache:
    """Can be told to fail; `calls` counts the attempts."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, Address], tuple[Cached, float]] = {}
        self.failing = False
        self.calls = 0

    async def get(self, space: str, addresses: Sequence[Address]) -> list[Cached | None]:
        self._called()
        held = (self.entries.get((space, address)) for address in addresses)
        return [entry[0] if entry and entry[1] > time.monotonic() else None for entry in held]

    async def put(self, space: str, entries: Sequence[Cached], seconds: Sequence[float]) -> None:
        self._called()
        for cached, kept_seconds in zip(entries, seconds, strict=True):
            name = (space, cached.address)
            held = self.entries.get(name)
            if held is None or held[0].record.version <= cached.record.version:
                self.entries[name] = (cached, time.monotonic() + kept_seconds)

    def _called(self) -> None:
        self.calls += 1
        if self.failing:
            raise CacheError("told to fail")
