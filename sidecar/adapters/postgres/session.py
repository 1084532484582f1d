"""One Postgres connection: connecting, deadlines, errors and session settings.

Guarantees:
- no statement outlives its client-side deadline: the socket is shut down, because cancelling a
  psycopg call on a half-open connection returns many seconds late;
- every failure except a violated constraint becomes one of our errors; a connection lost after a
  commit was sent is `AnswerLost`;
- a connection to a read-only server is closed: the next one may reach the primary;
- `sync_wait_cancelled` recognizes a commit whose wait for the standby was cancelled;
- a silent host of a list does not block the others (`hosts.py`);
- the URL is read again for each connect, so that a changed secret is used;
- a server that is too old, or a database that is not in UTF8, is refused with what to do;
- session settings are never made through a pooler, where they would affect other clients;
- defaults of a server, a database or a role do not change the meaning of a statement (`PINNED`);
- a timestamp outside Python's range (infinity, BC) is read as the nearest possible one: one such
  row must not fail the read of all others.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from traceback import clear_frames
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row

from sidecar.adapters.postgres.hosts import Host, addresses_of, first_success, hosts_of, label
from sidecar.model.errors import (
    AnswerLost,
    NotStorable,
    ReadOnlyServer,
    StoreRefused,
    StoreUnavailable,
    WrongServer,
)

T = TypeVar("T")
Connection = psycopg.AsyncConnection[DictRow]

CONNECT_SECONDS = 3.0
_ROWS_AT_ONCE = 200  # converted at once: about a millisecond
OLDEST_SERVER = 140000
# The kernel must notice a dead peer too, not only our own deadlines.
KEEPALIVE: dict[str, Any] = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 3}
BACKEND_PID: LiteralString = "SELECT pg_backend_pid() AS pid"
# Settings whose defaults on a server, a database or a role could break our statements.
PINNED: Mapping[str, str] = {
    "array_nulls": "on",
    "datestyle": "ISO",
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",
    "lock_timeout": "0",
    "statement_timeout": "0",
}
_UNREPLICATED = ("01000", "57P01")  # a warning without a code of its own; by an administrator
# The warning about an overdue VACUUM has no code of its own either, and comes with every write
# during the last forty million transactions.
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
    """An autocommit connection; with session `settings` it must not go through a pooler."""
    connection = await _first_host(
        _text(url),
        seconds,
        {
            "tcp_user_timeout": round(tcp_user_timeout_seconds * 1000),
            "application_name": f"baton {purpose}",
            "client_encoding": "utf8",
            **KEEPALIVE,
        },
    )
    connection.adapters.register_loader("timestamptz", _NearestInstant)
    try:
        _refuse_unfit(connection.info)
        if settings:
            await _refuse_pooler(connection, seconds)
            await fetch(connection, pinned_settings(settings, local=False), None, seconds)
    except BaseException:
        await discard(connection)
        raise
    return connection


async def _first_host(text: str, seconds: float, options: Mapping[str, Any]) -> Connection:
    """A connection to the first host and address that accepts one."""
    deadline = asyncio.get_running_loop().time() + seconds
    options = {**options, "connect_timeout": max(2, round(seconds))}

    async def host_connected(host: Host) -> Connection:
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await addresses_of(host)
        except OSError as error:  # in time or not at all
            raise StoreUnavailable(_problem_of(error, host)) from None
        each = [partial(_attempt, text, {**options, **address}, deadline) for address in addresses]
        return await first_success(each, discard=_close)

    try:
        hosts = hosts_of(text)
    except psycopg.Error as error:
        raise StoreUnavailable(_problem_of(error)) from None
    attempts = [partial(host_connected, host) for host in hosts]
    return await first_success(attempts, discard=_close)


async def _attempt(text: str, options: Mapping[str, Any], deadline: float) -> Connection:
    try:
        async with asyncio.timeout_at(deadline):
            return await psycopg.AsyncConnection.connect(
                text, autocommit=True, row_factory=dict_row, **options
            )
    except (asyncio.CancelledError, TimeoutError, psycopg.Error, OSError, ValueError) as error:
        # The error references its frames, and those the half-open connection, which would stay
        # open until the garbage collector runs.
        clear_frames(error.__traceback__)
        if isinstance(error, asyncio.CancelledError):
            raise
        problem = _problem_of(error, options)
    raise StoreUnavailable(problem)


def _close(connection: Connection) -> None:
    connection.pgconn.finish()


def _text(url: Callable[[], str]) -> str:
    try:
        return url()
    except OSError as error:  # it describes the file, not its content
        raise StoreUnavailable(f"the file of the Postgres URL {_one_line(error)}") from None


def _refuse_unfit(server: psycopg.ConnectionInfo) -> None:
    """Uses the parameters that the server reports when it accepts a connection."""
    problem = unfit(server.server_version, server.parameter_status("server_encoding") or "UTF8")
    if problem:
        raise WrongServer(problem)


def unfit(version: int, encoding: str) -> str:
    """Why Baton cannot use such a database, and what to do; empty if it can."""
    if version < OLDEST_SERVER:
        shown = f"{version // 10_000}.{version % 100}" if version >= 100_000 else str(version)
        return (
            f"the server is Postgres {shown}, Baton needs {OLDEST_SERVER // 10_000} or newer:"
            " upgrade the server, or use another one"
        )
    if encoding != "UTF8":
        return (
            f"the database has the encoding {encoding}, Baton needs UTF8: make another one with"
            " CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    return ""


async def _refuse_pooler(connection: Connection, seconds: float) -> None:
    rows = await fetch(connection, BACKEND_PID, None, seconds)
    if behind_pooler(connection, rows[0]["pid"]):
        raise WrongServer(
            "postgres.direct_url leads through a connection pooler, where a session lock can"
            " move to another client; point it at the server itself"
        )


def pinned_settings(settings: Mapping[str, str], *, local: bool) -> bytes:
    """A statement that sets `settings` and the pinned ones.

    `synchronous_commit = off` becomes `on`; stronger settings (`remote_apply`) stay.
    `transaction_timeout` exists since Postgres 17.
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
    """Reads timestamps in UTC: Python compares datetimes of one zone by their local time, so the
    repeated hour in autumn would be ambiguous."""

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
    """Shut down the socket now: tasks that wait on the connection get an error at once."""
    with suppress(psycopg.Error, OSError):
        # A duplicate, so that closing our handle leaves the descriptor to libpq.
        handle = socket.socket(fileno=os.dup(connection.pgconn.socket))
        with handle:
            handle.shutdown(socket.SHUT_RDWR)


