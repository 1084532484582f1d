"""Runs named queries of one schema on connections of a pool.

Guarantees:
- each statement and transaction ends within its client-side deadline, waiting for a connection
  included;
- callers with a `share` of the pool never take the connections of the others;
- it works behind a transaction pooler: nothing depends on session state. The server-side limits
  (`statement_timeout`, `idle_in_transaction_session_timeout`) and what else is pinned are session
  settings on a direct connection, and set in each transaction behind a pooler, where a session
  setting would affect other clients.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from math import inf
from time import monotonic
from typing import Any

from sidecar.adapters.postgres.pool import Connections, Pool, Pooled, Share
from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.session import Connection, bounded, discard, fetch, rows_of
from sidecar.model.errors import SidecarError, StoreUnavailable

Row = dict[str, Any]
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# What a `share` leaves to ticks, claims, completions, heartbeats and probes. Each of their
# statements takes milliseconds: two carry them all, and leave two of four to the API.
RESERVED = 2


class Database:
    """Runs queries of one schema. `url` is called for each new connection."""

    def __init__(
        self,
        url: Callable[[], str],
        *,
        schema: str,
        size: int,
        statement_seconds: float,
        unused_seconds: float | None = None,
    ) -> None:
        self.queries = Queries(schema)
        self.schema = schema
        self._statement_seconds = statement_seconds
        self._pool = Pool(
            url, size=size, statement_seconds=statement_seconds, unused_seconds=unused_seconds
        )
        self._connections: Connections = self._pool
        self._answered_at = -inf
        self._latency_seconds = 0.0

    def share(self) -> "Database":
        """The same, for callers who leave RESERVED connections alone and of whom few may wait."""
        shared = copy(self)
        shared._connections = Share(self._pool, max(1, self._pool.size - RESERVED))
        return shared

    def warm(self) -> AbstractAsyncContextManager[None]:
        return self._pool.warm()

    async def close(self) -> None:
        await self._pool.close()

    async def probe(self, *, fresh_seconds: float) -> float:
        """How long Postgres took for its last answer; asked anew if that is too long ago."""
        if monotonic() - self._answered_at > fresh_seconds:
            await self.fetch("health/select_one")
        return self._latency_seconds

    def answering_seconds(self) -> float:
        """For how long no call has failed for want of Postgres."""
        return self._pool.answering_seconds()

    @property
    def open_connections(self) -> int:
        return self._pool.open_connections

    async def fetch(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> list[Row]:
        """The rows of the named query, as one transaction of its own."""
        limit = seconds or self._statement_seconds
        async with self._connections.connection(limit) as pooled:
            asked_at, self._answered_at = monotonic(), -inf
            if pooled.transaction_settings is None:
                rows = await fetch(pooled.connection, self.queries[query], parameters, limit)
            else:
                work = _in_transaction(pooled, self.queries[query], parameters)
                rows = await bounded(pooled.connection, work, limit)
            self._answered_at = monotonic()
            self._latency_seconds = self._answered_at - asked_at
            return rows

    async def fetch_one(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> Row | None:
        rows = await self.fetch(query, parameters, seconds=seconds)
        return rows[0] if rows else None

    @asynccontextmanager
    async def transaction(self, *, seconds: float | None = None) -> AsyncIterator["Transaction"]:
        """Several statements that commit together, all within one deadline."""
        deadline = monotonic() + (seconds or self._statement_seconds)
        async with self._connections.connection(deadline - monotonic()) as pooled:
            transaction = Transaction(pooled.connection, self.queries, deadline)
            await transaction.run(_BEGIN)
            try:
                if pooled.transaction_settings:
                    await transaction.run(pooled.transaction_settings)
                yield transaction
            except BaseException:
                await _roll_back(pooled.connection)
                raise
            await transaction.run("COMMIT")


class Transaction:
    """An open transaction: every statement must end before the common deadline."""

    def __init__(self, connection: Connection, queries: Queries, deadline: float) -> None:
        self._connection = connection
        self._queries = queries
        self._deadline = deadline

    async def fetch(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        return await self.run(self._queries[query], parameters)

    async def run(self, text: Any, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        left = self._deadline - monotonic()
        if left <= 0:
            raise StoreUnavailable("the transaction's time is up")
        return await fetch(self._connection, text, parameters, left)


async def _in_transaction(
    pooled: Pooled, query: Any, parameters: Mapping[str, Any] | None
) -> list[Row]:
    """Not psycopg's `transaction()`: its BEGIN takes two errors in a row, a server's and then its
    pooler's, for an answer of two results, and tells neither of them."""
    connection = pooled.connection
    await connection.execute(_BEGIN)
    try:
        await connection.execute(pooled.transaction_settings or "")
        cursor = await connection.execute(query, parameters)
        rows = await rows_of(cursor)
    except Exception:
        if not connection.closed:
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")
    return rows


async def _roll_back(connection: Connection) -> None:
    if connection.closed:
        return
    try:
        await fetch(connection, "ROLLBACK", None, 1.0)
    except SidecarError:
        await discard(connection)
