"""Which copies are believed, and that Redis never makes an answer wrong or a call fail (G7)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from sidecar.model.breaker import Breaker
from sidecar.model.state_types import Address, Cached, Reading, Record
from sidecar.state import RedisCopies
from sidecar.state.copies import CLEARED_MAX
from sidecar.state.freshness import DatabaseTimeBound, Floors
from sidecar.state.ports import StateTable
from tests.fakes_state import MemoryCache

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Address("k")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def copy(version: int, as_of: datetime, address: Address = KEY) -> Cached:
    return Cached(address, Record(address.key, version, b"v", as_of), as_of)


class TestDatabaseTimeBound:
    def test_it_knows_nothing_before_the_database_spoke(self) -> None:
        assert DatabaseTimeBound().now(1.0) is None

    def test_it_is_never_behind(self) -> None:
        """Asked at 10, answered at 13: by then the database may be up to 3 s past what it said."""
        clock = DatabaseTimeBound()
        clock.update(NOW, asked=10.0)
        assert clock.now(13.0) == NOW + seconds(3)
        assert clock.now(5.0) == NOW


class TestFloors:
    def test_a_copy_is_believed_within_its_time(self) -> None:
        floors = Floors(30)
        assert floors.allow(copy(1, NOW), NOW + seconds(29))
        assert not floors.allow(copy(1, NOW), NOW + seconds(30))

    def test_a_copy_from_the_future_is_not(self) -> None:
        assert not Floors(30).allow(copy(1, NOW + seconds(31)), NOW)

    def test_a_copy_below_what_was_acknowledged_is_not(self) -> None:
        """G7: a pod never takes back what it said."""
        floors = Floors(30)
        floors.raise_to(KEY, 5, NOW)
        assert not floors.allow(copy(4, NOW - seconds(1)), NOW)
        assert floors.allow(copy(5, NOW - seconds(1)), NOW)
        assert floors.allow(copy(4, NOW - seconds(1), Address("other")), NOW)

    def test_an_older_answer_does_not_lower_the_floor(self) -> None:
        floors = Floors(30)
        floors.raise_to(KEY, 5, NOW)
        floors.raise_to(KEY, 3, NOW)
        assert not floors.allow(copy(4, NOW - seconds(1)), NOW)

    def test_what_was_read_later_counts_even_if_lower(self) -> None:
        """A database restored from a backup decides, whatever this pod remembers."""
        floors = Floors(30)
        floors.raise_to(KEY, 5, NOW)
        assert floors.allow(copy(4, NOW + seconds(1)), NOW + seconds(2))

    def test_memory_is_bounded_and_forgetting_is_safe(self) -> None:
        """G7: what is forgotten leaves a line in time that no older copy crosses."""
        floors = Floors(30, most=2)
        for number in range(5):
            floors.raise_to(Address(f"k{number}"), 9, NOW + seconds(number))
        assert len(floors) == 2
        now = NOW + seconds(5)
        assert not floors.allow(copy(8, NOW + seconds(2), Address("k0")), now)
        assert floors.allow(copy(8, NOW + seconds(2.5), Address("k0")), now)


class Postgres:
    """Holds one version of every key."""

    version = 1

    async def installation(self) -> str:
        return "installation:1"

    async def get(self, addresses: Sequence[Address]) -> list[Reading]:
        return [Reading(Record(a.key, self.version, b"v", NOW), NOW) for a in addresses]


class World:
    """Copies on a cache in memory, with a clock that stands unless it is moved."""

    def __init__(self) -> None:
        self.cache = MemoryCache()
        self.postgres = Postgres()
        self.monotonic = 100.0
        self.copies = self.pod()

    def pod(self) -> RedisCopies:
        return RedisCopies(
            self.cache,
            cast(StateTable, self.postgres),
            Breaker(3, 10.0),
            ttl_seconds=30.0,
            budget_seconds=0.1,
            monotonic=lambda: self.monotonic,
        )

    def read(
        self, version: int, value: bytes | None = b"v", *, copies: RedisCopies | None = None
    ) -> None:
        now = NOW + seconds(self.monotonic - 100)
        reading = Reading(Record("k", version, value, now), now)
        (copies or self.copies).remember(KEY, reading, self.monotonic)

    async def found(self, copies: RedisCopies | None = None) -> int | None:
        record = await (copies or self.copies).find(KEY)
        return record.version if record else None

    @asynccontextmanager
    async def running(self, *pods: RedisCopies) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(pod.run()) for pod in pods or (self.copies,)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
def world() -> World:
    return World()


async def test_nothing_is_believed_before_postgres_spoke(world: World) -> None:
    async with world.running():
        assert await world.found() is None
        assert world.cache.calls == 0


async def test_a_copy_is_found_by_another_pod(world: World) -> None:
    other = world.pod()
    async with world.running(world.copies, other):
        other.remember(Address("x"), Reading(Record("x", 1, b"", NOW), NOW), 100.0)
        world.read(1)
        await world.settle()
        assert await world.found(other) == 1


async def test_a_lost_copy_costs_another_pod_at_most_the_time_to_live(world: World) -> None:
    """G7: a write that never reached Redis is seen elsewhere once the old copy is too old."""
    other = world.pod()
    async with world.running(world.copies, other):
        world.read(1)
        other.remember(KEY, Reading(Record("k", 1, b"v", NOW), NOW), 100.0)
        await world.settle()
        world.cache.failing = True
        world.read(2)
        await world.settle()
        world.cache.failing = False
        assert await world.found(other) == 1
        assert await world.found() is None  # the writer itself asks Postgres
        world.monotonic += 30
        assert await world.found(other) is None


async def test_whether_a_copy_has_expired_is_asked_of_postgres(world: World) -> None:
    """Our clock may be ahead of the database's; what it says is copied in place of the entry."""
    async with world.running():
        record = Record("k", 1, b"v", NOW, expires_at=NOW + seconds(5))
        world.copies.remember(KEY, Reading(record, NOW), 100.0)
        await world.settle()
        world.monotonic += 4
        assert await world.found() == 1
        world.monotonic += 1
        assert await world.found() is None
        gone = replace(record, value=None)
        world.copies.remember(KEY, Reading(gone, NOW + seconds(5)), world.monotonic)
        await world.settle()
        found = await world.copies.find(KEY)
        assert found is not None
        assert found.value is None


