"""The pool on a real Postgres: bounded, self-healing, and fit for a pooler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from math import inf
from time import monotonic

import psycopg
import pytest
from psycopg import sql

from devtools.servers import PostgresServer
from sidecar.adapters.postgres.database import RESERVED, Database
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.pool import WAITING_MAX, WARM
from sidecar.model.errors import AnswerLost, Overloaded, StoreRefused, StoreUnavailable
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, laboratory
from tests.lab import pgbouncer
from tests.lab.pooler import pooler
from tests.lab.proxy import FaultProxy

QUERY = "health/select_one"


@pytest.fixture
async def open_database(database_url: str) -> AsyncIterator[Callable[..., Database]]:
    opened: list[Database] = []

    def open_(url: str = database_url, *, size: int = 2, seconds: float = 10.0) -> Database:
        opened.append(Database(lambda: url, schema="baton", size=size, statement_seconds=seconds))
        return opened[-1]

    yield open_
    for database in opened:
        await database.close()


async def test_it_answers_and_keeps_one_connection(open_database: Callable[..., Database]) -> None:
    database = open_database()
    assert await database.fetch_one(QUERY) == {"one": 1}
    await asyncio.gather(*(database.fetch(QUERY) for _ in range(20)))
    assert database.open_connections <= 2


async def test_a_silent_server_costs_the_limit_and_no_more(
    open_database: Callable[..., Database], database_url: str
) -> None:
    """The trap: cancelling a psycopg call on a half-open connection returns many seconds late."""
    with FaultProxy.before(database_url) as wire:
        database = open_database(wire.url(database_url), seconds=1.5)
        await database.fetch(QUERY)
        wire.silence()
        started = monotonic()
        with pytest.raises(AnswerLost):
            await database.fetch(QUERY)
        assert monotonic() - started < 4
        wire.heal()
        assert await database.fetch_one(QUERY) == {"one": 1}


async def test_cancelling_a_call_on_a_silent_server_returns_at_once(
    open_database: Callable[..., Database], database_url: str
) -> None:
    with FaultProxy.before(database_url) as wire:
        database = open_database(wire.url(database_url), seconds=30.0)
        await database.fetch(QUERY)
        wire.silence()
        call = asyncio.create_task(database.fetch(QUERY))
        await asyncio.sleep(0.1)
        started = monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert monotonic() - started < 2


async def test_a_cut_connection_is_replaced(
    open_database: Callable[..., Database], database_url: str
) -> None:
    with FaultProxy.before(database_url) as wire:
        database = open_database(wire.url(database_url))
        await database.fetch(QUERY)
        wire.cut()
        with pytest.raises(StoreUnavailable):
            await database.fetch(QUERY)
        assert await database.fetch_one(QUERY) == {"one": 1}
        assert database.open_connections == 1


async def test_nobody_there_fails_at_once(open_database: Callable[..., Database]) -> None:
    database = open_database("postgresql://u:p@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable):
        await database.fetch(QUERY)
    assert database.open_connections == 0


async def test_a_full_pool_says_so(open_database: Callable[..., Database]) -> None:
    database = open_database(size=1)
    async with database.transaction():
        with pytest.raises(StoreUnavailable, match="all 1 connections busy"):
            await database.fetch(QUERY, seconds=0.2)
    assert await database.fetch_one(QUERY) == {"one": 1}


async def test_a_failed_transaction_changes_nothing(
    open_database: Callable[..., Database], database_url: str
) -> None:
    database = open_database()
    await migrate(database_url, "baton")

    async def fail() -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO baton.cluster (name) VALUES ('x')")
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await fail()
    async with database.transaction() as transaction:
        assert await transaction.run("SELECT name FROM baton.cluster") == []


async def test_a_transaction_left_idle_is_ended_by_the_server(
    open_database: Callable[..., Database],
) -> None:
    """G8: a frozen writer does not hold the term's row for longer than a lease."""
    database = open_database(seconds=0.3)
    with pytest.raises(StoreUnavailable):
        async with database.transaction(seconds=5):
            await asyncio.sleep(0.6)
    assert await database.fetch_one(QUERY, seconds=5) == {"one": 1}


