"""One Postgres connection, with what every use of it needs.

Guarantees:
- no statement outlives its client-side deadline: the socket is shut down hard, because cancelling
  a psycopg call on a half-open connection returns many seconds late;
- every failure but a broken constraint leaves as one of our errors; a connection lost after a
  commit was sent is `AnswerLost`;
- a connection on which the server refuses to write is ended: the next may lead to the primary;
- a commit whose wait for the standby was cancelled can be told from one that is safe
  (`perhaps_only_here`);
- the URL is asked for at each connect, so that a changed secret is used at the next one;
- session settings are never made through a pooler, where they would be somebody else's;
- the defaults of a server, a database or a role change no statement's meaning (`PINNED`);
- an instant beyond what Python knows (infinity, before Christ) is read as the nearest that it does:
  one such row must not keep all others from being read.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from traceback import clear_frames
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row

from sidecar.model.errors import (
    AnswerLost,
    NotStorable,
    StoreRefused,
    StoreUnavailable,
    WrongServer,
)

T = TypeVar("T")
Connection = psycopg.AsyncConnection[DictRow]

CONNECT_SECONDS = 3.0
# A dead peer must be noticed by the kernel too, not only by our own deadlines.
KEEPALIVE: dict[str, Any] = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 3}
BACKEND_PID: LiteralString = "SELECT pg_backend_pid() AS pid"
# Defaults of a server, a database or a role that our statements could not live with.
PINNED: Mapping[str, str] = {
    "array_nulls": "on",
    "datestyle": "ISO",
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",
    "lock_timeout": "0",
    "statement_timeout": "0",
}
_UNREPLICATED = ("01000", "57P01")  # a warning without a code of its own; by an administrator
# That a VACUUM is overdue has no code of its own either, and is said with every write for as long
# as forty million more transactions are possible.
_VACUUM_OVERDUE = ("GetNewTransactionId", "GetNewMultiXactId")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


async def connect(
    url: Callable[[], str],
    *,
    purpose: str,
    seconds: float = CONNECT_SECONDS,
    settings: Mapping[str, str] | None = None,
    tcp_user_timeout_seconds: float = 4.0,
) -> Connection:
    """An autocommit connection; one with session `settings` must not lead through a pooler."""
    text, connection, problem = _text(url), None, ""
    try:
        async with asyncio.timeout(seconds):
            connection = await psycopg.AsyncConnection.connect(
                text,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=max(2, round(seconds)),
                tcp_user_timeout=round(tcp_user_timeout_seconds * 1000),
                application_name=f"baton {purpose}",
                **KEEPALIVE,
            )
    except (asyncio.CancelledError, TimeoutError, psycopg.Error, OSError, ValueError) as error:
        # An error keeps the frames it came through, which keep the half-open connection: until
        # nobody remembers the error, and a collector of garbage comes by.
        clear_frames(error.__traceback__)
        if isinstance(error, asyncio.CancelledError):
            raise
        problem = _told(error)
    if connection is None:
        raise StoreUnavailable(problem)
    connection.adapters.register_loader("timestamptz", _NearestInstant)
    if settings:
        try:
            await _refuse_pooler(connection, seconds)
            await fetch(connection, pinning(settings, local=False), None, seconds)
        except BaseException:
            await discard(connection)
            raise
    return connection


def _text(url: Callable[[], str]) -> str:
    try:
        return url()
    except OSError as error:  # it says what is wrong with the file, and nothing of what is in it
        raise StoreUnavailable(f"the file of the Postgres URL {_one_line(error)}") from None


async def _refuse_pooler(connection: Connection, seconds: float) -> None:
    rows = await fetch(connection, BACKEND_PID, None, seconds)
    if behind_pooler(connection, rows[0]["pid"]):
        raise WrongServer(
            "postgres.direct_url leads through a connection pooler, where a session lock can"
            " move to another client; point it at the server itself"
        )


def pinning(settings: Mapping[str, str], *, local: bool) -> bytes:
    """A statement that makes `settings` beside those that are pinned.

    A commit is never acknowledged before it is on disk, whatever the default; more than that
    (`remote_apply`) stays. `transaction_timeout` is known from Postgres 17 on.
    """
    scope = "true" if local else "false"
    made = [f"set_config('{k}', '{v}', {scope})" for k, v in {**PINNED, **settings}.items()]
    commit = "replace(current_setting('synchronous_commit'), 'off', 'on')"
    made.append(f"set_config('synchronous_commit', {commit}, {scope})")
    made.append(
        "CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL"
        f" THEN set_config('transaction_timeout', '0', {scope}) END"
    )
    return f"SELECT {', '.join(made)}".encode()


class _NearestInstant(Loader):
    """In UTC, whatever the server's zone: of two datetimes of one zone Python compares what the
    clocks there showed, and an hour that is repeated in autumn would be there once."""

    _exact = psycopg.adapters.get_loader(psycopg.adapters.types["timestamptz"].oid, Format.TEXT)

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        assert self._exact is not None  # noqa: S101 - psycopg has one for every type it names
        self._load = self._exact(oid, context).load

    def load(self, data: Buffer) -> Any:
        try:
            instant: datetime = self._load(data)
            return instant if instant.tzinfo is UTC else instant.astimezone(UTC)
        except (psycopg.DataError, OverflowError):
            text = bytes(data)
            return _FIRST if text.startswith(b"-") or text.endswith(b"BC") else _LAST


def hang_up(connection: Connection) -> None:
    """End the connection now, without a farewell: whoever waits on it gets an error at once."""
    with suppress(psycopg.Error, OSError):
        # A duplicate, so that closing our handle leaves the descriptor to libpq.
        handle = socket.socket(fileno=os.dup(connection.pgconn.socket))
        with handle:
            handle.shutdown(socket.SHUT_RDWR)


async def discard(connection: Connection) -> None:
    """Hang up and free the connection's resources."""
    hang_up(connection)
    with suppress(psycopg.Error, OSError):
        await connection.close()


