"""An HTTP server with limits, on our own listening socket.

Guarantees:
- a request is bounded in size and in time, and the number of connections is too. One more
  connection closes the one that was silent longest, so that clients with many open connections
  cannot block others;
- the socket is bound before `serve` reports that it listens; no signal handler, no log set-up, no
  `server` header; cancelling `serve` closes the port.

uvicorn's protocol runs on our own server: its `Server` would catch signals, exit the process when
the port is in use, and wake up ten times a second.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sidecar.model.errors import SidecarError

KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval: Prometheus keeps its connection
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """`request_bytes` counts headers and body. A connection that sends more is closed."""

    request_bytes: int
    request_seconds: float = 10.0
    connections: int = 256


async def serve(
    handle: socket.socket,
    application: Any,
    limits: HttpLimits,
    *,
    listening: Callable[[], None] = lambda: None,
) -> None:
    """Serve an ASGI application on a bound socket until cancelled."""
    config = _config(application)
    state, silent = ServerState(), dict[BoundedProtocol, None]()
    loop = asyncio.get_running_loop()

    def protocol() -> BoundedProtocol:
        return BoundedProtocol(config, state, silent, limits)

    if handle.family == socket.AF_UNIX:
        server = await loop.create_unix_server(protocol, sock=handle, backlog=_BACKLOG)
    else:
        server = await loop.create_server(protocol, sock=handle, backlog=_BACKLOG)
    listening()
    try:
        await server.serve_forever()
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with the limits on size, time and number that it lacks.

    `silent` holds all connections, first the one whose last whole request is the longest ago.
    """

    _bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        silent: "dict[BoundedProtocol, None]",
        limits: HttpLimits,
    ) -> None:
        super().__init__(config, state, {})
        self._silent = silent
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silent[self] = None
        if len(self._silent) > self._limits.connections:
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.transport.abort()
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > self._limits.request_bytes:
            self.transport.abort()
            return
        self._start_deadline()
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if name.lower() == b"content-length" and int(value) > self._limits.request_bytes:
            self.transport.abort()  # before the answer: the handlers do not wait for a body

    def on_message_complete(self) -> None:
        self._bytes = 0
        self._stop_deadline()
        if self._silent.pop(self, self) is None:
            self._silent[self] = None
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.pop(self, None)
        self._stop_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(
                self._limits.request_seconds, self.transport.abort
            )

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _config(application: Any) -> uvicorn.Config:
    config = uvicorn.Config(
        application,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    config.load()
    # A port scan must not write a line per request.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return config


def bound(address: str, key: str) -> socket.socket:
    """A socket on `host:port` or `[v6]:port`; the error names `key` and says how to fix it."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        found = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, target = found[0]
        handle = socket.socket(family, kind, protocol)
        try:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # `[::]` serves IPv4 too, as a dual-stack pod expects.
                handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            handle.bind(target)
        except OSError:
            handle.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = "is in use by another process; choose another port"
        else:
            problem = f"cannot be used: {error.strerror or error}"
        raise SidecarError(f"{key}: {address} {problem}") from None
    handle.setblocking(False)
    return handle
