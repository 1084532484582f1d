"""A primary with a standby: what a failover may cost, and what never counts as acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

from devtools.servers import PostgresServer
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.model.election_types import Ping, Pinged, Poll, Taken, Takeover, Timers
from sidecar.model.errors import AnswerLost, StoreUnavailable, WrongServer
from tests.lab.processes import wait_until
from tests.lab.standby import HotStandby

TIMERS = Timers(ping=2.0, lease=8.0, server_lease=9.0, poll=0.5, grace=8.5)


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off"}) as server:
        yield server


@pytest.fixture
async def group_id(primary: PostgresServer) -> int:
    return await _joined(primary)


async def _joined(server: PostgresServer) -> int:
    await migrate(server.url, "baton")
    async with _pool(server.url) as database:
        membership = Membership(database, runner_id="a-1", host="a", version="1")
        identity = await membership.join("orders", "", ["default"])
    return identity.groups["default"]


@asynccontextmanager
async def _pool(url: str) -> AsyncIterator[Database]:
    database = Database(lambda: url, schema="baton", size=2, statement_seconds=8.0)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _session(url: str) -> AsyncIterator[LeaderLock]:
    lock = LeaderLock(
        lambda: url, schema="baton", channel="test", runner_id="a-1", host="a", timers=TIMERS
    )
    await lock.open()
    try:
        yield lock
    finally:
        await lock.close()


async def _led(lock: LeaderLock, group_id: int) -> Taken:
    await lock.execute(Poll((group_id,), (group_id,)))
    taken = await lock.execute(Takeover(group_id))
    assert isinstance(taken, Taken)
    return taken


def _without_standby(server: PostgresServer) -> None:
    """Every commit waits from now on: its standby is away."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'away'")
        connection.execute("SELECT pg_reload_conf()")
    wait_until(lambda: _setting(server) == "away", 10, "the setting")


def _setting(server: PostgresServer) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("SHOW synchronous_standby_names").fetchone()
        return row and row[0]


async def _cancel_the_wait(server: PostgresServer) -> None:
    """As an operator does who does not know better."""
    waiting = (
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    )
    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(server.url) as connection:
        while True:
            row = await (await connection.execute(waiting)).fetchone()
            await connection.rollback()
            if row and row[0]:
                return
            await asyncio.sleep(0.05)


async def test_a_write_that_did_not_wait_for_its_standby_is_not_acknowledged(
    primary: PostgresServer, group_id: int
) -> None:
    """G7: it stands on this server alone, and is gone when the standby takes over."""
    async with _pool(primary.url) as database:
        _without_standby(primary)
        for write in (_single, _in_transaction):
            cancelling = asyncio.create_task(_cancel_the_wait(primary))
            with pytest.raises(AnswerLost, match="the wait for the standby was cancelled"):
                await write(database, group_id)
            await cancelling
        assert await database.fetch_one("health/select_one") == {"one": 1}


async def _single(database: Database, group_id: int) -> None:
    await database.fetch("election/request_resign", {"group_id": group_id, "epoch": 1})


async def _in_transaction(database: Database, group_id: int) -> None:
    async with database.transaction() as transaction:
        await transaction.fetch("election/request_resign", {"group_id": group_id, "epoch": 2})


async def test_a_ping_that_did_not_wait_for_its_standby_is_none(
    primary: PostgresServer, group_id: int
) -> None:
    """G1: the standby may have been promoted, and another may lead there."""
    async with _session(primary.url) as lock:
        taken = await _led(lock, group_id)
        _without_standby(primary)
        cancelling = asyncio.create_task(_cancel_the_wait(primary))
        pinged = await lock.execute(Ping((group_id,), (taken.epoch,)))
        assert isinstance(pinged, Pinged)
        assert not pinged.acknowledged
        await cancelling


async def test_a_takeover_that_did_not_wait_for_its_standby_is_none(
    primary: PostgresServer, group_id: int
) -> None:
    """G1 G2"""
    async with _session(primary.url) as lock:
        _without_standby(primary)
        cancelling = asyncio.create_task(_cancel_the_wait(primary))
        with pytest.raises(StoreUnavailable, match="not replicated"):
            await _led(lock, group_id)
        await cancelling