async def bounded(connection: Connection, work: Awaitable[T], seconds: float) -> T:
    """The result of `work` on `connection`; after `seconds` the line is cut: AnswerLost."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_end_quietly)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _cut(connection, task)
        raise
    if not task.done():
        await _cut(connection, task)
        raise AnswerLost(f"no answer from Postgres within {seconds:g} s")
    try:
        return task.result()
    except psycopg.errors.ReadOnlySqlTransaction as error:
        connection.pgconn.finish()
        raise StoreUnavailable(f"Postgres is read-only: {_one_line(error)}") from error
    except psycopg.Error as error:
        raise _translated(connection, error) from error


async def _cut(connection: Connection, task: asyncio.Future[T]) -> None:
    """End the line, and with it what waits for an answer; also if we are cancelled meanwhile."""
    hang_up(connection)
    try:
        await asyncio.wait({task}, timeout=1)
    finally:
        if task.done():
            # The statement may just have ended: then only we know that the line is cut.
            connection.pgconn.finish()
        task.cancel()


def _end_quietly(task: asyncio.Future[T]) -> None:
    """Whoever gave it up does not hear how it ended."""
    if not task.cancelled():
        task.exception()


def _translated(connection: Connection, error: psycopg.Error) -> Exception:
    """What a failed statement means to us; constraints stay what they are."""
    if connection.closed or connection.broken:
        return AnswerLost(_one_line(error))
    match error:
        case psycopg.IntegrityError():
            return error
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.InternalError():
            return StoreUnavailable(_one_line(error))
        case psycopg.DataError():
            return NotStorable(_one_line(error))
        case _:
            # A missing table or privilege, a damaged row: not healed by a retry.
            return StoreRefused(_one_line(error))


async def fetch(
    connection: Connection, query: Any, parameters: Mapping[str, Any] | None, seconds: float
) -> list[dict[str, Any]]:
    """The rows of one statement; an empty list if it returns none."""

    async def run() -> list[dict[str, Any]]:
        cursor = await connection.execute(query, parameters)
        return await cursor.fetchall() if cursor.description else []

    return await bounded(connection, run(), seconds)


def behind_pooler(connection: Connection, backend_pid: int) -> bool:
    """A pooler tells the client a process id of its own making."""
    return connection.pgconn.backend_pid != backend_pid


def perhaps_only_here(notice: psycopg.errors.Diagnostic) -> bool:
    """A wait for synchronous replication was cancelled: committed here, perhaps nowhere else."""
    return (
        notice.severity_nonlocalized == "WARNING"
        and notice.sqlstate in _UNREPLICATED
        and notice.source_function not in _VACUUM_OVERDUE
    )


def _told(error: BaseException) -> str:
    """Why there is no connection. What libpq does not understand of a URL it quotes: a password."""
    if isinstance(error, psycopg.ProgrammingError):
        return "the Postgres URL cannot be understood"
    return _one_line(error) or "no connection in time"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
