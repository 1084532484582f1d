"""The server of the API by itself: gRPC's own services on it, and its socket file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path}/api.sock"


@pytest.fixture
async def new_server(address: str) -> AsyncIterator[Callable[[], ApiServer]]:
    async with AsyncExitStack() as stack:

        def new() -> ApiServer:
            server = ApiServer(address, Token(SecretSource()))
            stack.push_async_callback(server.stop, 0)
            return server

        yield new


async def _watched(address: str, stack: AsyncExitStack) -> Any:
    """A call that stays open for as long as the server lets it."""
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(address))
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == SERVING
    return watch


async def test_its_health_can_be_watched(address: str, new_server: Callable[[], ApiServer]) -> None:
    """As clients with health checking of their own do."""
    server = new_server()
    await server.start()
    async with AsyncExitStack() as stack:
        watch = await _watched(address, stack)
        await server.stop(0.2)
        assert (await watch.read()).status == NOT_SERVING


async def test_one_that_ends_leaves_the_socket_file_of_its_successor(
    address: str, new_server: Callable[[], ApiServer]
) -> None:
    """It listens no more as soon as it begins to stop, and waits for its calls afterwards."""
    old, new = new_server(), new_server()
    await old.start()
    async with AsyncExitStack() as stack:
        watch = await _watched(address, stack)
        ending = asyncio.create_task(old.stop(1.0))
        assert (await watch.read()).status == NOT_SERVING
        await asyncio.sleep(0.1)
        await new.start()
        await ending
        await old.stop(0)  # as at the end of the process
        await _watched(address, stack)
