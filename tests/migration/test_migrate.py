"""Migrations on a real Postgres: whole versions, many pods at once, no ping behind them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from sidecar.adapters.postgres import migrate as module
from sidecar.adapters.postgres.migrate import check_compatible, migrate, migrations, newest_version
from sidecar.model.errors import IncompatibleSchema, SidecarError, WrongServer
from tests.lab.pooler import pooler


async def _rows(url: str, query: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(query)).fetchall()


async def test_numbers_follow_each_other() -> None:
    assert [m.version for m in migrations()] == list(range(1, newest_version() + 1))


async def test_it_brings_an_empty_database_up_to_date_and_then_does_nothing(
    database_url: str,
) -> None:
    assert await migrate(database_url, "baton") == [m.name for m in migrations()]
    assert await migrate(database_url, "baton") == []
    assert await _rows(database_url, "SELECT schema_version FROM baton.meta") == [
        (newest_version(),)
    ]


async def test_many_pods_at_once(database_url: str) -> None:
    applied = await asyncio.gather(*(migrate(database_url, "baton") for _ in range(6)))
    assert [name for names in applied for name in names] == [m.name for m in migrations()]


async def test_two_schemas_in_one_database(database_url: str) -> None:
    await migrate(database_url, "one")
    await migrate(database_url, "two")
    first = await _rows(database_url, "SELECT installation_id FROM one.meta")
    second = await _rows(database_url, "SELECT installation_id FROM two.meta")
    assert first != second


async def test_a_failing_file_leaves_a_whole_version(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = migrations()
    broken = module.Migration(
        newest_version() + 1, "broken", "CREATE TABLE baton.half (); SELECT nonsense()", None
    )
    monkeypatch.setattr(module, "migrations", lambda: [*real, broken])
    with pytest.raises(SidecarError):
        await migrate(database_url, "baton")
    assert await _rows(database_url, "SELECT to_regclass('baton.half')") == [(None,)]
    assert await _rows(database_url, "SELECT schema_version FROM baton.meta") == [(len(real),)]


async def test_it_waits_for_a_locked_table_without_blocking_others(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock request that waits would make every ping queue behind it: it gives up and retries."""
    await migrate(database_url, "baton")
    real = migrations()
    change = module.Migration(
        newest_version() + 1, "change", "ALTER TABLE baton.beat ADD COLUMN more text", None
    )
    monkeypatch.setattr(module, "migrations", lambda: [*real, change])
    holder = await psycopg.AsyncConnection.connect(database_url)
    await holder.execute("SELECT 1 FROM baton.beat")
    work = asyncio.create_task(migrate(database_url, "baton"))
    await asyncio.sleep(1.5)
    assert not work.done()
    async with asyncio.timeout(30):  # for ever, if the lock request waited: `holder` stays
        await _rows(database_url, "SELECT count(*) FROM baton.beat")
    await holder.close()
    assert await work == ["change"]


async def test_it_does_nothing_through_a_pooler(database_url: str) -> None:
    """There its lock would hold nobody off, and its settings would be somebody else's."""
    async with pooler(database_url) as url:
        with pytest.raises(WrongServer, match="leads through a connection pooler"):
            await migrate(url, "baton")
    assert await _rows(database_url, "SELECT to_regnamespace('baton')") == [(None,)]


async def test_tables_whose_version_is_lost_are_left_alone(database_url: str) -> None:
    await migrate(database_url, "baton")
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("DELETE FROM baton.meta")
    with pytest.raises(IncompatibleSchema, match=r"baton\.meta is empty"):
        await migrate(database_url, "baton")


def test_tables_too_old_are_refused_with_the_way_out() -> None:
    with pytest.raises(IncompatibleSchema, match="run 'baton migrate'"):
        check_compatible(schema_version=newest_version() - 1, oldest_reader=0)


def test_newer_tables_are_fine_if_they_say_so() -> None:
    check_compatible(schema_version=newest_version() + 5, oldest_reader=newest_version())


def test_newer_tables_that_need_a_newer_release_are_refused() -> None:
    with pytest.raises(IncompatibleSchema, match="use a newer release"):
        check_compatible(schema_version=99, oldest_reader=newest_version() + 1)


async def test_ids_of_runs_rise_over_the_migration_that_puts_the_time_into_them(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that a sidecar of release 0.1.0 makes, which names no id."""
    insert = """INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at)
                VALUES (1, 1, 'trigger', 'job', now(), 'queued', now()) RETURNING id"""
    known = migrations()
    monkeypatch.setattr(module, "migrations", lambda: [m for m in known if m.version < 9])
    await migrate(database_url, "baton")
    assert await _rows(database_url, insert) == [(1,)]
    monkeypatch.setattr(module, "migrations", lambda: known)
    assert "0009_run_ids" in await migrate(database_url, "baton")
    await _rows(database_url, insert)
    await _rows(database_url, insert)
    by_id = await _rows(database_url, "SELECT ctid FROM baton.run ORDER BY id")
    assert len(by_id) == 3
    assert by_id == await _rows(database_url, "SELECT ctid FROM baton.run ORDER BY ctid")
