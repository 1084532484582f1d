"""Every form of Redis URL reaches its server: socket file, TLS, Sentinel, Cluster."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis as redis_sync

from devtools.servers import RedisServer
from devtools.servers.server import free_port
from sidecar.adapters.redis_cache import RedisCache
from sidecar.model.state_types import Address, Cached, CacheError, Record

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def works(url: str) -> None:
    """Puts and gets go through, one by one and many at once."""
    entries = [Cached(Address(f"k{i}"), Record(f"k{i}", i + 1, b"v", NOW), NOW) for i in range(20)]
    cache = RedisCache(lambda: url, timeout_seconds=2.0)
    try:
        await cache.ping()
        await cache.put("space", entries, [30.0] * len(entries))
        assert await cache.get("space", [entry.address for entry in entries]) == entries
        assert await cache.get("space", [entries[3].address]) == [entries[3]]
        assert await cache.get("space", [Address("none")]) == [None]
    finally:
        await cache.close()


def password_of(server: RedisServer) -> str:
    return urlsplit(server.url).password or ""


async def test_one_server(redis_url: str) -> None:
    await works(redis_url)


async def test_a_wrong_password_is_a_cache_error(redis_server: RedisServer) -> None:
    url = f"redis://:wrong@127.0.0.1:{redis_server.port}/0"
    cache = RedisCache(lambda: url, timeout_seconds=2.0)
    with pytest.raises(CacheError) as caught:
        await cache.ping()
    assert "wrong@" not in str(caught.value)
    await cache.close()


async def test_a_changed_password_is_used_after_a_failure(redis_server: RedisServer) -> None:
    urls = [f"redis://:old@127.0.0.1:{redis_server.port}/0"]
    cache = RedisCache(lambda: urls[-1], timeout_seconds=2.0)
    with pytest.raises(CacheError):
        await cache.ping()
    urls.append(redis_server.url)
    with pytest.raises(CacheError):
        await cache.ping()
    await cache.ping()
    await cache.close()


async def test_a_socket_file(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with RedisServer(settings={"unixsocket": str(path)}) as server:
        await works(f"unix://:{password_of(server)}@{path}?db=1")


async def found_cluster(server: RedisServer) -> None:
    """Make it a cluster of one."""
    with redis_sync.Redis.from_url(server.url) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    for _ in range(100):
        with redis_sync.Redis.from_url(server.url) as client:
            if "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")):
                break
            await asyncio.sleep(0.1)


async def test_a_cluster() -> None:
    with RedisServer(settings={"cluster-enabled": "yes"}) as server:
        await found_cluster(server)
        address = f"127.0.0.1:{server.port}"
        await works(f"redis+cluster://:{password_of(server)}@{address},{address}")


async def test_a_cluster_that_comes_back_under_new_addresses_is_found_by_its_url() -> None:
    """As behind the name of a service, when all its nodes are restarted."""
    settings = {"cluster-enabled": "yes", "user": "both on >shared ~* +@all"}
    with RedisServer(settings=settings) as old, RedisServer(settings=settings) as new:
        hosts = f"127.0.0.1:{old.port},127.0.0.1:{new.port}"
        cache = RedisCache(lambda: f"redis+cluster://both:shared@{hosts}", timeout_seconds=2.0)
        await found_cluster(old)
        new.stop()
        await cache.ping()
        old.stop()
        new.start()
        await found_cluster(new)
        for _ in range(4):  # it finds a lost connection, then nobody left of all that it knew
            with suppress(CacheError):
                await cache.ping()
        await cache.ping()
        await cache.close()


@pytest.fixture
def sentinel(redis_server: RedisServer, tmp_path: Path) -> Iterator[int]:
    """A Sentinel that watches the session's server."""
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor main 127.0.0.1 {redis_server.port} 1\n"
        f"sentinel auth-pass main {password_of(redis_server)}\n"
    )
    process = subprocess.Popen(
        [redis_server.binary, config, "--sentinel"], stdout=subprocess.DEVNULL
    )
    yield port
    process.kill()
    process.wait()


async def test_sentinel(sentinel: int, redis_server: RedisServer) -> None:
    for _ in range(100):
        try:
            with redis_sync.Redis(port=sentinel, socket_timeout=1) as client:
                client.ping()
            break
        except redis_sync.ConnectionError:
            await asyncio.sleep(0.1)
    password = password_of(redis_server)
    await works(f"redis+sentinel://:{password}@127.0.0.1:1,127.0.0.1:{sentinel}/main/2")


@asynccontextmanager
async def tls_before(port: int, certificate: Path, key: Path) -> AsyncIterator[int]:
    """A TLS terminator: this Valkey was built without TLS."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, server_writer), pump(server_reader, writer))

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.sleep(0.1)  # the pumps see the end


async def test_tls(tmp_path: Path, redis_server: RedisServer) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    command += ["-keyout", str(key), "-out", str(certificate)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    async with tls_before(redis_server.port, certificate, key) as port:
        url = f"rediss://:{password_of(redis_server)}@127.0.0.1:{port}/3"
        await works(f"{url}?ssl_ca_certs={certificate}")
        untrusted = RedisCache(lambda: url, timeout_seconds=2.0)
        with pytest.raises(CacheError, match="CERTIFICATE_VERIFY_FAILED"):
            await untrusted.ping()
        await untrusted.close()
