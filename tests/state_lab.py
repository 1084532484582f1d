"""What the tests of state share: a migrated database with a cluster, a term and runs in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import HintSubscription
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.state import PostgresState
from sidecar.adapters.redis_cache import RedisCache
from sidecar.model.breaker import Breaker
from sidecar.model.definitions import State
from sidecar.model.identity import Identity
from sidecar.model.run import RunRef
from sidecar.model.state_types import Owner
from sidecar.state import RedisCopies, StateStore

EPOCH = 1000


@dataclass
class StateLab:
    """One cluster in one database; `pod` opens another pod's view of it."""

    url: str
    identity: Identity

    @asynccontextmanager
    async def pod(
        self,
        *,
        url: str = "",
        size: int = 4,
        seconds: float = 5.0,
        heartbeat_seconds: float = 30.0,
    ) -> AsyncIterator[PostgresState]:
        database = Database(
            lambda: url or self.url, schema="baton", size=size, statement_seconds=seconds
        )
        try:
            yield PostgresState(database, self.who, heartbeat_seconds=heartbeat_seconds)
        finally:
            await database.close()

    async def who(self) -> Identity:
        return self.identity

    async def sql(self, text: str, **parameters: object) -> list[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(text.encode(), parameters)
            return await cursor.fetchall() if cursor.description else []

    async def live_run(self, kind: str = "singleton", name: str = "coordinator") -> RunRef:
        rows = await self.sql(
            "INSERT INTO baton.run"
            " (cluster_id, group_id, kind, name, tick, state, due_at, attempt, epoch)"
            " VALUES (%(c)s, %(g)s, %(kind)s, %(name)s, now(), 'running', now(), 1, %(e)s)"
            " RETURNING id",
            c=self.identity.cluster_id,
            g=self.identity.groups["default"],
            kind=kind,
            name=name,
            e=EPOCH,
        )
        run_id = rows[0][0]
        assert isinstance(run_id, int)
        return RunRef(run_id=run_id, attempt=1, epoch=EPOCH)

    async def end_run(self, run: RunRef) -> None:
        await self.sql(
            "UPDATE baton.run SET state = 'ended', outcome = 'succeeded', finished_at = now()"
            " WHERE id = %(id)s",
            id=run.run_id,
        )

    async def take_over(self, epoch: int = EPOCH + 1) -> None:
        await self.sql("UPDATE baton.term SET epoch = %(epoch)s", epoch=epoch)


async def state_lab(url: str) -> StateLab:
    """Migrate the database and put a cluster with one group, led under EPOCH, into it."""
    await migrate(url, "baton")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(
            "WITH c AS (INSERT INTO baton.cluster (name) VALUES ('orders') RETURNING id),"
            " g AS (INSERT INTO baton.leader_group (cluster_id, name)"
            "       SELECT id, 'default' FROM c RETURNING id),"
            " m AS (SELECT installation_id::text AS id FROM baton.meta)"
            " SELECT c.id, g.id, m.id FROM c, g, m"
        )
        row = await cursor.fetchone()
        assert row is not None
        await connection.execute(
            "INSERT INTO baton.term (group_id, epoch) VALUES (%s, %s)", (row[1], EPOCH)
        )
    identity = Identity("orders", row[0], "pod-1", "host", {"default": row[1]}, row[2])
    return StateLab(url, identity)


class NoHints:
    """Hints that nobody sends and nobody hears."""

    def notify(self, topic: str, detail: str = "") -> None:
        return None

    def subscribe(self, topic: str) -> HintSubscription:
        return HintSubscription()

    def unsubscribe(self, topic: str, subscription: HintSubscription) -> None:
        return None


async def nobody_known(_: Owner) -> State | None:
    return None


@asynccontextmanager
async def pod_with_redis(
    lab: StateLab, redis_url: str, *, ttl_seconds: float = 30.0, timeout_seconds: float = 2.0
) -> AsyncIterator[StateStore]:
    """A pod's store as `app.py` wires it, with the task that writes to Redis."""
    cache = RedisCache(lambda: redis_url, timeout_seconds=timeout_seconds)
    async with lab.pod() as truth:
        copies = RedisCopies(
            cache,
            truth,
            Breaker(5, 0.5),
            ttl_seconds=ttl_seconds,
            budget_seconds=timeout_seconds,
            monotonic=boottime,
        )
        writing = asyncio.create_task(copies.run())
        try:
            yield StateStore(truth, copies, NoHints(), nobody_known, monotonic=boottime)
        finally:
            writing.cancel()
            await asyncio.wait({writing})
            await cache.close()
