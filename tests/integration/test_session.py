"""One connection: what could not be opened is closed, whoever remembers the error; and whatever
Postgres refuses leaves as an error of ours."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from sidecar.adapters.postgres.session import bounded, connect, discard, fetch
from sidecar.config import SecretSource
from sidecar.model.errors import SidecarError, StoreRefused, StoreUnavailable
from tests.lab import footprint


@asynccontextmanager
async def _frozen_server() -> AsyncIterator[int]:
    """The port of a server that accepts and says nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def _url(port: int) -> str:
    return f"postgresql://u@127.0.0.1:{port}/d"


def _raising(code: str) -> str:
    return f"DO $$ BEGIN RAISE SQLSTATE '{code}'; END $$"


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """Nothing may wait for the collector of garbage."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("seconds", "problem"),
    [
        pytest.param(0.2, "no connection in time", id="ours"),
        pytest.param(
            2.4, "connection timeout expired", id="the driver's, which is in full seconds"
        ),
    ],
)
async def test_a_connection_that_was_not_made_in_time_is_closed(
    seconds: float, problem: str
) -> None:
    """Attempts must not pile up beside the pool, whoever remembers their errors."""
    async with _frozen_server() as port:
        for _ in range(3):  # a machine that stands still runs into both limits at once
            with pytest.raises(StoreUnavailable) as caught:
                await connect(lambda: _url(port), purpose="test", seconds=seconds)
            await asyncio.sleep(0.1)
            assert footprint.connections(os.getpid(), {port}) == 0
            if problem in str(caught.value):
                break
    assert problem in str(caught.value)


async def test_a_connection_that_was_given_up_is_closed() -> None:
    """Whoever waited for it was cancelled; the error may live on in the caller's frames."""
    async with _frozen_server() as port:
        waiting = asyncio.create_task(connect(lambda: _url(port), purpose="test"))
        async with asyncio.timeout(60):
            while footprint.connections(os.getpid(), {port}) != 1:  # noqa: ASYNC110 - the kernel's
                await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await waiting
        await asyncio.sleep(0.1)
        assert footprint.connections(os.getpid(), {port}) == 0
    assert caught.value


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("SET TRANSACTION READ ONLY; CREATE TABLE t ()", StoreUnavailable, id="25006"),
        pytest.param(_raising("XX000"), StoreUnavailable, id="XX000"),
        pytest.param(_raising("0A000"), StoreRefused, id="0A000"),
        pytest.param(_raising("ZZ999"), StoreRefused, id="a code of somebody's own"),
    ],
)
async def test_whatever_the_server_says_leaves_as_an_error_of_ours(
    database_url: str, statement: str, error: type[SidecarError]
) -> None:
    """G11: what leaves raw ends the process."""
    connection = await connect(lambda: database_url, purpose="test")
    try:
        with pytest.raises(error):
            await fetch(connection, statement, None, 10.0)
    finally:
        await discard(connection)


async def test_a_broken_constraint_stays_what_it_is(database_url: str) -> None:
    connection = await connect(lambda: database_url, purpose="test")
    try:
        with pytest.raises(psycopg.IntegrityError):
            await fetch(connection, _raising("23505"), None, 10.0)
    finally:
        await discard(connection)


async def test_a_connection_to_a_server_that_takes_no_writes_is_ended(database_url: str) -> None:
    """The next one may lead to the primary; the error says what is the matter."""
    connection = await connect(lambda: database_url, purpose="test")
    await fetch(connection, "SET default_transaction_read_only = on", None, 10.0)
    with pytest.raises(StoreUnavailable, match="Postgres is read-only: cannot execute CREATE"):
        await fetch(connection, "CREATE TABLE t ()", None, 10.0)
    assert connection.closed
    await discard(connection)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "the file of the Postgres URL cannot be read: No such", id="missing"),
        pytest.param(b"", "the file of the Postgres URL is empty", id="empty"),
        pytest.param(b"hunter2", "^the Postgres URL is invalid$", id="a password"),
        pytest.param(b"postgresql://u@" + b"a" * 70 + b"/d", "label too long", id="no host's name"),
    ],
)
async def test_a_url_that_cannot_be_read_or_used_is_told(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    """G11: a secret that is being replaced ends nothing."""
    if content is not None:
        (tmp_path / "url").write_bytes(content)
    with pytest.raises(StoreUnavailable, match=problem):
        await connect(SecretSource.from_file(tmp_path / "url").read, purpose="test")


@pytest.mark.parametrize("seconds", [0.2, 10.0], ids=["its time is up", "cancelled before"])
async def test_a_statement_given_up_twice_ends_in_silence(
    database_url: str, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    """Cancelled while a statement that was given up is still ending: no error that nobody took."""
    connection = await connect(lambda: database_url, purpose="test")
    silent = asyncio.Event()

    async def wait_for_ever(*_: object) -> None:
        await silent.wait()
        raise psycopg.OperationalError("the line is cut")

    call = asyncio.create_task(bounded(connection, wait_for_ever(), seconds))
    await asyncio.sleep(0.3)  # past the first of the two limits
    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    silent.set()
    await asyncio.wait({call})
    del call
    await discard(connection)
    gc.collect()
    await asyncio.sleep(0)
    assert not caplog.records
