"""The lock session on a real Postgres: the statements of the election mean what they say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic

import psycopg
import pytest

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.model.election_types import (
    Blocked,
    Inspect,
    Inspected,
    Ping,
    Pinged,
    Poll,
    Polled,
    Reap,
    Release,
    Taken,
    Takeover,
    Timers,
)
from sidecar.model.errors import SidecarError, StoreUnavailable, WrongServer
from sidecar.model.identity import Identity
from tests.lab.pooler import pooler

TIMERS = Timers(ping=0.6, lease=1.9, server_lease=2.5, poll=0.5, grace=2.0)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    await migrate(database_url, "baton")
    database = Database(lambda: database_url, schema="baton", size=2, statement_seconds=3.0)
    yield database
    await database.close()


@pytest.fixture
async def identity(database: Database) -> Identity:
    membership = Membership(database, runner_id="a-1", host="a", version="1")
    return await membership.join("orders", "", ["default", "other"])


@asynccontextmanager
async def _session(
    url: str, runner_id: str = "a-1", timers: Timers = TIMERS
) -> AsyncIterator[LeaderLock]:
    lock = LeaderLock(
        lambda: url,
        schema="baton",
        channel="baton_test",
        runner_id=runner_id,
        host="host",
        timers=timers,
    )
    await lock.open()
    try:
        yield lock
    finally:
        await lock.close()


async def _poll(lock: LeaderLock, identity: Identity, *, tries: bool = True) -> dict[str, Polled]:
    ids = tuple(identity.groups.values())
    rows = await lock.execute(Poll(ids, ids if tries else ()))
    assert isinstance(rows, list)
    names = {id_: name for name, id_ in identity.groups.items()}
    return {names[row.group_id]: row for row in rows}


async def _poll_on(lock: LeaderLock, identity: Identity) -> None:
    while True:
        await _poll(lock, identity, tries=False)
        await asyncio.sleep(0.02)


async def _taken(lock: LeaderLock, group_id: int) -> Taken:
    taken = await lock.execute(Takeover(group_id))
    assert isinstance(taken, Taken)
    return taken


async def test_a_lock_has_one_holder(database_url: str, identity: Identity) -> None:
    """G1: two sessions try, one gets each group."""
    async with _session(database_url) as first, _session(database_url, "b-1") as second:
        mine, yours = await asyncio.gather(_poll(first, identity), _poll(second, identity))
        for group in identity.groups:
            assert mine[group].locked != yours[group].locked


async def test_the_lock_is_free_when_its_session_ends(
    database_url: str, identity: Identity
) -> None:
    timers = replace(TIMERS, server_lease=60.0)  # it is not silence that ends it
    async with (
        _session(database_url, timers=timers) as first,
        _session(database_url, "b-1", timers) as second,
    ):
        assert (await _poll(first, identity))["default"].locked
        first.hang_up()
        async with asyncio.timeout(30):
            while not (await _poll(second, identity))["default"].locked:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_a_silent_session_is_ended_by_the_server(
    database_url: str, identity: Identity
) -> None:
    """G8: what frees the locks of a frozen holder."""
    async with _session(database_url) as first, _session(database_url, "b-1") as second:
        assert (await _poll(first, identity))["default"].locked
        for _ in range(round((TIMERS.server_lease + 2) / 0.2)):
            await asyncio.sleep(0.2)
            if (await _poll(second, identity))["default"].locked:
                break
        else:
            pytest.fail("the server left the silent session its lock")
        with pytest.raises(SidecarError):
            await _poll(first, identity)


async def test_epochs_rise_and_start_at_the_time(database_url: str, identity: Identity) -> None:
    """G2: greatest(epoch + 1, unix milliseconds)."""
    group_id = identity.groups["default"]
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        first = await _taken(lock, group_id)
        second = await _taken(lock, group_id)
    assert first.epoch > 1_700_000_000_000
    assert second.epoch > first.epoch


async def test_an_epoch_from_the_future_is_exceeded(
    database_url: str, database: Database, identity: Identity
) -> None:
    """G2: a restored table with a higher epoch than the clock says."""
    group_id = identity.groups["default"]
    future = 9_000_000_000_000
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("UPDATE baton.term SET epoch = %s", (future,))
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        assert (await _taken(lock, group_id)).epoch == future + 1


async def test_an_epoch_that_only_a_runner_has_seen_is_exceeded(
    database_url: str, identity: Identity
) -> None:
    """G2: a failover lost the takeover, and the clock of the new server is behind."""
    group_id, seen = identity.groups["default"], 9_000_000_000_000
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        taken = await lock.execute(Takeover(group_id, highest_epoch_seen=seen))
        assert isinstance(taken, Taken)
        assert taken.epoch == seen + 1


async def test_a_takeover_returns_what_it_found(database_url: str, identity: Identity) -> None:
    group_id = identity.groups["default"]
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        fresh = await _taken(lock, group_id)
        assert fresh.found_clean
        assert fresh.clean_timeline == fresh.timeline
        again = await _taken(lock, group_id)
        assert not again.found_clean
        assert again.found.epoch == fresh.epoch
        assert again.found.timeline == fresh.timeline


async def test_a_ping_extends_only_what_is_held(database_url: str, identity: Identity) -> None:
    """G3: a group whose epoch moved on does not come back."""
    default, other = identity.groups["default"], identity.groups["other"]
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        epoch = (await _taken(lock, default)).epoch
        before = (await _poll(lock, identity, tries=False))["default"].beat
        pinged = await lock.execute(Ping((default, other), (epoch, epoch)))
        assert isinstance(pinged, Pinged)
        assert pinged.group_ids == {default}
        assert pinged.acknowledged
        after = (await _poll(lock, identity, tries=False))["default"].beat
    assert after == replace(before, sequence=before.sequence + 1)


async def test_a_request_to_resign_reaches_the_holder_with_its_ping(
    database_url: str, database: Database, identity: Identity
) -> None:
    group_id = identity.groups["default"]
    membership = Membership(database, runner_id="b-1", host="b", version="1")
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        epoch = (await _taken(lock, group_id)).epoch
        await membership.request_resign(group_id, epoch - 1)
        stale = await lock.execute(Ping((group_id,), (epoch,)))
        await membership.request_resign(group_id, epoch)
        asked = await lock.execute(Ping((group_id,), (epoch,)))
    assert isinstance(stale, Pinged)
    assert isinstance(asked, Pinged)
    assert not stale.resign_ids
    assert asked.resign_ids == {group_id}


async def test_a_clean_release_is_seen_and_notified(database_url: str, identity: Identity) -> None:
    """G8: the lock is free before the notification says so."""
    group_id = identity.groups["default"]
    listener = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
    await listener.execute("LISTEN baton_test")
    async with _session(database_url) as first, _session(database_url, "b-1") as second:
        await _poll(first, identity)
        epoch = (await _taken(first, group_id)).epoch
        await first.execute(Release(group_id, epoch, clean=True))
        async for notice in listener.notifies(timeout=2, stop_after=1):
            assert notice.payload == f"release {group_id}"
        row = (await _poll(second, identity))["default"]
        assert row.locked
        assert row.holder.clean
    await listener.close()


async def test_a_release_under_an_old_epoch_says_nothing_about_the_new_one(
    database_url: str, identity: Identity
) -> None:
    group_id = identity.groups["default"]
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        first = await _taken(lock, group_id)
        await _taken(lock, group_id)
        await lock.execute(Release(group_id, first.epoch, clean=True))
        assert not (await _poll(lock, identity, tries=False))["default"].holder.clean


async def test_a_frozen_writer_does_not_block_the_takeover(
    database_url: str, identity: Identity
) -> None:
    """G8: a fenced write that sits idle in its transaction is ended, by the second attempt."""
    group_id = identity.groups["default"]
    writer = await psycopg.AsyncConnection.connect(database_url)
    await writer.execute("SELECT 1 FROM baton.term WHERE group_id = %s FOR SHARE", (group_id,))
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        answers = [await lock.execute(Takeover(group_id)) for _ in range(3)]
        assert answers[0] == Blocked()
        assert isinstance(answers[-1], Taken)
    with pytest.raises(psycopg.OperationalError):
        await writer.execute("SELECT 1")
    await writer.close()


async def test_a_transaction_that_only_reads_is_left_alone(
    database_url: str, identity: Identity
) -> None:
    """A backup reads `term` for hours, and blocks nobody."""
    group_id = identity.groups["default"]
    reader = await psycopg.AsyncConnection.connect(database_url)
    await reader.execute("SELECT 1 FROM baton.term")
    writer = await psycopg.AsyncConnection.connect(database_url)
    await writer.execute("SELECT 1 FROM baton.term WHERE group_id = %s FOR SHARE", (group_id,))
    async with _session(database_url) as lock:
        await _poll(lock, identity)
        async with asyncio.timeout(60):
            while await lock.execute(Takeover(group_id)) == Blocked():
                pass
    with pytest.raises(psycopg.OperationalError):
        await writer.execute("SELECT 1")
    await reader.execute("SELECT 1")
    await writer.close()
    await reader.close()


async def test_a_writer_that_has_just_paused_is_left_alone(
    database_url: str, database: Database, identity: Identity
) -> None:
    """Between two statements of a living process, too, it is idle in its transaction."""
    async with asyncio.timeout(60):
        while True:  # until the machine was quick enough
            writer = await psycopg.AsyncConnection.connect(database_url)
            started_at = monotonic()
            await writer.execute("SELECT 1 FROM baton.term FOR SHARE")
            await database.fetch("election/clear_blockers", {})
            if monotonic() - started_at < 0.5:
                break
            await writer.close()
    await writer.execute("SELECT 1")
    await writer.close()


async def test_a_writer_at_work_blocks_the_takeover_of_its_group_only(
    database_url: str, identity: Identity
) -> None:
    """G8: one attempt is one answer; the session and what else it holds go on."""
    default, other = identity.groups["default"], identity.groups["other"]
    writer = await psycopg.AsyncConnection.connect(database_url)
    await writer.execute("SELECT 1 FROM baton.term WHERE group_id = %s FOR SHARE", (other,))
    writing = asyncio.create_task(writer.execute("SELECT pg_sleep(60)"))
    timers = replace(TIMERS, server_lease=60.0)  # it is not silence that ends it
    async with _session(database_url, timers=timers) as lock:
        await _poll(lock, identity)
        epoch = (await _taken(lock, default)).epoch
        for _ in range(4):
            assert await lock.execute(Takeover(other)) == Blocked()
            pinged = await lock.execute(Ping((default,), (epoch,)))
            assert isinstance(pinged, Pinged)
            assert pinged.group_ids == {default}
        writer.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await writer.rollback()
        await _taken(lock, other)
    await writer.close()


async def test_a_writer_at_work_costs_a_release_its_cleanness_and_nothing_else(
    database_url: str, identity: Identity
) -> None:
    """G8: the lock is free for the successor, which waits its grace; the other group is kept."""
    default, other = identity.groups["default"], identity.groups["other"]
    async with (
        await psycopg.AsyncConnection.connect(database_url) as writer,
        _session(database_url, timers=replace(TIMERS, server_lease=60.0)) as lock,
        _session(database_url, "b-1") as successor,
    ):
        await _poll(lock, identity)
        kept, released = await _taken(lock, default), await _taken(lock, other)
        await writer.execute("SELECT 1 FROM baton.term WHERE group_id = %s FOR SHARE", (other,))
        await lock.execute(Release(other, released.epoch, clean=True))
        pinged = await lock.execute(Ping((default,), (kept.epoch,)))
        assert isinstance(pinged, Pinged)
        assert pinged.group_ids == {default}
        found = await _poll(successor, identity)
        assert (found["default"].locked, found["other"].locked) == (False, True)
        assert not found["other"].holder.clean


async def test_the_reaper_ends_exactly_the_backend_it_looked_at(
    database_url: str, identity: Identity
) -> None:
    group_id = identity.groups["default"]
    async with _session(database_url) as first, _session(database_url, "b-1") as second:
        await _poll(first, identity)
        seen = await second.execute(Inspect((group_id,)))
        assert isinstance(seen, Inspected)
        backend = seen.backends[group_id]
        await _poll(first, identity, tries=False)  # it lives: what was seen is out of date
        await second.execute(Reap(group_id, backend))
        await _poll(first, identity, tries=False)
        again = await second.execute(Inspect((group_id,)))
        assert isinstance(again, Inspected)
        await second.execute(Reap(group_id, again.backends[group_id]))
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(_poll_on(first, identity), 10)


async def test_two_schemas_never_meet(database_url: str, identity: Identity) -> None:
    await migrate(database_url, "second")
    database = Database(lambda: database_url, schema="second", size=1, statement_seconds=3.0)
    membership = Membership(database, runner_id="x-1", host="x", version="1")
    there = await membership.join("orders", "", ["default", "other"])
    other = LeaderLock(
        lambda: database_url,
        schema="second",
        channel="c",
        runner_id="x-1",
        host="x",
        timers=TIMERS,
    )
    await other.open()
    async with _session(database_url) as lock:
        assert (await _poll(lock, identity))["default"].locked
        assert (await _poll(other, there))["default"].locked
    await other.close()
    await database.close()


async def test_a_read_only_server_is_refused(database_url: str, identity: Identity) -> None:
    """G11: with an explanation."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(WrongServer, match="read-only server; point it at the primary"):
        async with _session(database_url):
            pass


async def test_tables_without_an_installation_are_told(
    database_url: str, identity: Identity
) -> None:
    """G8: the row of `meta` may be back at the next try."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("DELETE FROM baton.meta")
    with pytest.raises(StoreUnavailable, match=r"baton\.meta is empty"):
        async with _session(database_url):
            pass


async def test_a_pooler_is_refused(database_url: str, identity: Identity) -> None:
    """G11: a pooler tells the client a process id of its own making; so does this one."""
    async with pooler(database_url) as url:
        with pytest.raises(WrongServer, match="leads through a connection pooler"):
            async with _session(url):
                pass
