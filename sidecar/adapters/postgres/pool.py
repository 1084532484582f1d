"""A small pool of Postgres connections for everything but the lock and LISTEN.

Guarantees:
- at most `size` connections, opened on demand; one is kept, and WARM while there is work that
  comes in bursts (`warm`); a broken one is thrown away, never repaired;
- waiting for a connection ends at the caller's deadline;
- those who use a `Share` never have more than its part of the connections, and only so many of
  them wait: the others find the rest free;
- a commit that did not wait for its synchronous standby to the end is `AnswerLost`, no success;
- a standby is refused, as a service may lead to one while the primary changes: what is read was
  not overtaken before it was asked for.

It is not psycopg_pool: that one backs off for up to minutes while Postgres is away and keeps the
first URL for ever; here a failed connect fails the call at once, and the caller's own back-off
decides.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, Protocol

from psycopg.errors import Diagnostic

from sidecar.adapters.postgres.session import (
    Connection,
    behind_pooler,
    connect,
    discard,
    discard_now,
    fetch,
    pinned_settings,
    sync_wait_cancelled,
)
from sidecar.model.errors import (
    AnswerLost,
    Overloaded,
    ReadOnlyServer,
    SidecarError,
    StoreUnavailable,
)

IDLE_SECONDS_MAX = 5.0
WAITING_MAX = 200  # callers of a share without a connection
_SERVER = b"SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS in_recovery"
WARM = 3  # ticks, claims and completions of a leader, side by side


@dataclass(slots=True)
class Pooled:
    connection: Connection
    transaction_settings: bytes | None  # what a pooled connection needs in every transaction
    idle_since: float = 0.0
    unreplicated: bool = False

    def noticed(self, notice: Diagnostic) -> None:
        self.unreplicated = self.unreplicated or sync_wait_cancelled(notice)


class Connections(Protocol):
    """Where a connection comes from."""

    def connection(self, seconds: float) -> AbstractAsyncContextManager[Pooled]:
        """One to use inside, had within so many seconds or StoreUnavailable."""


class Pool:
    """`url` is called for each new connection."""

    def __init__(
        self,
        url: Callable[[], str],
        *,
        size: int,
        statement_seconds: float,
        unused_seconds: float | None = None,
    ) -> None:
        """`unused_seconds`: all connections are closed when none was used for so long."""
        self.size = size
        self._unused_seconds = unused_seconds
        self._unused: asyncio.TimerHandle | None = None
        self._url = url
        self._statement_seconds = statement_seconds
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Pooled] = []  # the one that waited longest comes first
        self._kept = 1
        self._warm_for = 0
        self._opening = asyncio.Lock()
        self._open = 0
        self._closed = False
        self._unanswered_at = -inf

    def answering_seconds(self) -> float:
        """For how long no call has failed for want of Postgres."""
        return monotonic() - self._unanswered_at

    @property
    def open_connections(self) -> int:
        return self._open

    @asynccontextmanager
    async def warm(self) -> AsyncIterator[None]:
        """Keep WARM connections, opened beside what is done inside.

        A new one costs a burst tens of milliseconds: a process at the server, which has to learn
        every table and every statement.
        """
        self._warm_for += 1
        self._kept = min(WARM, self.size)
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
        if self._unused:
            self._unused.cancel()
        idle, self._idle = self._idle, []
        for pooled in idle:
            await self._throw_away(pooled)

    @asynccontextmanager
    async def connection(self, seconds: float) -> AsyncIterator[Pooled]:
        try:
            pooled = await self._take(seconds)
            try:
                yield pooled
                if pooled.unreplicated:
                    raise AnswerLost(
                        "the wait for the standby was cancelled; the write may get lost"
                    )
            finally:
                await self._give_back(pooled)
        except StoreUnavailable:
            self._unanswered_at = monotonic()
            raise

    async def _take(self, seconds: float, *, fresh: bool = False) -> Pooled:
        try:
            # A free one is had without waiting: that needs no timer.
            async with asyncio.timeout(seconds if self._slots.locked() else None):
                await self._slots.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"all {self.size} connections busy for {seconds:g} s") from None
        try:
            # Others may have opened what was missing while this waited for its slot.
            if not self._idle or (fresh and self._open < self._kept):
                return await self._connect(seconds)
            # By turns among those that are kept; the others are left to grow old.
            return self._idle.pop(0 if len(self._idle) <= self._kept else -1)
        except BaseException:
            self._slots.release()
            raise

    async def _give_back(self, pooled: Pooled) -> None:
        try:
            status = pooled.connection.info.transaction_status
            usable = status.name == "IDLE" and not pooled.unreplicated
            if self._closed or pooled.connection.closed or not usable:
                await self._throw_away(pooled)
            else:
                pooled.idle_since = monotonic()
                self._idle.append(pooled)
                await self._trim()
                self._close_later()
        finally:
            self._slots.release()

    async def _trim(self) -> None:
        """Close what a burst left open."""
        horizon = monotonic() - IDLE_SECONDS_MAX
        while len(self._idle) > self._kept and self._idle[0].idle_since < horizon:
            await self._throw_away(self._idle.pop(0))

    def _close_later(self) -> None:
        if self._unused_seconds is None:
            return
        if self._unused:
            self._unused.cancel()
        loop = asyncio.get_running_loop()
        self._unused = loop.call_later(self._unused_seconds, self._close_unused)

    def _close_unused(self) -> None:
        idle, self._idle = self._idle, []
        for pooled in idle:
            self._open -= 1
            discard_now(pooled.connection)

    async def _open_kept(self) -> None:
        """Only a convenience: if Postgres does not want to, those who need one will say so."""
        with suppress(SidecarError):
            async with self._opening:  # one term after the other, or there would be too many
                while self._open < self._kept:
                    await self._give_back(await self._take(self._statement_seconds, fresh=True))

    async def _connect(self, seconds: float) -> Pooled:
        self._open += 1  # from now on: who else opens one must know
        connection, settings = None, None
        try:
            connection = await connect(self._url, purpose="pool", seconds=min(seconds, 3.0))
            (server,) = await fetch(connection, _SERVER, None, seconds)
            _refuse_standby(server)
            if behind_pooler(connection, server["pid"]):
                # A pooler may move prepared statements between servers.
                connection.prepare_threshold = None
                settings = self._settings(local=True)
            else:
                await fetch(connection, self._settings(local=False), None, seconds)
        except BaseException:
            self._open -= 1
            if connection:
                await discard(connection)
            raise
        pooled = Pooled(connection, settings)
        connection.add_notice_handler(pooled.noticed)
        return pooled

    def _settings(self, *, local: bool) -> bytes:
        limit = f"{round(self._statement_seconds * 1000)}ms"
        limits = {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
        return pinned_settings(limits, local=local)

    async def _throw_away(self, pooled: Pooled) -> None:
        self._open -= 1
        await discard(pooled.connection)


class Share:
    """At most `most` connections of a pool at a time, for callers who must not take them all."""

    def __init__(self, pool: Pool, most: int, *, waiting_max: int = WAITING_MAX) -> None:
        self._pool = pool
        self._most = most
        self._slots = asyncio.Semaphore(most)
        self._waiting_max = waiting_max
        self._waiting = 0

    @asynccontextmanager
    async def connection(self, seconds: float) -> AsyncIterator[Pooled]:
        deadline = monotonic() + seconds
        await self._wait(seconds)
        try:
            async with self._pool.connection(max(0.0, deadline - monotonic())) as pooled:
                yield pooled
        finally:
            self._slots.release()

    async def _wait(self, seconds: float) -> None:
        if not self._slots.locked():  # nobody waits: no timer is needed
            await self._slots.acquire()
            return
        if self._waiting >= self._waiting_max:
            raise Overloaded(f"{self._waiting} calls wait for a connection to Postgres on this pod")
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            problem = f"all {self._most} connections for calls busy for {seconds:g} s"
            raise StoreUnavailable(problem) from None
        finally:
            self._waiting -= 1


def _refuse_standby(server: dict[str, Any]) -> None:
    if server["in_recovery"]:
        raise ReadOnlyServer(
            "postgres.url leads to a standby, which may lag behind: point it at the primary"
        )