class AgedServer(PostgresServer):
    """One that has used up nearly all its numbers of transactions."""

    def age(self) -> None:
        self.stop()
        pages = 2**20  # transactions in a file of their outcomes
        number = (2**31 - 30_000_000) // pages
        self._write(self.data_dir / "pg_xact" / f"{number:04X}", "\0" * (pages // 4))
        reset = self._spawn(
            [self.binaries.bin_dir / "pg_resetwal", "-f", "-x", str(number * pages), self.data_dir]
        )
        assert reset.wait() == 0, self._log_tail()
        self.start()


async def test_a_warning_of_an_overdue_vacuum_is_no_cancelled_wait() -> None:
    """G10: Postgres gives it with every write, for weeks perhaps, and all of them are safe."""
    with AgedServer(settings={"fsync": "off"}) as server:
        group_id = await _joined(server)
        server.age()
        with psycopg.connect(server.url) as connection:
            warnings: list[str | None] = []
            connection.add_notice_handler(lambda notice: warnings.append(notice.sqlstate))
            # Keeps the server from the vacuum that it begins by itself.
            connection.execute("LOCK TABLE baton.meta IN SHARE UPDATE EXCLUSIVE MODE")
            connection.execute("SELECT pg_current_xact_id()")
            assert warnings == ["01000"]
            async with _session(server.url) as lock, _pool(server.url) as database:
                taken = await _led(lock, group_id)
                pinged = await lock.execute(Ping((group_id,), (taken.epoch,)))
                assert pinged == Pinged(frozenset({group_id}))
                await _single(database, group_id)
                await _in_transaction(database, group_id)


async def test_epochs_rise_over_a_failover_that_lost_them(
    primary: PostgresServer, group_id: int
) -> None:
    """G2: the standby never heard of the last term. What it knows was written on another timeline:
    neither a beat nor a clean release of that one counts."""
    with HotStandby(primary) as standby:
        async with _session(primary.url) as lock:
            first = await _led(lock, group_id)
            await _until_seen(standby, first.epoch)
            standby.wire.silence()
            await lock.close()
            await lock.open()
            lost = await _led(lock, group_id)
            primary.kill()
        standby.promote()
        async with _session(standby.url) as lock:
            taken = await _led(lock, group_id)
    assert taken.found.epoch == first.epoch < lost.epoch < taken.epoch
    assert taken.found.timeline == first.timeline != taken.timeline


async def test_an_epoch_that_a_server_lost_is_exceeded_whatever_its_clock_shows(
    primary: PostgresServer, group_id: int
) -> None:
    """G2: whoever takes over has seen it."""
    async with _session(primary.url) as lock:
        above = (await _led(lock, group_id)).epoch + 3_600_000
        taken = await lock.execute(Takeover(group_id, above))
        assert isinstance(taken, Taken)
        assert taken.epoch == above + 1


async def _until_seen(standby: HotStandby, epoch: int) -> None:
    def seen() -> bool:
        with psycopg.connect(standby.url) as connection:
            return connection.execute("SELECT epoch FROM baton.term").fetchone() == (epoch,)

    await asyncio.to_thread(wait_until, seen, 10, "the term on the standby")


async def test_of_several_hosts_the_writable_one_is_found(
    primary: PostgresServer, group_id: int
) -> None:
    """As docs/operations.md says; before and after the standby has taken over."""
    with HotStandby(primary) as standby:
        with pytest.raises(WrongServer, match="read-only"):
            async with _session(standby.url):
                pass
        both = _both(standby, primary)
        async with _session(both) as lock:
            first = await _led(lock, group_id)
            await _until_seen(standby, first.epoch)
        primary.kill()
        standby.promote()
        async with _session(both) as lock, _pool(both) as database:
            assert (await _led(lock, group_id)).epoch > first.epoch
            assert await database.fetch_one("health/select_one") == {"one": 1}


def _both(*servers: PostgresServer) -> str:
    parts = urlsplit(servers[0].url)
    user = parts.netloc.rpartition("@")[0]
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://{user}@{hosts}{parts.path}?target_session_attrs=read-write"


async def test_a_standby_costs_one_failed_call(primary: PostgresServer, group_id: int) -> None:
    """A service may lead there for a moment; the next connection leads to the primary."""
    with HotStandby(primary) as standby:
        targets = [standby.url, primary.url]
        database = Database(lambda: targets[0], schema="baton", size=1, statement_seconds=8.0)
        with pytest.raises(StoreUnavailable, match="standby"):
            await _single(database, group_id)
        targets.pop(0)
        await _single(database, group_id)
        await database.close()