async def test_a_missing_table_is_refused_with_its_name(
    open_database: Callable[..., Database], new_database: Callable[[], str]
) -> None:
    with pytest.raises(StoreRefused, match="meta"):
        await open_database(new_database()).fetch("cluster/schema_version")


async def test_the_server_limits_statements_too(open_database: Callable[..., Database]) -> None:
    database = open_database(seconds=7.0)
    async with database.transaction() as transaction:
        rows = await transaction.run(
            "SELECT current_setting('statement_timeout') AS statement,"
            " current_setting('idle_in_transaction_session_timeout') AS idle"
        )
    assert rows == [{"statement": "7s", "idle": "7s"}]


async def test_a_changed_url_is_used_at_the_next_connect(database_url: str) -> None:
    urls = ["postgresql://u:p@127.0.0.1:1/nowhere"]
    database = Database(lambda: urls[-1], schema="baton", size=1, statement_seconds=10.0)
    with pytest.raises(StoreUnavailable):
        await database.fetch(QUERY)
    urls.append(database_url)
    assert await database.fetch_one(QUERY) == {"one": 1}
    await database.close()


async def test_a_standby_is_refused(open_database: Callable[..., Database]) -> None:
    """It would answer, with what was true some time ago."""
    with PostgresServer() as server:
        server.stop()
        (server.data_dir / "standby.signal").touch()
        server.start()
        database = open_database(server.url)
        with pytest.raises(StoreUnavailable, match="standby"):
            await database.fetch(QUERY)
        assert database.open_connections == 0
        with psycopg.connect(server.url, autocommit=True) as administrator:
            administrator.execute("SELECT pg_promote()")
        assert await database.fetch_one(QUERY) == {"one": 1}


async def test_connections_carry_their_purpose(
    open_database: Callable[..., Database], database_url: str
) -> None:
    """An operator finds ours in pg_stat_activity."""
    await open_database().fetch(QUERY)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await connection.execute(
            "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        )
        assert ("baton pool",) in await rows.fetchall()


async def test_a_call_cancelled_as_it_ends_leaves_no_cut_connection_behind(
    open_database: Callable[..., Database],
) -> None:
    """Cancelled at any moment, the next caller gets an answer."""
    database = open_database(size=1)
    await database.fetch(QUERY)
    for steps in range(60):
        call = asyncio.create_task(database.fetch(QUERY))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await database.fetch_one(QUERY) == {"one": 1}


async def test_instants_are_in_utc_whatever_the_zone_of_the_server(
    open_database: Callable[..., Database], database_url: str
) -> None:
    """G4, G5: in its own zone, the repeated hour of autumn would compare as one and the same."""
    await _alter(database_url, {"timezone": "Europe/Berlin"})
    async with open_database().transaction() as transaction:
        (row,) = await transaction.run(
            "SELECT current_setting('timezone') AS zone,"
            " timestamptz '2026-10-25T00:30:00Z' AS first,"
            " timestamptz '2026-10-25T01:30:00Z' AS second"
        )
    assert row["zone"] == "Europe/Berlin"
    assert row["second"] - row["first"] == timedelta(hours=1)
    assert row["first"].isoformat() == "2026-10-25T00:30:00+00:00"


ODD_DEFAULTS = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "datestyle": "German",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "-15",
    "idle_session_timeout": "200ms",
    "intervalstyle": "sql_standard",
    "lock_timeout": "1ms",
    "search_path": "",
    "statement_timeout": "1s",
    "synchronous_commit": "off",
    "timezone": "Asia/Kathmandu",
}


