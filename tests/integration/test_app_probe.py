"""What listens in the place of an app is named: another server, TLS, nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from sidecar.adapters import app_probe
from sidecar.adapters.app_probe import diagnose
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource
from sidecar.election.app_watch import AppWatch
from sidecar.model.unacknowledged import UnacknowledgedLosses

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        await writer.drain()
        writer.close()

    return serve


@asynccontextmanager
async def _listening(serve: Serve) -> AsyncIterator[str]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it answers in HTTP/1, as a web server does"),
        (b"\x15\x03\x01\x00\x02\x02\x46\0\0", "it expects TLS"),
        (b"SSH-2.0-OpenSSH_9\r\n", "it answers in another protocol"),
        (b"", "it closes the connection"),
    ],
)
async def test_another_server_is_named(answer: bytes, seen: str) -> None:
    async with _listening(_answering(answer)) as address:
        told = await diagnose(address)
    assert told.startswith(f"app.address {address} does not speak gRPC (HTTP/2): {seen}")


async def test_silence_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_probe, "PROBE_SECONDS", 0.2)
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with _listening(silent) as address:
        assert "accepts connections and does not answer" in await diagnose(address)
        ended.set()


async def test_nobody_is_named(unused_tcp_port: int, tmp_path: Path) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    assert (await diagnose(address)).startswith(f"app.address {address}: ")
    path = f"unix://{tmp_path}/app.sock"
    assert (await diagnose(path)) == f"app.address {path}: No such file or directory"


async def test_a_grpc_server_gives_nothing_to_say(unused_tcp_port: int) -> None:
    server = grpc.aio.server()
    server.add_insecure_port(f"127.0.0.1:{unused_tcp_port}")
    await server.start()
    assert await diagnose(f"127.0.0.1:{unused_tcp_port}") == ""
    await server.stop(0)


async def test_the_watch_of_the_app_says_it() -> None:
    """As /health and the log show it."""
    async with _listening(_answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as address:
        link = AppLink(address, Token(SecretSource()), cluster="c", runner_id="r")
        watch = AppWatch(
            link,
            ["default"],
            UnacknowledgedLosses(),
            asyncio.get_running_loop().time,
            interval=1.0,
            failures_max=3,
            callback_timeout=1.0,
            diagnose=lambda: diagnose(address),
        )
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            while "does not speak gRPC" not in watch.status.problem:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await link.close()
