"""The app object: what the user registers, and how it works beside its sidecar."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from baton._attach import Attachment
from baton._background import Background
from baton._callbacks import Callbacks
from baton._declared import Declared, ScheduleOptions, SingletonOptions
from baton._durations import Span
from baton._handlers import Handler, Handlers, Registered
from baton._jobs import Jobs
from baton._leading import BecomeHook, Hooks, Leading, LoseHook
from baton._link import Link
from baton._serving import served
from baton._sidecar import Sidecar, token_file
from baton._specs import JobOptions
from baton.v1.schedules_pb2 import RetryPolicy

log = logging.getLogger("baton")
APP_ADDRESS = "127.0.0.1:50051"
DRAIN_SECONDS = 25.0  # the sidecar's own drain time (20 s) and a margin
_CLOSE_SECONDS = 1.0

H = TypeVar("H", bound=Handler)
B = TypeVar("B", bound=BecomeHook)
L = TypeVar("L", bound=LoseHook)
F = TypeVar("F")


class Baton(Sidecar):
    """An app beside its sidecar: registered handlers and hooks, and the sidecar's services.

    `capacity`: how many runs this process takes at once; 1,500 unless a handler is a plain
    function, then 64. `hide_errors`: of an unexpected exception only the type leaves the process.
    `revision` orders builds in a rollout, for what the code declares; default: BATON_REVISION,
    else 0.
    """

    def __init__(
        self,
        *,
        capacity: int | None = None,
        hide_errors: bool = False,
        revision: int | None = None,
    ) -> None:
        super().__init__()
        if capacity is not None and not 1 <= capacity <= 10_000:
            raise ValueError("capacity: 1 to 10,000 are allowed")
        if revision is None:
            revision = int(os.environ.get("BATON_REVISION") or 0)
        self._capacity = capacity
        self._handlers, self._hooks = Handlers(hide_errors=hide_errors), Hooks()
        self.jobs = Jobs(self, self._handlers.job_options)
        self._declared = Declared(revision)
        self._leading: Leading | None = None
        self._attachment: Attachment | None = None
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()

    def schedule(self, name: str, **options: Unpack[ScheduleOptions]) -> Callable[[H], H]:
        """Registers the handler of a schedule, by ticks and by Trigger.

        With `cron`, `every` or `at` the schedule is declared here, with the keys of the
        configuration file; without, the file or the API says when it runs.
        """
        register = _handler(self._handlers.schedules, name)
        self._declared.schedule(name, options)
        return register

    def singleton(self, name: str, **options: Unpack[SingletonOptions]) -> Callable[[H], H]:
        """Registers the handler of a singleton: it runs for as long as the term lasts.

        With any option the singleton is declared here; without, the configuration file names it.
        """
        register = _handler(self._handlers.singletons, name)
        self._declared.singleton(name, options)
        return register

    def job(
        self,
        name: str,
        *,
        queue: str = "",
        priority: str = "",
        retry: RetryPolicy | int | None = None,
        timeout: Span | None = None,
    ) -> Callable[[H], H]:
        """Registers the handler of a job; the options are the defaults of jobs submitted here."""
        register = _handler(self._handlers.jobs, name)
        self._handlers.job_options[name] = JobOptions(queue, priority, retry, timeout)
        return register

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
    async def attached(
        self,
        sidecar: str | None = None,
        *,
        api_token_file: str | Path | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> AsyncIterator[Self]:
        """Attaches this process to its sidecar for the block, as in the lifespan of a web app.

        The stream is opened in the background, and again whenever it breaks. At the end of the
        block leadership is handed over, and runs may finish within `drain_seconds`.
        Defaults: BATON_API_ADDRESS, else 127.0.0.1:9401; BATON_API_TOKEN_FILE, else no token.
        """
        async with self.connected(sidecar, api_token_file=api_token_file):
            leading = self._leading = Leading(self, self._hooks, watches=False)
            attachment = self._attachment = Attachment(
                self, leading, self._handlers, self._declared, self._capacity
            )
            stream = asyncio.create_task(attachment.run(), name="baton-attachment")
            try:
                yield self
                await self._unless_hurried(attachment.leave(drain_seconds))
            finally:
                await attachment.finish()
                await asyncio.wait({stream}, timeout=_CLOSE_SECONDS)
                stream.cancel()
                await asyncio.wait({stream})

    async def attach(
        self,
        sidecar: str | None = None,
        *,
        api_token_file: str | Path | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        """Attaches until `stop` is called; then hands leadership over, and ends.

        Defaults as in `attached`.
        """
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()
        async with self.attached(
            sidecar, api_token_file=api_token_file, drain_seconds=drain_seconds
        ):
            await self._stop.wait()

    def background(
        self,
        sidecar: str | None = None,
        *,
        api_token_file: str | Path | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> Background:
        """`attach` in a thread of its own, for programs without an event loop, such as WSGI apps.

        Start it in each worker process, never before a fork. Defaults as in `attached`.
        """
        return Background(
            lambda: self.attach(
                sidecar, api_token_file=api_token_file, drain_seconds=drain_seconds
            ),
            self.stop,
        )

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
            callbacks = Callbacks(Link(self), leading, self._handlers, token)
            async with served(callbacks, address) as bound:
                yield bound

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
        ) as bound:
            log.info("serving at %s", bound)
            await self._stop.wait()
            await self._unless_hurried(self._drain(drain_seconds))

    def stop(self) -> None:
        """Ends `attach` or `serve`: a first call hands leadership over, a second does not wait."""
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
        """`attach` for a main program: SIGTERM and SIGINT stop it, a second one at once.

        With an address, given or as BATON_APP_ADDRESS, the app is served there instead, and the
        sidecar calls it. In Kubernetes the app gets SIGTERM before its sidecar does: it keeps
        working until the sidecar has taken leadership back, or `drain_seconds` have passed.
        """
        address = address or os.environ.get("BATON_APP_ADDRESS")

        async def main() -> None:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
            if address is None:
                await self.attach(
                    sidecar, api_token_file=api_token_file, drain_seconds=drain_seconds
                )
                return
            await self.serve(
                address,
                sidecar,
                app_token_file=app_token_file,
                api_token_file=api_token_file,
                drain_seconds=drain_seconds,
            )

        asyncio.run(main())

    async def _drain(self, seconds: float) -> None:
        leading = self._leading
        if leading is None:
            return
        leading.stopping = True
        try:
            async with asyncio.timeout(seconds):
                await leading.resign_all()
        except TimeoutError:
            log.warning("leadership was not taken back within %s s", seconds)

    async def _unless_hurried(self, drain: Coroutine[Any, Any, None]) -> None:
        """Waits for the drain to end, but not past a second `stop`."""
        draining = asyncio.create_task(drain)
        hurry = asyncio.create_task(self._stop_now.wait())
        try:
            await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.cancel()
            hurry.cancel()


def _handler(registry: dict[str, Registered], name: str) -> Callable[[H], H]:
    register = _registrar(registry, name)

    def registered(function: H) -> H:
        register(Registered(function))
        return function

    return registered


def _registrar(registry: dict[str, Any], name: str) -> Callable[[F], F]:
    if name in registry:
        raise ValueError(f"{name!r} is registered already")

    def register(function: F) -> F:
        if name in registry:  # registered between the two
            raise ValueError(f"{name!r} is registered already")
        registry[name] = function
        return function

    return register