async def _alter(url: str, settings: Mapping[str, str]) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        for name, value in settings.items():
            statement = sql.SQL("ALTER DATABASE {} SET {} = {}")
            await connection.execute(statement.format(database, sql.Identifier(name), value))


async def test_odd_defaults_of_a_database_reach_no_statement(database_url: str) -> None:
    """G4, G7: many a server has been set up for something else."""
    await _alter(database_url, ODD_DEFAULTS)
    app = FakeApp()
    async with laboratory(database_url) as lab:
        await lab.add(EVERY_HOUR, behind=timedelta(hours=1))
        async with lab.leading(app):
            (row,) = await lab.ended()
        await asyncio.sleep(0.4)  # longer than a session may be idle there
        assert await lab.database.fetch_one(QUERY) == {"one": 1}
    assert (row["outcome"], row["error"]) == ("succeeded", "")
    assert app.calls[0].scheduled_at == row["tick"]


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "through a pooler"])
async def test_what_is_pinned_holds(
    open_database: Callable[..., Database], database_url: str, pooled: bool
) -> None:
    """G7: a write that is acknowledged is on disk. Where more is asked for, that stays."""
    wanted = {
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "DateStyle": "ISO, DMY",
        "array_nulls": "on",
    }
    await _alter(database_url, ODD_DEFAULTS)
    async with pooler(database_url) as through:
        database = open_database(through if pooled else database_url)
        async with database.transaction() as transaction:
            rows = await transaction.run("SELECT name, setting FROM pg_settings")
        settings = {row["name"]: row["setting"] for row in rows}
        assert {name: settings[name] for name in wanted} == wanted
    await _alter(database_url, {"synchronous_commit": "remote_apply"})
    async with open_database().transaction() as transaction:
        rows = await transaction.run("SELECT current_setting('synchronous_commit') AS found")
    assert rows == [{"found": "remote_apply"}]


async def test_warming_up_in_a_crowd_opens_no_more_than_its_size(
    open_database: Callable[..., Database], database_url: str
) -> None:
    """What is being opened counts too: a slot that comes free meanwhile is for what it leaves."""
    with FaultProxy.before(database_url) as wire:
        database = open_database(wire.url(database_url), size=4)

        async def works(seconds: float) -> None:
            async with database.transaction() as transaction:
                await transaction.run(f"SELECT pg_sleep({seconds})")

        first = [asyncio.create_task(works(1.0)) for _ in range(2)]
        await _until(lambda: wire.connections == 2)
        wire.delay(0.4)  # so that opening one takes its time
        crowd = [asyncio.create_task(works(0.1)) for _ in range(2)]
        await _until(lambda: wire.connections == 4)
        most = 0
        async with database.warm():
            while not all(task.done() for task in (*first, *crowd)):
                most = max(most, wire.connections)
                await asyncio.sleep(0.01)
        assert most == 4


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody tells when a proxy is connected
            await asyncio.sleep(0.01)


