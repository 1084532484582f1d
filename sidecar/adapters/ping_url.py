"""Outgoing pings for an external dead man's switch: `URL/start`, `URL`, `URL/fail`.

The convention is that of healthchecks.io. Guarantees: a run never waits for a ping; pings to one
URL keep their order; each ends within 5 s and is tried twice; a ping that does not fit in the queue
is dropped and counted. Only http and https are supported, redirects are not followed, and no part
of a URL is logged, because its path is the secret.
"""

import asyncio
import base64
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit
from zlib import crc32

import structlog

from sidecar import metrics

log = structlog.get_logger()

Event = Literal["start", "success", "failure"]
SECONDS_MAX = 5.0
QUEUE_MAX = 64
_WORKERS = 4
_TRIES = 2
_RETRY_SECONDS = 1.0
_SUFFIXES: dict[Event, str] = {"start": "/start", "success": "", "failure": "/fail"}


@dataclass(frozen=True, slots=True)
class _Ping:
    name: str
    url: str
    event: Event


class PingRefused(Exception):
    """The server answered with another status than success."""


class PingUrls:
    """Sends pings in the background; `run` sends them."""

    def __init__(self) -> None:
        self._queues = [asyncio.Queue[_Ping](QUEUE_MAX) for _ in range(_WORKERS)]

    def send(self, name: str, url: str, event: Event) -> None:
        """Queue a ping on behalf of the named singleton or schedule; returns at once."""
        if not url:
            return
        # One worker per URL: a success must not be sent before its start.
        queue = self._queues[crc32(url.encode()) % _WORKERS]
        try:
            queue.put_nowait(_Ping(name, url, event))
        except asyncio.QueueFull:
            _failed(name, event, "queue_full", "too many pings are waiting")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number, queue in enumerate(self._queues):
                tasks.create_task(_work(queue), name=f"ping_url.{number}")


async def _work(queue: asyncio.Queue[_Ping]) -> None:
    while True:
        ping = await queue.get()
        failure = await _tried(ping)
        for _ in range(_TRIES - 1):
            if failure is not None:
                await asyncio.sleep(_RETRY_SECONDS)
                failure = await _tried(ping)
        if failure is not None:
            _failed(ping.name, ping.event, *failure)


async def _tried(ping: _Ping) -> tuple[str, str] | None:
    """None, or a cause for the metric and a message for the log without the URL."""
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await _request(urlsplit(ping.url), _SUFFIXES[ping.event])
    except TimeoutError:
        return "timeout", f"no answer within {SECONDS_MAX:g} s"
    except PingRefused as error:
        return "status", str(error)
    except (OSError, ValueError) as error:
        return "connection", type(error).__name__
    return None


async def _request(url: SplitResult, suffix: str) -> None:
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("not an http or https URL")
    secure = url.scheme == "https"
    reader, writer = await asyncio.open_connection(
        url.hostname,
        url.port or (443 if secure else 80),
        ssl=_tls() if secure else None,
        limit=4096,
    )
    try:
        writer.write(_head(url, suffix).encode("ascii"))
        await writer.drain()
        status = (await reader.readline()).split()
    finally:
        writer.transport.abort()  # the body of the answer is not needed
    if len(status) < 2 or not status[0].startswith(b"HTTP/1."):
        raise ValueError("not HTTP")
    if not status[1].startswith(b"2"):
        raise PingRefused(f"status {int(status[1])}")


def _head(url: SplitResult, suffix: str) -> str:
    path = url.path.rstrip("/") + suffix if suffix else url.path
    target = (path or "/") + (f"?{url.query}" if url.query else "")
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {url.netloc.rpartition('@')[2]}",
        "User-Agent: baton",
        "Connection: close",
    ]
    if url.username is not None:
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        lines.append("Authorization: Basic " + base64.b64encode(pair.encode()).decode())
    if any(not line.isprintable() for line in lines):
        raise ValueError("control characters in a URL")
    return "\r\n".join(lines) + "\r\n\r\n"


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Built at the first use: the trusted certificates take megabytes."""
    return ssl.create_default_context()


def _failed(name: str, event: Event, cause: str, detail: str) -> None:
    metrics.PING_URL_FAILURES.labels(cause).inc()
    log.warning("ping_failed", entity=name, ping=event, detail=detail)
