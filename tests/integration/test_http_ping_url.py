"""Outgoing pings against a real server on this machine."""

import asyncio
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog

from sidecar import metrics
from sidecar.adapters import ping_url
from sidecar.adapters.ping_url import PingUrls


@dataclass
class Receiver:
    """Answers each request with the next of `answers`, the last one for ever."""

    answers: list[bytes] = field(default_factory=lambda: [b"HTTP/1.1 200 OK\r\n\r\n"])
    requests: list[str] = field(default_factory=list)
    open: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == b"hang":
            await reader.read()  # until the other side gives up
        writer.write(answer)
        writer.close()
        self.open -= 1

    @property
    def lines(self) -> list[str]:
        return [request.partition(" HTTP")[0] for request in self.requests]


@asynccontextmanager
async def _receiving(receiver: Receiver, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://localhost:{port}"
    finally:
        server.close()
        while receiver.open:  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.01)


@pytest.fixture
async def pings(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PingUrls]:
    monkeypatch.setattr(ping_url, "_RETRY_SECONDS", 0.01)
    pings = PingUrls()
    task = asyncio.create_task(pings.run())
    yield pings
    task.cancel()
    await asyncio.wait({task})


async def _until(receiver: Receiver, count: int) -> None:
    async with asyncio.timeout(60):
        while len(receiver.requests) < count:  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.01)


def _failures(cause: str) -> float:
    name = "baton_ping_url_failures_total"
    return metrics.REGISTRY.get_sample_value(name, {"cause": cause}) or 0.0


async def _failed(cause: str, before: float) -> None:
    async with asyncio.timeout(60):
        while _failures(cause) == before:  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.01)


async def test_start_success_and_failure_in_order(pings: PingUrls) -> None:
    receiver = Receiver()
    async with _receiving(receiver) as url:
        for event in ("start", "success", "start", "failure"):
            pings.send("cleanup", f"{url}/ping/abc?x=1", event)
        await _until(receiver, 4)
    assert receiver.lines == [
        "GET /ping/abc/start?x=1",
        "GET /ping/abc?x=1",
        "GET /ping/abc/start?x=1",
        "GET /ping/abc/fail?x=1",
    ]


async def test_a_failed_ping_is_tried_again(pings: PingUrls) -> None:
    receiver = Receiver([b"HTTP/1.1 503 No\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
    before = _failures("status")
    async with _receiving(receiver) as url:
        pings.send("cleanup", url, "success")
        await _until(receiver, 2)
        await asyncio.sleep(0.05)
    assert receiver.lines == ["GET /", "GET /"]
    assert _failures("status") == before


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\n\r\n", "status"),
        (b"hang", "timeout"),
        (b"SSH-2.0-OpenSSH\r\n", "connection"),
        (b"HTTP/1.1 " + b"2" * 100_000, "connection"),
    ],
)
async def test_bad_answers_are_counted_and_say_nothing_of_the_url(
    pings: PingUrls, monkeypatch: pytest.MonkeyPatch, answer: bytes, cause: str
) -> None:
    """G12: the path of a ping URL is a secret."""
    if answer == b"hang":
        monkeypatch.setattr(ping_url, "SECONDS_MAX", 0.5)
    before = _failures(cause)
    with structlog.testing.capture_logs() as lines:
        async with _receiving(Receiver([answer])) as url:
            pings.send("cleanup", f"{url}/tok-12345", "success")
            await _failed(cause, before)
    assert lines[-1]["event"] == "ping_failed"
    assert "tok-12345" not in repr(lines)
    assert "localhost" not in repr(lines)


async def test_nothing_but_http_is_spoken(pings: PingUrls) -> None:
    """G12"""
    before = _failures("connection")
    pings.send("cleanup", "file:///etc/passwd", "success")
    await _failed("connection", before)
    pings.send("cleanup", "", "success")  # none configured: nothing to do


async def test_a_full_queue_drops_and_never_blocks() -> None:
    """A run does not wait for a ping."""
    idle, before = PingUrls(), _failures("queue_full")
    started = time.monotonic()
    for _ in range(1000):
        idle.send("cleanup", "http://127.0.0.1:9/x", "start")
    assert time.monotonic() - started < 1
    assert _failures("queue_full") - before == 1000 - ping_url.QUEUE_MAX


async def test_credentials_go_in_a_header(pings: PingUrls) -> None:
    receiver = Receiver()
    async with _receiving(receiver) as url:
        pings.send("cleanup", url.replace("//", "//me:p%40ss@") + "/x", "success")
        await _until(receiver, 1)
    assert "Authorization: Basic bWU6cEBzcw==" in receiver.requests[0]
    assert "me:" not in receiver.requests[0].split("\r\n")[1]


async def test_https_is_verified(
    pings: PingUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: an unknown certificate is refused; a trusted one works."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(  # noqa: ASYNC221 - milliseconds
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)
    receiver, before = Receiver(), _failures("connection")
    async with _receiving(receiver, server_side) as url:
        pings.send("cleanup", f"{url}/x", "success")
        await _failed("connection", before)
        assert receiver.requests == []
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(ping_url, "_tls", lambda: trusting)
        pings.send("cleanup", f"{url}/x", "success")
        await _until(receiver, 1)
    assert receiver.lines == ["GET /x"]
