"""Joining a cluster, the registry of runners, and hints between pods, on a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic

import psycopg
import pytest

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import PostgresHints, channel_name
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.model.errors import ClusterTaken, IncompatibleSchema
from tests.lab.proxy import FaultProxy


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(lambda: database_url, schema="baton", size=3, statement_seconds=3.0)
    yield database
    await database.close()


def _runner(database: Database, name: str) -> Membership:
    return Membership(database, runner_id=f"{name}-1", host=name, version="1")


async def test_joining_twice_gives_the_same_numbers(database: Database, database_url: str) -> None:
    await migrate(database_url, "baton")
    first, second = await asyncio.gather(
        _runner(database, "a").join("orders", "shop", ["default", "x"]),
        _runner(database, "b").join("orders", "shop", ["x", "default"]),
    )
    again = await _runner(database, "c").join("orders", "shop", ["default", "x", "new"])
    assert first.cluster_id == second.cluster_id == again.cluster_id
    for name in ("default", "x"):
        known = {i.groups[name] for i in (first, second, again) if name in i.groups}
        assert len(known) == 1
    assert set(again.groups) == {"default", "x", "new"}


async def test_joining_at_the_same_instant_gives_everybody_every_group(
    database: Database, database_url: str
) -> None:
    """G1: a runner that missed a group would never compete for it."""
    await migrate(database_url, "baton")
    for number in range(15):
        joined = await asyncio.gather(
            *(_runner(database, f"r{i}").join(f"c{number}", "", ["default", "x"]) for i in range(3))
        )
        assert [set(identity.groups) for identity in joined] == [{"default", "x"}] * 3


async def test_files_that_name_the_groups_in_another_order_do_not_deadlock(
    database: Database, database_url: str
) -> None:
    """Each row takes its time here, so that two who join are in the middle at the same instant."""
    await migrate(database_url, "baton")
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$"
        )
        await connection.execute(
            "CREATE TRIGGER slowly BEFORE INSERT ON baton.leader_group"
            " FOR EACH ROW EXECUTE FUNCTION slowly()"
        )
    first, second = await asyncio.gather(
        _runner(database, "a").join("orders", "", ["default", "x"]),
        _runner(database, "b").join("orders", "", ["x", "default"]),
    )
    assert first.groups == second.groups


async def test_another_app_under_the_same_name_is_refused(
    database: Database, database_url: str
) -> None:
    """G11: two apps would take each other's work."""
    await migrate(database_url, "baton")
    await _runner(database, "a").join("orders", "shop", ["default"])
    with pytest.raises(ClusterTaken, match=r"belongs to the app 'shop'.*another cluster name"):
        await _runner(database, "b").join("orders", "bank", ["default"])
    await _runner(database, "c").join("orders", "", ["default"])


async def test_without_tables_it_says_what_to_do(new_database: Callable[[], str]) -> None:
    """G11."""
    url = new_database()
    database = Database(lambda: url, schema="baton", size=3, statement_seconds=3.0)
    with pytest.raises(IncompatibleSchema, match="run 'baton migrate'"):
        await _runner(database, "a").join("orders", "", ["default"])
    await database.close()


async def test_the_registry_shows_who_lives(database: Database, database_url: str) -> None:
    await migrate(database_url, "baton")
    a, b = _runner(database, "a"), _runner(database, "b")
    identity = await a.join("orders", "", ["default"])
    assert await a.beat(identity, campaigning=True, config_revision=0) == []
    seen = await b.beat(identity, campaigning=False, config_revision=0)
    assert [(r.runner_id, r.campaigning) for r in seen] == [("a-1", True)]
    await a.leave()
    assert await b.beat(identity, campaigning=False, config_revision=0) == []
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("UPDATE baton.runner SET seen_at = now() - interval '1 minute'")
    assert await a.beat(identity, campaigning=True, config_revision=0) == []


async def test_the_registry_knows_the_groups_of_each_runner(
    database: Database, database_url: str
) -> None:
    await migrate(database_url, "baton")
    runner = _runner(database, "a")
    identity = await runner.join("orders", "", ["default", "x"])
    await runner.beat(identity, campaigning=False, config_revision=0)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cursor = await connection.execute("SELECT group_ids FROM baton.runner")
        assert await cursor.fetchall() == [(sorted(identity.groups.values()),)]


async def test_a_hint_reaches_another_pod_soon(database: Database, database_url: str) -> None:
    channel = channel_name("baton", "orders")
    pods = [PostgresHints(database, lambda: database_url, channel=channel) for _ in range(2)]
    other = PostgresHints(database, lambda: database_url, channel=channel_name("baton", "other"))
    subscriptions = [pod.subscribe("runs") for pod in (*pods, other)]
    tasks = [asyncio.create_task(pod.run()) for pod in (*pods, other)]
    try:
        for subscription in subscriptions:
            assert await subscription.wait(5)  # woken by the connect
        seconds = []
        for run_id in "789":
            started = monotonic()
            pods[0].notify("runs", run_id)
            pods[0].notify("runs", run_id)
            assert await subscriptions[1].wait(10)
            seconds.append(monotonic() - started)
            assert subscriptions[1].details() == [run_id]
        assert min(seconds) < 1, seconds
        assert not await subscriptions[2].wait(0.2)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_after_a_broken_connection_everybody_is_woken(
    database: Database, database_url: str
) -> None:
    """Something may have been missed; a hint only ever saves time."""
    with FaultProxy.before(database_url) as wire:
        hints = PostgresHints(database, lambda: wire.url(database_url), channel="baton_x")
        subscription = hints.subscribe("schedules")
        task = asyncio.create_task(hints.run())
        assert await subscription.wait(5)
        wire.cut()
        assert await subscription.wait(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
