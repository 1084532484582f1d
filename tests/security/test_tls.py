"""TLS to Postgres and Redis: the right server is taken, any other is refused with words (G12)."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import pytest
import yaml

from devtools.servers import RedisServer
from sidecar.adapters.postgres.session import connect, discard
from sidecar.adapters.redis_cache import RedisCache
from sidecar.model.errors import StoreUnavailable
from sidecar.model.state_types import CacheError
from tests.integration.test_redis_forms import tls_before
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Setup
from tests.security.certificates import Authority, Certificate


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Authority]:
    """`ours` signs the servers; `another` is one that somebody else trusts."""
    directory = tmp_path_factory.mktemp("authorities")
    return {name: Authority(directory / name, name) for name in ("ours", "another")}


class TlsPostgres:
    """Postgres' way into TLS, before a Postgres that was built without it."""

    def __init__(self, url: str, certificate: Certificate) -> None:
        self._parts = urlsplit(url)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate.file, certificate.key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls")
        self.encrypted = self.plain = 0

    @property
    def url(self) -> str:
        user, _, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}").geturl()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readexactly(8) != _SSL_REQUEST:
                self.plain += 1
                writer.close()
                return
            writer.write(b"S")
            await writer.start_tls(self._context)
            self.encrypted += 1
            host, port = self._parts.hostname, self._parts.port
            server_reader, server_writer = await asyncio.open_connection(host, port)
            await asyncio.gather(_pump(reader, server_writer), _pump(server_reader, writer))

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


_SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


@pytest.fixture
def server(database_url: str, authorities: dict[str, Authority]) -> Iterator[TlsPostgres]:
    with TlsPostgres(database_url, authorities["ours"].certificate("IP:127.0.0.1")) as server:
        yield server


def _verified(url: str, authority: Authority) -> str:
    return f"{url}?sslmode=verify-full&sslrootcert={authority.file}"


def test_a_sidecar_speaks_tls_on_every_connection(
    tmp_path: Path, server: TlsPostgres, authorities: dict[str, Authority]
) -> None:
    """G12: the lock session, LISTEN and the pool; it leads."""
    setup = Setup(_verified(server.url, authorities["ours"]))
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        cluster.wait_for_leader()
        wait_until(lambda: server.encrypted >= 3, 10, lambda: f"only {server.encrypted} encrypted")
    assert server.plain == 0


async def _refusal(url: str) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await discard(await connect(lambda: url, purpose="test", seconds=10))
    return str(caught.value)


async def test_a_server_of_another_authority_is_refused(
    server: TlsPostgres, authorities: dict[str, Authority]
) -> None:
    """G12: with words, and without the password."""
    problem = await _refusal(_verified(server.url, authorities["another"]))
    assert "certificate verify failed" in problem
    assert str(urlsplit(server.url).password) not in problem


async def test_a_missing_authority_is_named(server: TlsPostgres) -> None:
    problem = await _refusal(f"{server.url}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem")
    assert 'root certificate file "/nowhere/ca.pem" does not exist' in problem


async def test_a_server_of_another_name_is_refused(
    database_url: str, authorities: dict[str, Authority]
) -> None:
    """G12: the right authority, but a certificate for somebody else."""
    ours = authorities["ours"]
    with TlsPostgres(database_url, ours.certificate("DNS:somebody.else")) as stranger:
        problem = await _refusal(_verified(stranger.url, ours))
    assert "does not match host name" in problem
    assert "127.0.0.1" in problem


async def test_a_server_without_tls_is_refused(
    postgres_url: str, authorities: dict[str, Authority]
) -> None:
    """G12: nothing is sent in the clear instead."""
    problem = await _refusal(_verified(postgres_url, authorities["ours"]))
    assert "server does not support SSL" in problem


def test_the_command_line_says_it_in_one_line(
    tmp_path: Path, server: TlsPostgres, authorities: dict[str, Authority]
) -> None:
    """G11 G12."""
    file = tmp_path / "baton.yaml"
    url = _verified(server.url, authorities["another"])
    file.write_text(yaml.safe_dump({"cluster": "orders", "postgres": {"url": url}}))
    command = [sys.executable, "-m", "sidecar", "migrate", "--config", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "certificate verify failed" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert str(urlsplit(server.url).password) not in ended.stderr + ended.stdout


def test_a_sidecar_that_is_lied_to_is_not_ready_and_says_why(
    tmp_path: Path, server: TlsPostgres, authorities: dict[str, Authority]
) -> None:
    """G12: both connections refuse the wrong server; the process lives and goes on trying."""
    readiness = {"health": {"readiness": ["app", "singletons", "postgres"]}}
    setup = Setup(_verified(server.url, authorities["another"]), config=readiness)
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        replica = cluster[0]

        def told() -> set[str]:
            events = {"waiting_for_postgres", "lock_session_refused"}
            lines = [line for line in replica.log() if line["event"] in events]
            return {x["event"] for x in lines if "certificate verify failed" in x["problem"]}

        wait_until(lambda: "waiting_for_postgres" in told(), 20, replica.describe)

        def unready() -> bool:
            status, body = replica.http("/readyz")
            return status == 503 and "postgres" in body

        wait_until(unready, 20, replica.describe)
        assert replica.sidecar.running
        assert str(urlsplit(server.url).password) not in replica.sidecar.output


@asynccontextmanager
async def _cache(
    server: RedisServer, served: Certificate, trusted: Path
) -> AsyncIterator[RedisCache]:
    password = urlsplit(server.url).password
    async with tls_before(server.port, served.file, served.key) as port:
        url = f"rediss://:{password}@127.0.0.1:{port}/3?ssl_ca_certs={trusted}"
        cache = RedisCache(lambda: url, timeout_seconds=5.0)
        try:
            yield cache
        finally:
            await cache.close()


async def test_redis_with_the_right_certificate(
    redis_server: RedisServer, authorities: dict[str, Authority]
) -> None:
    ours = authorities["ours"]
    served = await asyncio.to_thread(ours.certificate, "IP:127.0.0.1,DNS:cache")
    async with _cache(redis_server, served, ours.file) as cache:
        await cache.ping()


@pytest.mark.parametrize(("trusted", "name"), [("another", "IP:127.0.0.1"), ("ours", "DNS:else")])
async def test_redis_of_another_authority_or_name_is_refused(
    redis_server: RedisServer, authorities: dict[str, Authority], trusted: str, name: str
) -> None:
    """G12: with words, and without the password."""
    served = await asyncio.to_thread(authorities["ours"].certificate, f"{name},DNS:{trusted}")
    async with _cache(redis_server, served, authorities[trusted].file) as cache:
        with pytest.raises(CacheError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            await cache.ping()
        assert str(urlsplit(redis_server.url).password) not in str(caught.value)
