"""Streams end with a status when memory is short, and new ones are refused until it is not."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.adapters.grpc_server import private_socket
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource

REQUEST = health_pb2.HealthCheckRequest()


async def test_short_memory_ends_a_stream_and_refuses_the_next(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/a.sock"
    server = ApiServer(address, Token(SecretSource()))
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            stream = stub.Watch(REQUEST, timeout=30)
            await stream.read()
            assert server.admission.record_memory(100, 100) == 1
            for call in (stream, stub.Watch(REQUEST, timeout=30)):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call.read()
                assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (await stub.Check(REQUEST, timeout=30)).status  # health is still answered
            server.admission.record_memory(50, 100)
            assert (await stub.Watch(REQUEST, timeout=30).read()).status
    finally:
        await server.stop(0)


async def test_the_api_needs_no_writable_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container with a read-only root file system and nothing mounted but the socket's."""
    monkeypatch.setattr(private_socket, "_DIRECTORIES", (f"{tmp_path}/missing",))
    address = f"unix://{tmp_path}/a.sock"
    server = ApiServer(address, Token(SecretSource()))
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            assert (await stub.Check(REQUEST, timeout=30)).status
    finally:
        await server.stop(0)
