"""One connection: what could not be opened is closed, whoever remembers the error."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from sidecar.adapters.postgres.session import connect
from sidecar.model.errors import StoreUnavailable
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
                await connect(_url(port), purpose="test", seconds=seconds)
            await asyncio.sleep(0.1)
            assert footprint.connections(os.getpid(), {port}) == 0
            if problem in str(caught.value):
                break
    assert problem in str(caught.value)


async def test_a_connection_that_was_given_up_is_closed() -> None:
    """Whoever waited for it was cancelled; the error may live on in the caller's frames."""
    async with _frozen_server() as port:
        waiting = asyncio.create_task(connect(_url(port), purpose="test"))
        async with asyncio.timeout(3):
            while footprint.connections(os.getpid(), {port}) != 1:  # noqa: ASYNC110 - the kernel's
                await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await waiting
        await asyncio.sleep(0.1)
        assert footprint.connections(os.getpid(), {port}) == 0
    assert caught.value
