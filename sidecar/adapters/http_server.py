"""Probes and metrics over HTTP: /livez /startupz /readyz /health /metrics.

Guarantees:
- handlers only read memory, so a probe answers in milliseconds even if a dependency hangs;
- metrics are rendered in a thread, one scrape at a time;
- requests are bounded: at most 32 KiB, complete within 10 s, 256 connections; no handler reads a
  body. One more connection closes the one that was silent longest, so that clients with many open
  connections cannot block a probe;
- the socket is bound before `serve` reports that it listens; no signal handler, no log set-up, no
  `server` header; cancelling `serve` closes the port.

uvicorn's protocol runs on our own server: its `Server` would catch signals, exit the process when
the port is in use, and wake up ten times a second.
"""

import asyncio
import errno
import json
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sidecar.model.errors import SidecarError
from sidecar.model.health import Readiness

REQUEST_BYTES_MAX = 32 * 1024
REQUEST_SECONDS_MAX = 10.0
CONNECTIONS_MAX = 256
KEEP_ALIVE_SECONDS = 75  # longer than a usual scrape interval: Prometheus keeps its connection
REASONS_MAX = 50
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Sources(Protocol):
    """What the probes read. Each call answers at once, from memory."""

    def live(self) -> Readiness: ...
    def started(self) -> Readiness: ...
    def ready(self) -> Readiness: ...
    def report(self) -> Mapping[str, Any]: ...


async def serve(
    address: str,
    sources: Sources,
    registry: CollectorRegistry,
    *,
    listening: Callable[[int], None] = lambda _: None,
) -> None:
    """Serve until cancelled; `listening` is called with the port once connections are accepted."""
    handle = _bound(address)
    config = _config(_application(sources, registry))
    state, silent = ServerState(), dict[_BoundedProtocol, None]()
    server = await asyncio.get_running_loop().create_server(
        lambda: _BoundedProtocol(config, state, silent), sock=handle, backlog=128
    )
    listening(handle.getsockname()[1])
    try:
        await server.serve_forever()
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()


def _application(sources: Sources, registry: CollectorRegistry) -> Starlette:
    scrapes = _Scrapes(registry)

    def probe(read: Callable[[], Readiness]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return _verdict(request, read())

        return answer

    async def health(_: Request) -> Response:
        return _json(dict(sources.report()), 200)

    async def metrics(request: Request) -> Response:
        body, content_type = await scrapes.render(request.headers.get("accept", ""))
        return Response(body, headers=_HEADERS | {"content-type": content_type})

    return Starlette(
        routes=[
            Route("/livez", probe(sources.live)),
            Route("/startupz", probe(sources.started)),
            Route("/readyz", probe(sources.ready)),
            Route("/health", health),
            Route("/metrics", metrics),
        ]
    )


def _verdict(request: Request, verdict: Readiness) -> Response:
    """`ok`, or one reason per line; as JSON if the client accepts JSON."""
    status = 200 if verdict.good else 503
    reasons = list(verdict.reasons[:REASONS_MAX])
    if more := len(verdict.reasons) - len(reasons) + verdict.more:
        reasons.append(f"and {more} more")
    if "application/json" in request.headers.get("accept", ""):
        return _json({"ok": verdict.good, "reasons": reasons}, status)
    text = "\n".join(reasons or ["ok"]) + "\n"
    return Response(text, status, headers=_HEADERS | {"content-type": "text/plain; charset=utf-8"})


def _json(content: Mapping[str, Any], status: int) -> Response:
    body = json.dumps(content, default=str, ensure_ascii=False) + "\n"
    return Response(body, status, headers=_HEADERS | {"content-type": "application/json"})


class _Scrapes:
    """Renders the registry in a thread; concurrent requests share the result."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._running: dict[str, asyncio.Task[bytes]] = {}

    async def render(self, accept: str) -> tuple[bytes, str]:
        encode, content_type = _encoder(accept)
        task = self._running.get(content_type)
        if task is None:
            task = asyncio.create_task(
                asyncio.to_thread(encode, self._registry), name="http.scrape"
            )
            self._running[content_type] = task
            task.add_done_callback(lambda _: self._running.pop(content_type, None))
        # Shielded: a scraper that disconnects must not cancel the rendering for the others.
        return await asyncio.shield(task), content_type


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # it fails for versions that are not numbers
        return choose_encoder("")


class _BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with the limits on size, time and number that it lacks.

    `silent` holds all connections, first the one whose last whole request is the longest ago.
    """

    _bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(
        self, config: uvicorn.Config, state: ServerState, silent: "dict[_BoundedProtocol, None]"
    ) -> None:
        super().__init__(config, state, {})
        self._silent = silent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silent[self] = None
        if len(self._silent) > CONNECTIONS_MAX:
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.transport.abort()
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > REQUEST_BYTES_MAX:
            self.transport.abort()
            return
        self._start_deadline()
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if name.lower() == b"content-length" and int(value) > REQUEST_BYTES_MAX:
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
            self._deadline = self.loop.call_later(REQUEST_SECONDS_MAX, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _config(application: Starlette) -> uvicorn.Config:
    config = uvicorn.Config(
        application,
        http=_BoundedProtocol,
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


def _bound(address: str) -> socket.socket:
    """A socket on `host:port` or `[v6]:port`; the error says how to fix the address."""
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
        raise SidecarError(f"http.address: {address} {problem}") from None
    handle.setblocking(False)
    return handle