def discard_now(connection: Connection) -> None:
    """Hang up and free the resources of a connection that nobody uses, without waiting."""
    hang_up(connection)
    connection.pgconn.finish()


async def discard(connection: Connection) -> None:
    """Hang up and free the connection's resources."""
    hang_up(connection)
    with suppress(psycopg.Error, OSError):
        await connection.close()


async def bounded(connection: Connection, work: Awaitable[T], seconds: float) -> T:
    """The result of `work` on `connection`; AnswerLost and a closed connection after `seconds`."""
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
        raise ReadOnlyServer(
            f"Postgres is read-only: {_one_line(error)}; the URL must lead to the primary, with"
            " default_transaction_read_only off for this database and role"
        ) from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise NotStorable("holds a lone surrogate, which is not valid Unicode") from error
    except psycopg.Error as error:
        raise _translated(connection, error) from error


async def _cut(connection: Connection, task: asyncio.Future[T]) -> None:
    """Shut down the socket and wait for the end of `work`, also if this task is cancelled."""
    hang_up(connection)
    try:
        await asyncio.wait({task}, timeout=1)
    finally:
        if task.done():
            # The statement may just have ended: then psycopg does not know that it is closed.
            connection.pgconn.finish()
        task.cancel()


def _end_quietly(task: asyncio.Future[T]) -> None:
    """Mark the error as retrieved: the caller no longer waits for it."""
    if not task.cancelled():
        task.exception()


def _translated(connection: Connection, error: psycopg.Error) -> Exception:
    """Our error for a failed statement; violated constraints stay psycopg errors."""
    if connection.closed or connection.broken:
        return AnswerLost(_one_line(error))
    match error:
        case psycopg.IntegrityError():
            return error
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.InternalError():
            return StoreUnavailable(_one_line(error))
        case psycopg.DataError():
            return NotStorable(_one_line(error))
        case psycopg.errors.InsufficientPrivilege():
            return StoreRefused(f"{_one_line(error)}: grant the role what docs/security.md lists")
        case _:
            # A missing table or privilege, a damaged row: a retry does not help.
            return StoreRefused(_one_line(error))


async def fetch(
    connection: Connection, query: Any, parameters: Mapping[str, Any] | None, seconds: float
) -> list[dict[str, Any]]:
    """The rows of one statement; an empty list if it returns none."""

    async def run() -> list[dict[str, Any]]:
        return await rows_of(await connection.execute(query, parameters))

    return await bounded(connection, run(), seconds)


async def rows_of(cursor: psycopg.AsyncCursor[DictRow]) -> list[dict[str, Any]]:
    """All rows of a result; other tasks run while a large one is converted."""
    if not cursor.description:
        return []
    rows = await cursor.fetchmany(_ROWS_AT_ONCE)
    while len(rows) < cursor.rowcount:
        await asyncio.sleep(0)
        rows += await cursor.fetchmany(_ROWS_AT_ONCE)
    return rows


def behind_pooler(connection: Connection, backend_pid: int) -> bool:
    """A pooler reports a process id of its own."""
    return connection.pgconn.backend_pid != backend_pid


def sync_wait_cancelled(notice: psycopg.errors.Diagnostic) -> bool:
    """A wait for synchronous replication was cancelled: the standby may lack the commit."""
    return (
        notice.severity_nonlocalized == "WARNING"
        and notice.sqlstate in _UNREPLICATED
        and notice.source_function not in _VACUUM_OVERDUE
    )


def _problem_of(error: BaseException, host: Mapping[str, Any] | None = None) -> str:
    """Why there is no connection. libpq quotes the parts of a URL that it cannot parse, which may
    be a password: such errors are replaced."""
    if isinstance(error, psycopg.ProgrammingError):
        return "the Postgres URL is invalid"
    problem = _one_line(error) or "no connection in time"
    silent = isinstance(error, TimeoutError | psycopg.errors.ConnectionTimeout)
    return f"{problem} ({label(host)})" if silent and host else problem


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
