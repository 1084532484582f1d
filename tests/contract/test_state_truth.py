"""The contract of the state tables, on a real Postgres: the only form of this port there is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import psycopg
import pytest

from sidecar.adapters.postgres.state import PostgresState
from sidecar.model.errors import Conflict, FailedPrecondition, Fenced, InvalidArgument
from sidecar.model.state import prefix_end
from sidecar.model.state_types import Address, Delete, Owner, Put, Reading, Record
from tests.conftest import NewDatabase
from tests.state_lab import EPOCH, StateLab, state_lab

T = TypeVar("T")
_WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture
async def lab(database_url: str) -> StateLab:
    return await state_lab(database_url)


@pytest.fixture
async def truth(lab: StateLab) -> AsyncIterator[PostgresState]:
    async with lab.pod() as pod:
        yield pod


async def put(truth: PostgresState, key: str, value: bytes = b"v", **how: object) -> Record:
    (answer,) = await truth.put([Put(key, value, **how)])  # type: ignore[arg-type]
    if not isinstance(answer, Reading):
        raise answer
    assert answer.record is not None
    return answer.record


async def get(truth: PostgresState, key: str, state_version: int | None = None) -> Record | None:
    (reading,) = await truth.get([Address(key, state_version)])
    return reading.record


async def test_what_was_put_is_read(truth: PostgresState) -> None:
    written = await put(truth, "a", b"1")
    assert await get(truth, "a") == written
    assert await get(truth, "b") is None


async def test_a_batch_answers_each_on_its_own(truth: PostgresState) -> None:
    there = await put(truth, "there")
    answers = await truth.put(
        [
            Put("there", b"2", expected_version=there.version),
            Put("new", b"n", expected_version=0),
            Put("lost", b"x", expected_version=7),
            Put("any", b""),
        ]
    )
    assert [isinstance(answer, Reading) for answer in answers] == [True, True, False, True]
    assert isinstance(answers[2], Conflict)
    assert await get(truth, "lost") is None
    empty = await get(truth, "any")
    assert empty is not None
    assert empty.value == b""


async def test_compare_and_set(truth: PostgresState) -> None:
    first = await put(truth, "k", b"1")
    with pytest.raises(Conflict):
        await put(truth, "k", b"x", expected_version=0)
    with pytest.raises(Conflict):
        await put(truth, "k", b"x", expected_version=first.version + 1)
    second = await put(truth, "k", b"2", expected_version=first.version)
    assert second.version > first.version
    with pytest.raises(Conflict):
        await put(truth, "k", b"x", expected_version=first.version)
    assert await get(truth, "k") == second


async def test_versions_never_come_back(truth: PostgresState, lab: StateLab) -> None:
    """Deletion, expiry, and a clock that was set back: the version of a key only rises."""
    versions = [(await put(truth, "k")).version]
    tombstone = await truth.delete(Delete("k"))
    assert tombstone is not None
    assert tombstone.record is not None
    versions.append(tombstone.record.version)
    with pytest.raises(Conflict):
        await put(truth, "k", expected_version=versions[-1])
    versions.append((await put(truth, "k", expected_version=0, ttl_seconds=0.05)).version)
    await asyncio.sleep(0.06)
    assert await truth.sweep(10) == 1
    swept = await get(truth, "k")
    assert swept is not None
    assert swept.value is None
    versions.append(swept.version)
    # As if written while the clock was a day ahead.
    ahead = versions[-1] + 86_400_000_000
    await lab.sql("UPDATE baton.state SET version = %(v)s", v=ahead)
    versions += [ahead, (await put(truth, "k")).version]
    assert versions == sorted(set(versions))


_GONE: dict[str, Callable[[PostgresState], Awaitable[object]]] = {
    "delete": lambda truth: truth.delete(Delete("k")),
    "clear": lambda truth: truth.clear("", "", 10),
    "sweep": lambda truth: truth.sweep(10),
}


@pytest.mark.parametrize("how", _GONE)
async def test_a_tombstone_is_above_what_it_ends(
    truth: PostgresState, lab: StateLab, how: str
) -> None:
    """G7: also of an entry written while the clock was ahead; below it, copies would outlive it."""
    await put(truth, "k", ttl_seconds=3600.0)
    ahead = "version = version + 86400000000"
    expired = ", expires_at = now() - interval '1 s'" if how == "sweep" else ""
    await lab.sql(f"UPDATE baton.state SET {ahead}{expired}")  # noqa: S608
    before = await get(truth, "k")
    await _GONE[how](truth)
    after = await get(truth, "k")
    assert before is not None
    assert after is not None
    assert after.value is None
    assert after.version > before.version


async def test_a_request_is_compared_and_set_like_any_other(truth: PostgresState) -> None:
    """G7: with a request_id, too, what another has written is not overwritten."""
    first = await put(truth, "k")
    with pytest.raises(Conflict):
        await put(truth, "k", b"mine", expected_version=0, request_id="r")
    assert await get(truth, "k") == first


async def test_copies_are_of_one_installation(truth: PostgresState, lab: StateLab) -> None:
    """G7: another database, in which the cluster has the same number, shares the Redis."""
    assert lab.identity.installation_id
    assert lab.identity.installation_id in await truth.installation()
    assert str(lab.identity.cluster_id) in await truth.installation()


async def test_an_expired_entry_is_gone_at_once(truth: PostgresState) -> None:
    written = await put(truth, "k", ttl_seconds=0.05)
    await asyncio.sleep(0.06)
    read = await get(truth, "k")
    assert read is not None
    assert read.value is None
    assert (await truth.page("", "", 10)).records == []
    assert await truth.size("") == 0
    assert await truth.delete(Delete("k")) is None
    with pytest.raises(Conflict):
        await put(truth, "k", expected_version=written.version)
    assert await put(truth, "k", expected_version=0)


async def test_a_request_is_answered_again(truth: PostgresState) -> None:
    """G7: a retry after an unknown answer neither writes twice nor undoes a later write."""
    first = await put(truth, "k", b"1", request_id="r", expected_version=0)
    later = await put(truth, "k", b"2")
    again = await put(truth, "k", b"1", request_id="r", expected_version=0)
    assert again == first
    assert await get(truth, "k") == later
    with pytest.raises(InvalidArgument, match="request_id"):
        await put(truth, "k", b"other", request_id="r")
    assert (await put(truth, "other", b"other", request_id="r")).version > later.version


async def test_one_request_from_many_connections_is_written_once(lab: StateLab) -> None:
    async with lab.pod(size=8) as truth:
        answers = await asyncio.gather(
            *(put(truth, "k", b"1", request_id="same") for _ in range(8)), return_exceptions=True
        )
        assert len({answer.version for answer in answers if isinstance(answer, Record)}) == 1
        assert all(isinstance(answer, Record) for answer in answers)


async def _held_up(lab: StateLab, key: str, *writes: Awaitable[T]) -> list[T]:
    """The answers to writes that were all under way before the first of them could commit."""
    async with await psycopg.AsyncConnection.connect(lab.url) as connection:
        await connection.execute("SELECT 1 FROM baton.state WHERE key = %s FOR UPDATE", [key])
        writing = asyncio.gather(*writes)
        async with asyncio.timeout(60):
            while await lab.sql(_WAITING) != [(len(writes),)]:  # noqa: ASYNC110 - the server knows
                await asyncio.sleep(0.01)
    return await writing


async def test_a_request_under_way_elsewhere_is_no_conflict(lab: StateLab) -> None:
    """G7: asked again before the first was carried out, a compare-and-set does not lose to itself.

    Told so, the caller would read what it wrote itself, and write it a second time.
    """
    async with lab.pod(size=8) as truth:
        first = await put(truth, "k", b"1")
        asked = [
            put(truth, "k", b"2", request_id="same", expected_version=first.version)
            for _ in range(4)
        ]
        answers = await _held_up(lab, "k", *asked)
        assert len({answer.version for answer in answers}) == 1
        with pytest.raises(Conflict):
            await put(truth, "k", b"2", request_id="other", expected_version=first.version)


async def test_pages_go_by_bytes_of_the_key(truth: PostgresState) -> None:
    keys = ["a", "a/1", "a/2", "a/é", "a0", "b", "Z"]
    await truth.put([Put(key, key.encode()) for key in keys])
    page = await truth.page("a", "", 3)
    assert [record.key for record in page.records] == ["a", "a/1", "a/2"]
    assert page.more
    page = await truth.page("a", "a/2", 3)
    assert [record.key for record in page.records] == ["a/é", "a0"]
    assert not page.more
    assert await truth.size("a/") == 3
    everything = await truth.page("", "", 100)
    assert [record.key for record in everything.records] == sorted(keys, key=str.encode)


async def test_a_page_fits_into_a_message(truth: PostgresState) -> None:
    await truth.put([Put(f"k{i}", bytes(1024 * 1024)) for i in range(5)])
    seen: list[str] = []
    more = True
    while more:
        page = await truth.page("", seen[-1] if seen else "", 100)
        assert 1 <= len(page.records) <= 3
        seen += [record.key for record in page.records]
        more = page.more
    assert seen == [f"k{i}" for i in range(5)]


async def test_clear_spares_owned_keys_and_other_prefixes(
    truth: PostgresState, lab: StateLab
) -> None:
    run = await lab.live_run()
    await truth.put_fenced(Put("singleton-state:coordinator", b"mine"), run, 1)
    await truth.put([Put(key, b"v") for key in ("a1", "a2", "b")])
    await put(truth, "a3", ttl_seconds=0.01)
    await asyncio.sleep(0.02)
    gone, live = await truth.clear("a", "", 10)
    assert live == 2
    assert sorted(reading.record.key for reading in gone if reading.record) == ["a1", "a2", "a3"]
    await truth.clear("", "", 10)
    left = (await truth.page("", "", 10)).records
    assert [record.key for record in left] == ["singleton-state:coordinator"]


class TestOwnedKeys:
    """G3: state is committed only on behalf of the live run of its owner."""

    KEY = "singleton-state:coordinator"

    async def test_the_live_run_writes(self, truth: PostgresState, lab: StateLab) -> None:
        """G3."""
        run = await lab.live_run()
        first = await truth.put_fenced(Put(self.KEY, b"1", expected_version=0), run, 1)
        assert first.record is not None
        again = Put(self.KEY, b"2", expected_version=first.record.version)
        assert (await truth.put_fenced(again, run, 1)).record == await get(truth, self.KEY, 1)
        with pytest.raises(Conflict):
            await truth.put_fenced(again, run, 1)
        assert await truth.delete_fenced(Delete(self.KEY), run, 1)

    @pytest.mark.parametrize("key", [KEY, "anything"])
    async def test_an_old_run_does_not(self, truth: PostgresState, lab: StateLab, key: str) -> None:
        """G3."""
        run = await lab.live_run()
        other_attempt = type(run)(run.run_id, run.attempt + 1, run.epoch)
        unknown = type(run)(run.run_id + 99, run.attempt, run.epoch)
        ended = await lab.live_run()
        await lab.end_run(ended)
        for stale in (other_attempt, unknown, ended):
            with pytest.raises(Fenced):
                await truth.put_fenced(Put(key, b"x"), stale, 1)
            with pytest.raises(Fenced):
                await truth.delete_fenced(Delete(key), stale, 1)
        await lab.take_over()
        with pytest.raises(Fenced):
            await truth.put_fenced(Put(key, b"x"), run, 1)
        assert await get(truth, key) is None

    async def test_another_owners_run_does_not(self, truth: PostgresState, lab: StateLab) -> None:
        """G3."""
        run = await lab.live_run(name="other")
        trigger = await lab.live_run("trigger", "coordinator")
        for wrong in (run, trigger):
            with pytest.raises(FailedPrecondition):
                await truth.put_fenced(Put(self.KEY, b"x"), wrong, 1)
            with pytest.raises(FailedPrecondition):
                await truth.delete_fenced(Delete(self.KEY), wrong, 1)
        written = await truth.put_fenced(Put("schedule-state:coordinator", b"x"), trigger, 1)
        assert written.record is not None

    async def test_an_answer_survives_the_end_of_the_run(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        run = await lab.live_run()
        write = Put(self.KEY, b"1", request_id="r")
        first = await truth.put_fenced(write, run, 1)
        await lab.end_run(run)
        again = await truth.put_fenced(write, run, 1)
        assert again.record == first.record
        assert not again.current

    async def test_a_request_under_way_elsewhere_is_no_conflict(self, lab: StateLab) -> None:
        """G7: asked again before the first was carried out, it gets the first one's answer."""
        run = await lab.live_run()
        async with lab.pod(size=8) as truth:
            before = (await truth.put_fenced(Put(self.KEY, b"1"), run, 1)).record
            assert before is not None
            write = Put(self.KEY, b"2", expected_version=before.version, request_id="same")
            asked = [truth.put_fenced(write, run, 1) for _ in range(4)]
            answers = await _held_up(lab, self.KEY, *asked)
            assert len({answer.record and answer.record.version for answer in answers}) == 1

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE baton.term SET epoch = epoch + 1",
            "UPDATE baton.run SET attempt = attempt + 1",
            "UPDATE baton.run SET state = 'ended', outcome = 'succeeded', finished_at = now()",
        ],
        ids=["takeover", "redelivery", "completion"],
    )
    async def test_a_write_waits_for_what_may_end_its_run(
        self, truth: PostgresState, lab: StateLab, change: str
    ) -> None:
        """G3: begun while one of them is under way, it is refused once that commits."""
        run = await lab.live_run()
        async with await psycopg.AsyncConnection.connect(lab.url) as connection:
            await connection.execute(change.encode())
            writing = asyncio.create_task(truth.put_fenced(Put(self.KEY, b"x"), run, 1))
            await asyncio.sleep(0.3)
            assert not writing.done()
        with pytest.raises(Fenced):
            await writing
        assert await get(truth, self.KEY) is None

    async def test_a_takeover_waits_for_a_write_under_way(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        """G3: write and takeover commit in one order or the other, never past each other."""
        run = await lab.live_run()
        writes = [truth.put_fenced(Put(f"k{i}", b"x"), run, 0) for i in range(20)]
        answers = await asyncio.gather(*writes, lab.take_over(), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        assert all(isinstance(answer, Fenced) for answer in refused)
        stored = await lab.sql("SELECT count(*) FROM baton.state")
        assert stored == [(20 - len(refused),)]


class TestStateVersions:
    OWNER = Owner("singleton", "coordinator")

    async def test_one_entry_per_state_version(self, truth: PostgresState, lab: StateLab) -> None:
        run = await lab.live_run()
        one = await truth.put_fenced(Put(self.OWNER.key, b"one"), run, 1)
        two = await truth.put_fenced(Put(self.OWNER.key, b"two"), run, 2)
        old = await truth.put_fenced(Put(self.OWNER.key, b"old"), run, 1)
        assert one.record is not None
        assert two.record is not None
        assert old.record is not None
        assert one.record.version < two.record.version < old.record.version
        assert await get(truth, self.OWNER.key, 1) == old.record
        assert await get(truth, self.OWNER.key, 2) == two.record
        assert await get(truth, self.OWNER.key) == two.record
        assert (await truth.page("", "", 10)).records == [two.record]
        assert await truth.size("") == 1

    async def test_load_begins_from_the_newest_not_above(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        run = await lab.live_run()
        assert await truth.load(self.OWNER, 3) is None
        await truth.put_fenced(Put(self.OWNER.key, b"two"), run, 2)
        await truth.put_fenced(Put(self.OWNER.key, b"four"), run, 4)
        loaded = await truth.load(self.OWNER, 3)
        assert loaded is not None
        assert (loaded.state_version, loaded.value) == (2, b"two")
        assert await truth.load(self.OWNER, 1) is None
        # Deleted state stays deleted, though an older version has something left.
        await truth.delete_fenced(Delete(self.OWNER.key), run, 4)
        loaded = await truth.load(self.OWNER, 4)
        assert loaded is not None
        assert loaded.value is None

    async def test_the_completion_writes_like_a_put(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        """G6: what completion calls inside its transaction follows the same rules."""
        call = "SELECT baton.put_owned_state(%(c)s, %(k)s, %(v)s, 1, %(ttl)s)"
        run = await lab.live_run()
        arguments = {"c": lab.identity.cluster_id, "k": self.OWNER.key, "v": b"1", "ttl": None}
        ((first,),) = await lab.sql(call, **arguments)
        assert await truth.delete_fenced(Delete(self.OWNER.key), run, 1)
        ((second,),) = await lab.sql(call, **arguments)
        assert isinstance(first, int)
        assert isinstance(second, int)
        assert second > first
        record = await get(truth, self.OWNER.key)
        assert record is not None
        assert (record.version, record.value, record.expires_at) == (second, b"1", None)

    async def test_owned_state_does_not_expire_while_led(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        call = "SELECT baton.put_owned_state(%(c)s, %(k)s, 'x', 1, '1 s')"
        for name in ("led", "left"):
            key = Owner("singleton", name).key
            await lab.sql(call, c=lab.identity.cluster_id, k=key)
        await lab.sql("UPDATE baton.state SET expires_at = now() + interval '3 s'")
        await self.led(lab, "led")
        await truth.sweep(10)
        left = await lab.sql("SELECT key FROM baton.state WHERE expires_at > now() + '80 s'")
        assert left == [("singleton-state:led",)]

    async def test_owned_state_that_has_expired_stays_gone(
        self, truth: PostgresState, lab: StateLab
    ) -> None:
        """A new leader began without it, before any sweep: it does not come back under its feet."""
        call = "SELECT baton.put_owned_state(%(c)s, %(k)s, 'x', 1, '1 s')"
        await lab.sql(call, c=lab.identity.cluster_id, k=self.OWNER.key)
        await lab.sql("UPDATE baton.state SET expires_at = now() - interval '1 s'")
        loaded = await truth.load(self.OWNER, 1)
        assert loaded is not None
        assert loaded.value is None
        await self.led(lab, self.OWNER.name)
        await truth.sweep(10)
        loaded = await truth.load(self.OWNER, 1)
        assert loaded is not None
        assert loaded.value is None

    @staticmethod
    async def led(lab: StateLab, name: str) -> None:
        await lab.sql(
            "INSERT INTO baton.execution (cluster_id, entity_type, name, heartbeat_at)"
            " VALUES (%(c)s, 'singleton', %(name)s, now())",
            c=lab.identity.cluster_id,
            name=name,
        )

    async def test_owned_state_does_not_expire_between_heartbeats(self, lab: StateLab) -> None:
        """G7: heartbeats that come every ten minutes keep it as well, whoever wrote the last."""
        call = "SELECT baton.put_owned_state(%(c)s, %(k)s, 'x', 1, '1 s')"
        for name, minutes in (("led", 11), ("left", 21)):
            key = Owner("singleton", name).key
            await lab.sql(call, c=lab.identity.cluster_id, k=key)
            await lab.sql(
                "INSERT INTO baton.execution (cluster_id, entity_type, name, heartbeat_at)"
                " VALUES (%(c)s, 'singleton', %(name)s, now() - %(minutes)s * interval '1 min')",
                c=lab.identity.cluster_id,
                name=name,
                minutes=minutes,
            )
        await lab.sql("UPDATE baton.state SET expires_at = now() + interval '45 s'")
        async with lab.pod(heartbeat_seconds=600.0) as truth:
            await truth.sweep(10)
        left = await lab.sql("SELECT key FROM baton.state WHERE expires_at > now() + '80 s'")
        assert left == [("singleton-state:led",)]

    async def test_bytes_are_set_aside_once(self, truth: PostgresState, lab: StateLab) -> None:
        run = await lab.live_run()
        await truth.put_fenced(Put(self.OWNER.key, b"bad"), run, 1)
        loaded = await truth.load(self.OWNER, 1)
        assert loaded is not None
        await truth.set_aside(self.OWNER, loaded, "not JSON")
        await truth.set_aside(self.OWNER, loaded, "not JSON")
        rows = await lab.sql("SELECT key, value, problem FROM baton.state_set_aside")
        assert rows == [(self.OWNER.key, b"bad", "not JSON")]


async def test_pruning_keeps_what_is_young(truth: PostgresState, lab: StateLab) -> None:
    await truth.put([Put("old", b"v", request_id="a"), Put("young", b"v", request_id="b")])
    await truth.delete(Delete("old"))
    await truth.delete(Delete("young"))
    assert await truth.sweep(10) == 0
    await lab.sql("UPDATE baton.state SET updated_at = now() - interval '8 days' WHERE key = 'old'")
    await lab.sql(
        "UPDATE baton.state_request SET updated_at = now() - interval '61 min' WHERE key = 'old'"
    )
    assert await truth.sweep(10) == 2
    assert await lab.sql("SELECT key FROM baton.state") == [("young",)]
    assert await lab.sql("SELECT key FROM baton.state_request") == [("young",)]


async def test_concurrent_batches_never_deadlock(lab: StateLab) -> None:
    keys = [f"k{i}" for i in range(20)]
    async with lab.pod(size=8) as truth:

        async def write(number: int) -> None:
            order = keys if number % 2 else keys[::-1]
            await truth.put([Put(key, str(number).encode()) for key in order])
            await truth.clear("k", "", 100)

        await asyncio.wait_for(asyncio.gather(*(write(i) for i in range(40))), 20)


async def test_nor_do_they_where_a_database_sorts_otherwise(new_database: NewDatabase) -> None:
    """In English `aa` comes before `B`, by its bytes after it; all lock in the order of bytes."""
    try:
        url = new_database("template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'")
    except psycopg.Error as error:
        pytest.skip(f"this Postgres sorts by bytes only: {error}")
    lab = await state_lab(url)
    puts = [Put(key, b"v") for key in ("a", "aa", "B")]
    for request_id in ("", "once"):
        async with lab.pod(size=8) as truth:
            await truth.put(puts)
            asked = [replace(put, request_id=request_id) for put in puts]
            await _held_up(lab, "aa", truth.put(asked), truth.clear("", "", 100))


def test_the_end_of_a_prefix() -> None:
    for prefix in ("a", "a/", "é", "\ud7ff", "z~"):
        assert prefix.encode() < prefix_end(prefix).encode()
        assert (prefix + "\U0010fffe" * 3).encode() < prefix_end(prefix).encode()


async def test_epoch_is_part_of_the_reference(truth: PostgresState, lab: StateLab) -> None:
    """G3: the number of an epoch to come is no better than an old one."""
    run = await lab.live_run()
    with pytest.raises(Fenced):
        await truth.put_fenced(Put("k", b"x"), type(run)(run.run_id, 1, EPOCH + 1), 0)
