"""The contract of the cache, signed by Redis and by the fake that unit tests use."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.adapters.redis_cache import RedisCache
from sidecar.model.state_types import Address, Cached, Record
from sidecar.state.ports import Cache
from tests.fakes_state import MemoryCache

NOW = datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)
SPACE = "installation:1"


def cached(key: str, version: int, value: bytes | None = b"v", **changes: object) -> Cached:
    record = Record(key, version, value, NOW)
    return Cached(Address(key), replace(record, **changes), NOW + timedelta(microseconds=1))  # type: ignore[arg-type]


class CacheContract:
    async def test_what_was_put_is_found(self, cache: Cache) -> None:
        everything = [
            cached("a", 1_700_000_000_000_001, b"\0\xff binary"),
            cached("é/ü", 2, b""),
            cached("gone", 3, None),
            cached("expiring", 2**53 - 1, b"x" * 100_000, expires_at=NOW + timedelta(days=9)),
        ]
        await cache.put(SPACE, everything, [30.0] * 4)
        addresses = [entry.address for entry in everything]
        assert await cache.get(SPACE, addresses) == everything
        assert await cache.get(SPACE, addresses[:1]) == everything[:1]

    async def test_nothing_is_found_as_nothing(self, cache: Cache) -> None:
        assert await cache.get(SPACE, [Address("none")]) == [None]
        assert await cache.get(SPACE, [Address("none"), Address("nor this")]) == [None, None]

    async def test_a_late_writer_does_not_win(self, cache: Cache) -> None:
        """G7: whatever the order in which copies arrive, the newest version stays."""
        new, old = cached("k", 1_700_000_000_000_002), cached("k", 1_700_000_000_000_001, b"old")
        await cache.put(SPACE, [new], [30.0])
        await cache.put(SPACE, [old], [30.0])
        assert await cache.get(SPACE, [Address("k")]) == [new]
        tombstone = cached("k", 1_700_000_000_000_003, None)
        await cache.put(SPACE, [tombstone], [30.0])
        await cache.put(SPACE, [new], [30.0])
        assert await cache.get(SPACE, [Address("k")]) == [tombstone]

    async def test_the_same_version_read_later_replaces(self, cache: Cache) -> None:
        first = cached("k", 5)
        later = replace(first, as_of=first.as_of + timedelta(seconds=9))
        await cache.put(SPACE, [first], [30.0])
        await cache.put(SPACE, [later], [30.0])
        assert await cache.get(SPACE, [Address("k")]) == [later]

    async def test_reading_does_not_prolong_life(self, cache: Cache) -> None:
        await cache.put(SPACE, [cached("k", 1)], [0.3])
        for _ in range(4):
            await asyncio.sleep(0.1)
            found = await cache.get(SPACE, [Address("k")])
        assert found == [None]

    async def test_spaces_and_state_versions_are_apart(self, cache: Cache) -> None:
        entry = cached("k", 1)
        await cache.put(SPACE, [entry], [30.0])
        assert await cache.get("other:1", [Address("k")]) == [None]
        assert await cache.get("installation:2", [Address("k")]) == [None]
        assert await cache.get(SPACE, [Address("k", 1)]) == [None]


class TestMemoryCache(CacheContract):
    @pytest.fixture
    def cache(self) -> Cache:
        return MemoryCache()


class TestRedisCache(CacheContract):
    @pytest.fixture
    async def cache(self, redis_url: str) -> AsyncIterator[Cache]:
        cache = RedisCache(lambda: redis_url, timeout_seconds=2.0)
        yield cache
        await cache.close()