async def test_a_repeated_answer_is_no_copy(world: World) -> None:
    """What an old request_id was answered may have been overwritten since."""
    async with world.running():
        reading = Reading(Record("k", 1, b"old", NOW), NOW, current=False)
        world.copies.remember(KEY, reading, 100.0)
        await world.settle()
        assert world.cache.entries == {}


async def test_answers_that_arrive_out_of_order(world: World) -> None:
    async with world.running():
        world.read(2)
        world.read(1)
        await world.settle()
        ((held, _),) = world.cache.entries.values()
        assert held.record.version == 2


async def test_what_a_run_returned_is_copied_too(world: World) -> None:
    """G7: it was written past the store; no copy from before is believed here any more."""
    async with world.running():
        world.read(1)
        await world.settle()
        assert await world.found() == 1
        world.postgres.version = 2
        world.copies.outdated(KEY)
        assert await world.found() is None
        await world.settle()
        assert await world.found() == 2


async def test_an_answer_to_an_earlier_question_does_not_make_a_copy_believable(
    world: World,
) -> None:
    """G7: the read was under way when the run was completed."""
    world.read(1)
    async with world.running():
        await world.settle()
    world.monotonic += 1
    world.copies.outdated(KEY)
    world.copies.remember(KEY, Reading(Record("k", 1, b"v", NOW), NOW), 100.5)
    assert await world.found() is None
    world.copies.remember(KEY, Reading(Record("k", 2, b"v", NOW), NOW), 101.0)
    assert await world.found() is None  # version 1 is still what Redis holds
    async with world.running():
        await world.settle()
    assert await world.found() == 2


async def test_no_copy_from_before_a_clear_is_believed(world: World) -> None:
    """G7: nor if more prefixes were cleared than are remembered."""
    for cleared in (["k"], [""], ["other", "k"], [f"other{i}" for i in range(CLEARED_MAX + 1)]):
        async with world.running():
            world.read(1)
            await world.settle()
            world.copies.cleared("unlike")
            assert await world.found() == 1
            world.monotonic += 1
            for prefix in cleared:
                world.copies.cleared(prefix)
            assert await world.found() is None
            world.monotonic += 1
            world.read(1)
            await world.settle()
            assert await world.found() == 1


async def test_the_breaker_keeps_calls_from_a_dead_cache(world: World) -> None:
    """G7: a dead Redis costs a few attempts, then one probe each ten seconds."""
    world.cache.failing = True
    async with world.running():
        for version in range(1, 20):
            world.read(version)
            await world.settle()
            assert await world.found() is None
        assert world.cache.calls == 3
        world.monotonic += 10
        assert await world.found() is None
        assert await world.found() is None
        assert world.cache.calls == 4
        world.cache.failing = False
        world.monotonic += 10
        assert await world.found() is None  # the probe finds nothing, and closes the breaker
        world.read(20)
        await world.settle()
        assert await world.found() == 20


async def test_a_hanging_cache_is_not_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7."""

    async def hang(*_: object) -> list[Cached | None]:
        await asyncio.sleep(3600)
        return []

    async with world.running():
        world.read(1)
        await world.settle()
        monkeypatch.setattr(world.cache, "get", hang)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await world.found() is None
        assert loop.time() - began < 0.5


async def test_bytes_that_wait_are_bounded(world: World) -> None:
    for number in range(40):
        address, record = Address(f"k{number}"), Record(f"k{number}", 1, bytes(2**20), NOW)
        world.copies.remember(address, Reading(record, NOW), 100.0)
    async with world.running():
        await world.settle()
    assert len(world.cache.entries) == 16


async def test_what_waits_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.state.copies.PENDING_MAX", 10)
    for number in range(25):
        address = Address(f"k{number}")
        world.copies.remember(address, Reading(Record(address.key, 1, b"v", NOW), NOW), 100.0)
    async with world.running():
        await world.settle()
    assert sorted(address.key for _, address in world.cache.entries) == [
        f"k{number}" for number in range(15, 25)
    ]
