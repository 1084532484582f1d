"""The real HTTP server on a real port: probes answer at once, bad requests cost nothing."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily

from sidecar.adapters.http import bounded, probes
from sidecar.model.errors import SidecarError
from sidecar.model.health import Readiness


@dataclass
class Known:
    """What the probes read in these tests."""

    verdicts: dict[str, Readiness] = field(default_factory=dict)

    def live(self) -> Readiness:
        return self.verdicts.get("live", Readiness())

    def started(self) -> Readiness:
        return self.verdicts.get("started", Readiness())

    def ready(self) -> Readiness:
        return self.verdicts.get("ready", Readiness())

    def report(self) -> Mapping[str, Any]:
        return {"status": "ok", "app": {"status": "up"}}


@dataclass
class Server:
    port: int
    known: Known
    registry: CollectorRegistry
    task: "asyncio.Task[None]"

    async def ask(self, text: str) -> tuple[int, dict[str, str], str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(text.replace("\n", "\r\n").encode())
            async with asyncio.timeout(60):
                answer = (await reader.read()).decode()
        finally:
            writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        first, *lines = head.split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        return int(first.split()[1]), headers, body

    async def get(
        self, path: str, method: str = "GET", accept: str = "*/*"
    ) -> tuple[int, dict[str, str], str]:
        return await self.ask(
            f"{method} {path} HTTP/1.1\nhost: x\naccept: {accept}\nconnection: close\n\n"
        )


@pytest.fixture
def limits() -> bounded.HttpLimits:
    return probes.LIMITS


@pytest.fixture
async def server(limits: bounded.HttpLimits) -> AsyncIterator[Server]:
    known, registry = Known(), CollectorRegistry()
    Gauge("baton_epoch", "Epoch.", ("group",), registry=registry).labels("default").set(7)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        probes.serve("127.0.0.1:0", known, registry, listening=port.set_result, limits=limits)
    )
    yield Server(await port, known, registry, task)
    task.cancel()
    await asyncio.wait({task})


async def test_checks_are_listed_and_excluded_as_in_kubernetes(server: Server) -> None:
    stale = ("schedule mail: no success for 9 s", "schedule other: no success for 9 s")
    server.known.verdicts["ready"] = Readiness.of({"app": (), "singletons": stale})
    status, _, body = await server.get("/readyz?verbose")
    assert (status, body.splitlines()) == (
        503,
        [
            "[+]app ok",
            "[-]singletons failed: schedule mail: no success for 9 s",
            "[-]singletons failed: schedule other: no success for 9 s",
            "readyz check failed",
        ],
    )
    assert (await server.get("/readyz"))[0] == 503  # the default stays strict
    assert (await server.get("/readyz?exclude=app"))[0] == 503
    status, _, body = await server.get("/readyz?exclude=singletons")
    assert (status, body) == (200, "ok\n")
    status, _, body = await server.get("/readyz?verbose&exclude=singletons&exclude=nothing")
    assert (status, body.splitlines()) == (
        200,
        [
            "[+]app ok",
            "[+]singletons excluded: failed",
            "warn: there is no check nothing",
            "readyz check passed",
        ],
    )
    server.known.verdicts["live"] = Readiness.of({"ping": ()})
    assert (await server.get("/livez?verbose"))[2] == "[+]ping ok\nlivez check passed\n"


async def test_probes_say_ok_or_why_not(server: Server) -> None:
    """G10: the reason is in the body."""
    assert await server.get("/readyz") == (200, _plain(3), "ok\n")
    server.known.verdicts["ready"] = Readiness(("app: no answer", "singleton x: stale"))
    status, _, body = await server.get("/readyz")
    assert (status, body) == (503, "app: no answer\nsingleton x: stale\n")
    status, headers, body = await server.get("/readyz", accept="application/json")
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {"ok": False, "reasons": ["app: no answer", "singleton x: stale"]}
    assert (await server.get("/livez"))[0] == 200
    assert (await server.get("/startupz"))[0] == 200


def _plain(length: int) -> dict[str, str]:
    return {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(length),
        "connection": "close",
    }


async def test_a_thousand_reasons_stay_readable(server: Server) -> None:
    server.known.verdicts["ready"] = Readiness(tuple(f"reason {n}" for n in range(1000)))
    body = (await server.get("/readyz"))[2]
    assert body.splitlines()[-1] == "and 950 more"


async def test_health_is_json(server: Server) -> None:
    status, headers, body = await server.get("/health")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["app"] == {"status": "up"}


async def test_metrics_speak_both_formats(server: Server) -> None:
    status, headers, body = await server.get("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    assert 'baton_epoch{group="default"} 7.0' in body
    _, headers, body = await server.get("/metrics", accept="application/openmetrics-text")
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


async def test_unknown_paths_methods_and_head(server: Server) -> None:
    """G11"""
    assert (await server.get("/nothing"))[0] == 404
    assert (await server.get("/readyz/"))[0] in (307, 404)
    assert (await server.get("/readyz", method="POST"))[0] == 405
    status, headers, body = await server.get("/readyz", method="HEAD")
    assert (status, body) == (200, "")
    assert "server" not in headers


async def test_garbage_is_refused_and_the_server_lives_on(server: Server) -> None:
    """G11"""
    assert (await server.ask("\x00\x01garbage\n\n"))[0] == 400
    assert (await server.ask("GET http://[ HTTP/1.1\nhost: x\n\n"))[0] == 400
    assert (await server.get("/livez"))[0] == 200


async def _pour(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(60):
        while True:
            writer.write(b"y" * 65536)
            await writer.drain()
            await asyncio.sleep(0.01)


# It is not time that cuts them.
@pytest.mark.parametrize("limits", [replace(probes.LIMITS, request_seconds=600.0)])
async def test_huge_requests_are_cut(server: Server) -> None:
    """G11: neither headers nor a body can fill the memory."""
    for head in (
        "GET /livez HTTP/1.1\r\nx: ",
        "POST /livez HTTP/1.1\r\ncontent-length: 9999999\r\n\r\n",
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head.encode() + b"y" * probes.LIMITS.request_bytes)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            await _pour(writer)
        writer.close()
    assert (await server.get("/livez"))[0] == 200


@pytest.mark.parametrize("limits", [replace(probes.LIMITS, request_seconds=0.3)])
async def test_slow_requests_are_cut(server: Server) -> None:
    """G11: a client that never ends its request holds no connection for ever."""
    silent, silent_writer = await asyncio.open_connection("127.0.0.1", server.port)
    slow, slow_writer = await asyncio.open_connection("127.0.0.1", server.port)
    slow_writer.write(b"GET /livez HTTP/1.1\r\nx: ")
    async with asyncio.timeout(60):
        for reader in (silent, slow):
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
    silent_writer.close()
    slow_writer.close()


async def test_a_slow_scrape_does_not_delay_a_probe(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G10: a probe answers whatever hangs; scrapes that come together share one rendering."""
    calls, asked, go, encoder = 0, 0, threading.Event(), probes._encoder

    class Slow:
        def collect(self) -> list[GaugeMetricFamily]:
            nonlocal calls
            calls += 1
            go.wait(60)
            return [GaugeMetricFamily("slow", "Slow.", value=1)]

    def counted(accept: str) -> Any:
        nonlocal asked
        asked += 1
        return encoder(accept)

    monkeypatch.setattr(probes, "_encoder", counted)
    server.registry._collector_to_names[Slow()] = ["slow"]
    scrapes = [asyncio.create_task(server.get("/metrics")) for _ in range(5)]
    try:
        async with asyncio.timeout(60):
            while asked < 5 or not calls:  # noqa: ASYNC110 - any condition will do
                await asyncio.sleep(0.01)
        assert (await server.get("/readyz"))[0] == 200
    finally:
        go.set()
    assert {(await scrape)[0] for scrape in scrapes} == {200}
    assert calls == 1


async def test_a_taken_port_is_named(server: Server) -> None:
    """G11"""
    with pytest.raises(SidecarError, match=rf"http.address: 127.0.0.1:{server.port} is in use"):
        await probes.serve(f"127.0.0.1:{server.port}", server.known, server.registry)
    with pytest.raises(SidecarError, match=r"http.address: 192.0.2.1:1 cannot be used"):
        await probes.serve("192.0.2.1:1", server.known, server.registry)


async def test_cancelling_closes_the_port_even_with_an_idle_client(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    server.task.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait({server.task})
        await reader.read()
    writer.close()
    with socket.socket() as handle:
        assert handle.connect_ex(("127.0.0.1", server.port)) != 0


async def test_many_requests_on_one_connection(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    padding = "y" * 4000
    for _ in range(50):  # more than the limit of one request in all
        writer.write(f"GET /livez HTTP/1.1\r\nhost: x\r\nx: {padding}\r\n\r\n".encode())
        assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200")
    writer.close()
