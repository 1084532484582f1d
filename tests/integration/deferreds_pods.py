"""Pods that share a database, as far as deferreds are concerned; and runs for them to act for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.listener import PostgresHints, channel_name
from sidecar.adapters.postgres.membership import Membership
from sidecar.deferreds import Deferreds
from sidecar.model.identity import Identity
from sidecar.model.run import RunRef

EPOCH = 1000
_LISTENING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%%' AND state = 'idle'
"""


@dataclass
class Pod:
    url: str
    database: Database
    hints: PostgresHints
    store: PostgresDeferreds
    deferreds: Deferreds
    identity: Identity


@asynccontextmanager
async def pod(
    url: str, *, cluster: str = "orders", poll_seconds: float = 30.0, listen: bool = True
) -> AsyncIterator[Pod]:
    """One that serves its waits. The long poll: whatever comes soon came by a hint."""
    database = Database(lambda: url, schema="baton", size=4, statement_seconds=3.0)
    membership = Membership(database, runner_id="r1", host="h", version="0")
    identity = await membership.join(cluster, "", ["default"])

    async def known() -> Identity:
        return identity

    hints = PostgresHints(database, lambda: url, channel=channel_name("baton", cluster))
    store = PostgresDeferreds(database, known)
    deferreds = Deferreds(store, hints, poll_seconds=poll_seconds)
    tasks = [asyncio.create_task(deferreds.run())]
    if listen:
        before = (await execute(url, _LISTENING))[0][0]
        tasks.append(asyncio.create_task(hints.run()))
        async with asyncio.timeout(60):
            while (await execute(url, _LISTENING))[0][0] <= before:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
    try:
        yield Pod(url, database, hints, store, deferreds, identity)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await database.close()
        for task in tasks:
            assert task.cancelled()  # it served until the end


async def execute(url: str, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(query.encode(), parameters)
        return await cursor.fetchall() if cursor.description else []


async def lead(pod: Pod, epoch: int = EPOCH) -> None:
    await execute(pod.url, "UPDATE baton.term SET epoch = %(epoch)s", epoch=epoch)


async def start_run(pod: Pod, kind: str = "trigger", epoch: int = EPOCH) -> RunRef:
    """A run under way in its first attempt."""
    rows = await execute(
        pod.url,
        """INSERT INTO baton.run
               (cluster_id, group_id, kind, name, tick, state, due_at, attempt, epoch)
           VALUES (%(cluster)s, %(group)s, %(kind)s, 'job', now(), 'running', now(), 1, %(epoch)s)
           RETURNING id""",
        cluster=pod.identity.cluster_id,
        group=pod.identity.groups["default"],
        kind=kind,
        epoch=epoch,
    )
    return RunRef(rows[0][0], 1, epoch)


async def take_over(pod: Pod, run: RunRef) -> RunRef:
    """The leader changes, and the run is delivered again."""
    await lead(pod, run.epoch + 1)
    await execute(
        pod.url,
        "UPDATE baton.run SET attempt = attempt + 1, epoch = epoch + 1 WHERE id = %(id)s",
        id=run.run_id,
    )
    return RunRef(run.run_id, run.attempt + 1, run.epoch + 1)
