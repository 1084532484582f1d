"""The app object: what the user registers, and how it is served beside its sidecar."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from baton._callbacks import Callbacks, Handler, Handlers
from baton._leading import BecomeHook, Hooks, Leading, LoseHook
from baton._sidecar import Sidecar, token_file
from baton.errors import BatonError
from baton.v1.callback_pb2_grpc import add_AppCallbackServicer_to_server

log = logging.getLogger("baton")
APP_ADDRESS = "127.0.0.1:50051"
DRAIN_SECONDS = 25.0  # the sidecar's own drain time (20 s) and a margin
_STOP_SECONDS = 2.0
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # two apps on one port would take each other's calls
    ("grpc.http2.max_ping_strikes", 0),  # the sidecar pings often, to notice a frozen app
    ("grpc.keepalive_permit_without_calls", 1),
)

H = TypeVar("H", bound=Handler)
B = TypeVar("B", bound=BecomeHook)
L = TypeVar("L", bound=LoseHook)
F = TypeVar("F")


class Baton(Sidecar):
    """An app beside its sidecar: registered handlers and hooks, and the sidecar's services."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers, self._hooks = Handlers(), Hooks()
        self._leading: Leading | None = None
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()

    def schedule(self, name: str) -> Callable[[H], H]:
        """Registers the handler of a schedule, by ticks and by Trigger."""
        return _registrar(self._handlers.schedules, name)

    def singleton(self, name: str) -> Callable[[H], H]:
        """Registers the handler of a singleton: it runs for as long as the term lasts."""
        return _registrar(self._handlers.singletons, name)

    def on_become_leader(self, group: str = "default") -> Callable[[B], B]:
        """Registers what is done before the first run of a term; an error refuses the term."""
        return _registrar(self._hooks.become, group)

    def on_lose_leadership(self, group: str = "default") -> Callable[[L], L]:
        """Registers what is done when a term is over; called with the context and the reason."""
        return _registrar(self._hooks.lose, group)

    def is_leader(self, group: str = "default") -> bool:
        """Whether this app may act as leader at this instant; never true past the trust time."""
        return self.epoch(group) is not None

    def epoch(self, group: str = "default") -> int | None:
        """The fencing token of the term this app leads in now; None if it does not lead."""
        term = self._leading.terms.get(group) if self._leading else None
        return term.epoch if term and term.leads() else None

    @asynccontextmanager
    async def serving(
        self,
        address: str | None = None,
        sidecar: str | None = None,
        *,
        app_token_file: str | Path | None = None,
        api_token_file: str | Path | None = None,
    ) -> AsyncIterator[str]:
        """Serves the app for the block; yields the address, with the port that was chosen for 0.

        Addresses are `host:port` or `unix:///path`. Defaults: BATON_APP_ADDRESS, else
        127.0.0.1:50051; BATON_API_ADDRESS, else 127.0.0.1:9401; BATON_APP_TOKEN_FILE and
        BATON_API_TOKEN_FILE, else no token.
        """
        address = address or os.environ.get("BATON_APP_ADDRESS") or APP_ADDRESS
        token = token_file(app_token_file, "BATON_APP_TOKEN_FILE")
        async with self.connected(sidecar, api_token_file=api_token_file):
            leading = self._leading = Leading(self, self._hooks)
            status = health.aio.HealthServicer()  # type: ignore[attr-defined]
            server = grpc.aio.server(options=_OPTIONS)
            add_AppCallbackServicer_to_server(
                Callbacks(self, leading, self._handlers, token), server
            )
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
                await leading.end_all(_STOP_SECONDS)
                await server.stop(_STOP_SECONDS)

    async def serve(
        self,
        address: str | None = None,
        sidecar: str | None = None,
        *,
        app_token_file: str | Path | None = None,
        api_token_file: str | Path | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        """Serves the app until `stop` is called; then hands leadership over, and ends.

        Defaults as in `serving`.
        """
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()
        async with self.serving(
            address, sidecar, app_token_file=app_token_file, api_token_file=api_token_file
        ) as served:
            log.info("serving at %s", served)
            await self._stop.wait()
            drain = asyncio.create_task(self._drain(drain_seconds))
            hurry = asyncio.create_task(self._stop_now.wait())
            _, pending = await asyncio.wait({drain, hurry}, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()

    def stop(self) -> None:
        """Ends `serve`: the first call hands leadership over, a second one does not wait."""
        (self._stop_now if self._stop.is_set() else self._stop).set()

    def run(
        self,
        address: str | None = None,
        sidecar: str | None = None,
        *,
        app_token_file: str | Path | None = None,
        api_token_file: str | Path | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        """`serve` for a main program: SIGTERM and SIGINT stop it, a second one at once.

        In Kubernetes the app gets SIGTERM before its sidecar does: it keeps answering until the
        sidecar has taken leadership back, or `drain_seconds` have passed.
        """

        async def main() -> None:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
            await self.serve(
                address,
                sidecar,
                app_token_file=app_token_file,
                api_token_file=api_token_file,
                drain_seconds=drain_seconds,
            )

        asyncio.run(main())

    async def _drain(self, seconds: float) -> None:
        """Asks the sidecar to hand over what this app leads, and waits until it has."""
        leading = self._leading
        if leading is None:
            return
        leading.stopping = True
        try:
            async with asyncio.timeout(seconds):
                for term in leading.terms.all():
                    await self._resign(term.group)
                await leading.idle.wait()
        except TimeoutError:
            log.warning("leadership was not taken back within %s s", seconds)

    async def _resign(self, group: str) -> None:
        try:
            await self.leadership.resign(group)
        except BatonError as error:  # it may be handing over already, or be gone
            log.warning("resigning %s: %s", group, error)


def _registrar(registry: dict[str, Any], name: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        if name in registry:
            raise ValueError(f"{name!r} is registered already")
        registry[name] = function
        return function

    return register


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
