"""Hints between sidecars: LISTEN on a separate connection, NOTIFY through the pool.

Guarantees: hints only save time. A lost hint costs a slow poll; after every reconnect all
subscribers are woken, because hints may have been missed. Notifying never blocks or fails a
caller: hints are coalesced and sent by a task of their own, after the commit they speak of.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import psycopg
import structlog

from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.session import Connection, connect, discard, fetch
from sidecar.model.errors import SidecarError, StoreUnavailable

log = structlog.get_logger()

_QUEUE_MAX = 1000
_DETAILS_MAX = 1000
_RECONNECT_SECONDS = (0.2, 5.0)
# A half-open connection would never report an error.
_CHECK_SECONDS = 30.0


def channel_name(schema: str, cluster: str) -> str:
    """One channel per cluster: hints of other clusters do not wake this one."""
    return "baton_" + sha256(f"{schema}\0{cluster}".encode()).hexdigest()[:16]


class HintSubscription:
    """Hints of one topic. `wait` returns early when a hint arrives."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._details: deque[str] = deque(maxlen=_DETAILS_MAX)

    async def wait(self, timeout: float | None = None) -> bool:
        """Whether a hint came within `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        came = self._event.is_set()
        self._event.clear()
        return came

    def details(self) -> list[str]:
        """The details of the hints since the last call; some may be missing."""
        details = list(self._details)
        self._details.clear()
        return details

    def wake(self, detail: str = "") -> None:
        if detail:
            self._details.append(detail)
        self._event.set()


class PostgresHints:
    """Subscriptions and the two tasks that serve them."""

    def __init__(self, database: Database, direct_url: Callable[[], str], *, channel: str) -> None:
        self._database = database
        self._url = direct_url
        self._channel = channel
        self._subscriptions: dict[str, list[HintSubscription]] = {}
        self._outgoing: dict[str, None] = {}  # an ordered set: equal hints are sent once
        self._outgoing_ready = asyncio.Event()

    def subscribe(self, topic: str) -> HintSubscription:
        subscription = HintSubscription()
        self._subscriptions.setdefault(topic, []).append(subscription)
        return subscription

    def unsubscribe(self, topic: str, subscription: HintSubscription) -> None:
        self._subscriptions[topic].remove(subscription)

    def notify(self, topic: str, detail: str = "") -> None:
        """Send a hint soon; this runner's own subscribers are woken at once."""
        self._wake(topic, detail)
        if len(self._outgoing) < _QUEUE_MAX:
            self._outgoing[f"{topic} {detail}".strip()] = None
        self._outgoing_ready.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="hints.listen")
            tasks.create_task(self._send(), name="hints.send")

    async def _send(self) -> None:
        while True:
            await self._outgoing_ready.wait()
            self._outgoing_ready.clear()
            hints, self._outgoing = list(self._outgoing), {}
            try:
                await self._database.fetch(
                    "hints/notify", {"channel": self._channel, "payloads": hints}
                )
            except SidecarError as error:
                log.info("hints_not_sent", count=len(hints), problem=str(error))

    async def _listen(self) -> None:
        first, longest = _RECONNECT_SECONDS
        pause = first
        while True:
            connection: Connection | None = None
            try:
                connection = await connect(self._url, purpose="listen")
                await fetch(connection, f'LISTEN "{self._channel}"', None, 5.0)
                pause = first
                self._wake_all()
                await self._receive(connection)
            except (SidecarError, psycopg.Error, OSError) as error:
                log.info("listen_connection_lost", problem=str(error).strip())
            finally:
                if connection:
                    await discard(connection)
            await asyncio.sleep(pause)
            pause = min(longest, pause * 2)

    async def _receive(self, connection: Connection) -> None:
        """Deliver hints until the connection breaks."""
        while True:
            async for notice in connection.notifies(timeout=0):
                if notice.pid != connection.pgconn.backend_pid:
                    topic, _, detail = notice.payload.partition(" ")
                    self._wake(topic, detail)
            if connection.closed:
                raise StoreUnavailable("closed")
            if not await _readable(connection, _CHECK_SECONDS):
                await fetch(connection, "SELECT 1", None, 5.0)

    def _wake(self, topic: str, detail: str) -> None:
        for subscription in self._subscriptions.get(topic, ()):
            subscription.wake(detail)

    def _wake_all(self) -> None:
        for topic in self._subscriptions:
            self._wake(topic, "")


async def _readable(connection: Connection, seconds: float) -> bool:
    """Whether data arrived in time. psycopg's own wait wakes the process ten times a second."""
    loop = asyncio.get_running_loop()
    came, fileno = asyncio.Event(), connection.fileno()
    loop.add_reader(fileno, came.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await came.wait()
    finally:
        loop.remove_reader(fileno)
    return came.is_set()