async def test_while_warm_it_keeps_what_a_burst_needs(
    open_database: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader's burst waits for no connection; a standby holds one."""
    monkeypatch.setattr("sidecar.adapters.postgres.pool.IDLE_SECONDS_MAX", 0.0)
    database = open_database(size=4)
    async with database.warm(), database.warm():
        async with asyncio.timeout(60):
            while database.open_connections < WARM:  # noqa: ASYNC110 - any condition will do
                await asyncio.sleep(0.01)
        backends = {await _backend(database) for _ in range(3 * WARM)}
        assert len(backends) == WARM, "not used by turns: some stay cold"
        assert database.open_connections == WARM
    for _ in range(WARM):
        await database.fetch(QUERY)
    assert database.open_connections == 1


async def _backend(database: Database) -> int:
    async with database.transaction() as transaction:
        (row,) = await transaction.run("SELECT pg_backend_pid() AS pid")
    return int(row["pid"])


async def _in_transaction(database: Database) -> None:
    async with database.transaction() as transaction:
        await transaction.fetch(QUERY)


@pytest.mark.parametrize("single", [True, False], ids=["a statement", "a transaction"])
async def test_the_last_error_of_a_server_behind_a_pooler_is_quoted(
    open_database: Callable[..., Database], database_url: str, *, single: bool
) -> None:
    """The server's error and the pooler's are two results, where psycopg's own BEGIN expects one:
    it complains of that, and nobody reads why."""
    crashed = asyncio.Event()
    async with pooler(database_url, crashed=crashed) as through:
        database = open_database(through)
        await database.fetch(QUERY)
        crashed.set()
        work = database.fetch(QUERY) if single else _in_transaction(database)
        with pytest.raises(StoreUnavailable, match="terminating connection due to admin"):
            await work
        crashed.clear()
        assert await database.fetch_one(QUERY) == {"one": 1}


async def test_an_error_behind_a_pooler_keeps_the_connection(
    open_database: Callable[..., Database], new_database: Callable[[], str]
) -> None:
    """A statement that failed leaves no transaction behind, and its connection is of use."""
    async with pooler(new_database()) as through:
        database = open_database(through, size=1)
        await database.fetch(QUERY)
        async with database.transaction() as transaction:
            before = await transaction.run("SELECT pg_backend_pid() AS pid")
        with pytest.raises(StoreRefused):
            await database.fetch("cluster/schema_version")  # there are no tables
        async with database.transaction() as transaction:
            assert await transaction.run("SELECT pg_backend_pid() AS pid") == before


@pytest.mark.skipif(bool(pgbouncer.why_not()), reason=pgbouncer.why_not())
async def test_pgbouncer_tells_that_its_server_is_away(
    open_database: Callable[..., Database],
) -> None:
    with (
        PostgresServer(settings={"fsync": "off"}) as server,
        pgbouncer.PgBouncer(server.url) as through,
    ):
        database = open_database(through.url, seconds=3.0)
        assert await database.fetch_one(QUERY) == {"one": 1}
        server.kill()
        for _ in range(5):
            with pytest.raises(StoreUnavailable) as caught:
                await database.fetch(QUERY)
            assert "results from command" not in str(caught.value)


async def test_a_share_leaves_connections_to_the_others(
    open_database: Callable[..., Database],
) -> None:
    """However many callers of the API there are, ticks and probes find a connection (G11)."""
    database = open_database(size=4, seconds=20.0)
    shared = database.share()
    ended = asyncio.Event()

    async def hold() -> None:
        async with shared.transaction() as transaction:
            await transaction.run("SELECT 1")
            await ended.wait()

    crowd = [asyncio.create_task(hold()) for _ in range(20)]
    await _until(lambda: database.open_connections == 4 - RESERVED)
    await asyncio.gather(*(database.fetch(QUERY, seconds=5.0) for _ in range(10)))
    ended.set()
    await asyncio.gather(*crowd)
    assert await shared.fetch_one(QUERY) == {"one": 1}


async def test_few_may_wait_for_a_share(open_database: Callable[..., Database]) -> None:
    """Beyond that a caller is told to come back, and those who wait get their turn (G11)."""
    shared = open_database(size=1).share()
    async with shared.transaction():
        waiting = [asyncio.create_task(shared.fetch(QUERY)) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match=f"{WAITING_MAX} calls wait"):
            await shared.fetch(QUERY)
    assert await asyncio.gather(*waiting) == [[{"one": 1}]] * WAITING_MAX


async def test_who_waits_too_long_for_a_share_says_nothing_of_postgres(
    open_database: Callable[..., Database],
) -> None:
    """A crowd at the API must not look like a Postgres that does not answer."""
    database = open_database(size=1)
    shared = database.share()
    async with shared.transaction():
        with pytest.raises(StoreUnavailable, match="busy"):
            await shared.fetch(QUERY, seconds=0.1)
    assert database.answering_seconds() == inf
    assert await shared.fetch_one(QUERY) == {"one": 1}
