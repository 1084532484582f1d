"""A small pool of Postgres connections for everything but the lock and LISTEN.

Guarantees:
- at most `size` connections, opened on demand; one is kept, and WARM while there is work that
  comes in bursts (`warm`); a broken one is thrown away, never repaired;
- each statement and transaction ends within its client-side deadline, waiting for a connection
  included;
- a commit that did not wait for its synchronous standby to the end is `AnswerLost`, no success;
- a standby is refused, as a service may lead to one while the primary changes: what is read was
  not overtaken before it was asked for;
- it works behind a transaction pooler: nothing depends on session state. The server-side limits
  (`statement_timeout`, `idle_in_transaction_session_timeout`) and what else is pinned are session
  settings on a direct connection, and those of each transaction behind a pooler, where a session
  setting would leak to somebody else's queries.

It is not psycopg_pool: that one backs off for up to minutes while Postgres is away and keeps the
first URL for ever; here a failed connect fails the call at once, and the caller's own back-off
decides.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

from psycopg import IsolationLevel
from psycopg.errors import Diagnostic

from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.session import (
    Connection,
    behind_pooler,
    bounded,
    connect,
    discard,
    fetch,
    perhaps_only_here,
    pinning,
)
from sidecar.model.errors import AnswerLost, SidecarError, StoreUnavailable

Row = dict[str, Any]
IDLE_SECONDS_MAX = 5.0
_SERVER = b"SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS in_recovery"
WARM = 3  # ticks, claims and completions of a leader, side by side


@dataclass(slots=True)
class _Pooled:
    connection: Connection
    transaction_settings: bytes | None  # what a pooled connection needs in every transaction
    idle_since: float = 0.0
    unreplicated: bool = False

    def noticed(self, notice: Diagnostic) -> None:
        self.unreplicated = self.unreplicated or perhaps_only_here(notice)


class Database:
    """Runs queries of one schema. `url` is called for each new connection."""

    def __init__(
        self, url: Callable[[], str], *, schema: str, size: int, statement_seconds: float
    ) -> None:
        self.queries = Queries(schema)
        self.schema = schema
        self._url = url
        self._size = size
        self._statement_seconds = statement_seconds
        self._slots = asyncio.Semaphore(size)
        self._idle: list[_Pooled] = []  # the one that waited longest comes first
        self._kept = 1
        self._warm_for = 0
        self._opening = asyncio.Lock()
        self._open = 0
        self._closed = False
        self._answered_at = -inf
        self._latency_seconds = 0.0

    async def probe(self, *, fresh_seconds: float) -> float:
        """How long Postgres took for its last answer; asked anew if that is too long ago."""
        if monotonic() - self._answered_at > fresh_seconds:
            await self.fetch("health/select_one")
        return self._latency_seconds

    @property
    def open_connections(self) -> int:
        return self._open

    async def fetch(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> list[Row]:
        """The rows of the named query, as one transaction of its own."""
        limit = seconds or self._statement_seconds
        async with self._connection(limit) as pooled:
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
        async with self._connection(deadline - monotonic()) as pooled:
            transaction = Transaction(pooled.connection, self.queries, deadline)
            await transaction.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            try:
                if pooled.transaction_settings:
                    await transaction.run(pooled.transaction_settings)
                yield transaction
            except BaseException:
                await _roll_back(pooled.connection)
                raise
            await transaction.run("COMMIT")

    @asynccontextmanager
    async def warm(self) -> AsyncIterator[None]:
        """Keep WARM connections, opened beside what is done inside.

        A new one costs a burst tens of milliseconds: a process at the server, which has to learn
        every table and every statement.
        """
        self._warm_for += 1
        self._kept = min(WARM, self._size)
        opening = asyncio.create_task(self._open_kept(), name="postgres.warm")
        try:
            yield
        finally:
            self._warm_for -= 1
            if not self._warm_for:
                self._kept = 1
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for pooled in idle:
            await self._throw_away(pooled)

    @asynccontextmanager
    async def _connection(self, seconds: float) -> AsyncIterator[_Pooled]:
        pooled = await self._take(seconds)
        try:
            yield pooled
            if pooled.unreplicated:
                raise AnswerLost("the wait for the standby was cancelled; the write may get lost")
        finally:
            await self._give_back(pooled)

    async def _take(self, seconds: float, *, fresh: bool = False) -> _Pooled:
        try:
            # A free one is had without waiting: that needs no timer.
            async with asyncio.timeout(seconds if self._slots.locked() else None):
                await self._slots.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"all {self._size} connections busy for {seconds:g} s") from None
        try:
            # Others may have opened what was missing while this waited for its slot.
            if not self._idle or (fresh and self._open < self._kept):
                return await self._connect(seconds)
            # By turns among those that are kept; the others are left to grow old.
            return self._idle.pop(0 if len(self._idle) <= self._kept else -1)
        except BaseException:
            self._slots.release()
            raise

    async def _give_back(self, pooled: _Pooled) -> None:
        try:
            status = pooled.connection.info.transaction_status
            usable = status.name == "IDLE" and not pooled.unreplicated
            if self._closed or pooled.connection.closed or not usable:
                await self._throw_away(pooled)
            else:
                pooled.idle_since = monotonic()
                self._idle.append(pooled)
                await self._trim()
        finally:
            self._slots.release()

    async def _trim(self) -> None:
        """Close what a burst left open."""
        horizon = monotonic() - IDLE_SECONDS_MAX
        while len(self._idle) > self._kept and self._idle[0].idle_since < horizon:
            await self._throw_away(self._idle.pop(0))

    async def _open_kept(self) -> None:
        """Only a convenience: if Postgres does not want to, those who need one will say so."""
        with suppress(SidecarError):
            async with self._opening:  # one term after the other, or there would be too many
                while self._open < self._kept:
                    await self._give_back(await self._take(self._statement_seconds, fresh=True))

    async def _connect(self, seconds: float) -> _Pooled:
        self._open += 1  # from now on: who else opens one must know
        connection, settings = None, None
        try:
            connection = await connect(self._url, purpose="pool", seconds=min(seconds, 3.0))
            (server,) = await fetch(connection, _SERVER, None, seconds)
            _refuse_standby(server)
            if behind_pooler(connection, server["pid"]):
                # A pooler may move prepared statements between servers.
                connection.prepare_threshold = None
                await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
                settings = self._settings(local=True)
            else:
                await fetch(connection, self._settings(local=False), None, seconds)
        except BaseException:
            self._open -= 1
            if connection:
                await discard(connection)
            raise
        pooled = _Pooled(connection, settings)
        connection.add_notice_handler(pooled.noticed)
        return pooled

    def _settings(self, *, local: bool) -> bytes:
        limit = f"{round(self._statement_seconds * 1000)}ms"
        limits = {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
        return pinning(limits, local=local)

    async def _throw_away(self, pooled: _Pooled) -> None:
        self._open -= 1
        await discard(pooled.connection)


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


def _refuse_standby(server: Row) -> None:
    if server["in_recovery"]:
        raise StoreUnavailable("postgres.url leads to a standby, which may lag behind")


async def _in_transaction(
    pooled: _Pooled, query: Any, parameters: Mapping[str, Any] | None
) -> list[Row]:
    connection = pooled.connection
    async with connection.transaction():
        await connection.execute(pooled.transaction_settings or "")
        cursor = await connection.execute(query, parameters)
        return await cursor.fetchall() if cursor.description else []


async def _roll_back(connection: Connection) -> None:
    if connection.closed:
        return
    try:
        await fetch(connection, "ROLLBACK", None, 1.0)
    except SidecarError:
        await discard(connection)
