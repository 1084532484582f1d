"""Serves AppCallback: the sidecar calls the app, instead of the app attaching to it."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from baton._callbacks import Callbacks
from baton.v1.callback_pb2_grpc import add_AppCallbackServicer_to_server

_STOP_SECONDS = 2.0
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # two apps on one port would take each other's calls
    ("grpc.http2.max_ping_strikes", 0),  # the sidecar pings often, to notice a frozen app
    ("grpc.keepalive_permit_without_calls", 1),
)


@asynccontextmanager
async def served(callbacks: Callbacks, address: str) -> AsyncIterator[str]:
    """A server for the block; yields its address, with the port that was chosen for 0."""
    status = health.aio.HealthServicer()  # type: ignore[attr-defined]
    server = grpc.aio.server(options=_OPTIONS)
    add_AppCallbackServicer_to_server(callbacks, server)
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    try:
        _refuse_taken(address)
        port = server.add_insecure_port(address)
        _share_socket(address)
        await server.start()
        await status.set("baton.v1.AppCallback", health_pb2.HealthCheckResponse.SERVING)
        yield address if address.startswith("unix:") else _with_port(address, port)
    finally:
        await status.enter_graceful_shutdown()
        await callbacks.end(_STOP_SECONDS)
        await server.stop(_STOP_SECONDS)


def _refuse_taken(address: str) -> None:
    """Raises if an app answers at this socket file, which gRPC would take from it."""
    if address.startswith("unix:"):
        with socket.socket(socket.AF_UNIX) as probe, suppress(FileNotFoundError, ConnectionError):
            probe.settimeout(1.0)
            probe.connect(urlsplit(address).path)
            raise RuntimeError(f"{address} is in use")


def _share_socket(address: str) -> None:
    """Lets the group in: in a pod the sidecar runs as another user of the volume's group."""
    if address.startswith("unix:"):
        os.chmod(urlsplit(address).path, 0o660)


def _with_port(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"
