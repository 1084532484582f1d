"""A list of hosts in a URL: a host that is silent keeps nobody from the one that is writable.

psycopg tries them one after the other within one limit, which the first silent host used up.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from devtools.servers import PostgresServer, free_port
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.listener import PostgresHints, channel_name
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.session import Connection, connect, discard, fetch
from sidecar.model.election_types import Timers
from sidecar.model.errors import StoreUnavailable
from tests.lab import footprint
from tests.lab.standby import HotStandby

TIMERS = Timers(ping=0.6, lease=1.9, server_lease=2.5, poll=0.5, grace=2.0)


@pytest.fixture
def silent() -> Iterator[list[int]]:
    """The ports of three hosts that are frozen: the kernel accepts, and nobody answers."""
    with ExitStack() as open_:
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        for listener in listeners:
            open_.enter_context(listener)
        yield [listener.getsockname()[1] for listener in listeners]


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"fsync": "off"}) as server:
        yield server


def _port(url: str) -> int:
    return urlsplit(url).port or 0


def _list(url: str, ports: list[int], options: str = "") -> str:
    """`url` with a host for each port."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return parts._replace(netloc=f"{user}@{hosts}", query=options).geturl()


@pytest.fixture
async def connection(
    request: pytest.FixtureRequest, database_url: str, silent: list[int]
) -> AsyncIterator[Connection]:
    """To the server of `database_url`, at place `request.param` behind silent ones."""
    ports = list(silent)
    ports.insert(request.param, _port(database_url))
    opened = await connect(lambda: _list(database_url, ports), purpose="test")
    yield opened
    await discard(opened)


@pytest.mark.parametrize("connection", [0, 1, 2, 3], indirect=True)
async def test_the_writable_host_is_reached_wherever_it_is_in_the_list(
    connection: Connection, silent: list[int]
) -> None:
    """G8: neither one silent host before it nor three keep it from being reached."""
    assert await fetch(connection, "SELECT 1 AS one", None, 10.0) == [{"one": 1}]
    async with asyncio.timeout(10):
        while footprint.connections(os.getpid(), set(silent)):  # noqa: ASYNC110 - the kernel's
            await asyncio.sleep(0.05)  # the attempts that lost are closed


async def test_everybody_who_connects_gets_past_a_silent_host(
    database_url: str, silent: list[int]
) -> None:
    """Migrations, the lock session, the pool and LISTEN."""
    url = _list(database_url, [silent[0], _port(database_url), silent[1]])
    await migrate(url, "baton")
    lock = LeaderLock(
        lambda: url, schema="baton", channel="c", runner_id="a-1", host="a", timers=TIMERS
    )
    database = Database(lambda: url, schema="baton", size=2, statement_seconds=3.0)
    hints = PostgresHints(database, lambda: url, channel=channel_name("baton", "orders"))
    topic = hints.subscribe("topic")
    listening = asyncio.create_task(hints.run())
    try:
        await lock.open()
        assert await database.fetch_one("health/select_one") == {"one": 1}
        assert await topic.wait(30)  # all are woken when LISTEN is there
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await lock.close()
        await database.close()


async def test_hosts_that_are_all_silent_are_each_named(
    database_url: str, silent: list[int]
) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await connect(lambda: _list(database_url, silent), purpose="test", seconds=1.5)
    problem = str(caught.value)
    assert all(f"no connection in time (127.0.0.1 port {port})" in problem for port in silent)
    assert str(urlsplit(database_url).password) not in problem
    async with asyncio.timeout(10):
        while footprint.connections(os.getpid(), set(silent)):  # noqa: ASYNC110 - the kernel's
            await asyncio.sleep(0.05)


async def test_hosts_that_refuse_cost_no_waiting(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.adapters.postgres.hosts.STAGGER_SECONDS", 3600)
    ports = [free_port(), free_port(), _port(database_url)]
    opened = await connect(lambda: _list(database_url, ports), purpose="test")
    assert opened.info.port == ports[-1]
    await discard(opened)


@pytest.mark.parametrize("options", ["", "target_session_attrs=read-write"])
async def test_a_standby_in_the_list_is_passed_over(
    primary: PostgresServer, silent: list[int], options: str
) -> None:
    """Also where the URL forgot to say so: no standby is of use."""
    with HotStandby(primary) as standby:
        url = _list(primary.url, [silent[0], standby.port, silent[1], primary.port], options)
        opened = await connect(lambda: url, purpose="test")
        assert opened.info.port == primary.port
        await discard(opened)
        only = _list(primary.url, [standby.port, standby.port], options)
        with pytest.raises(StoreUnavailable, match="read-only"):
            await connect(lambda: only, purpose="test")


async def test_the_addresses_of_one_name_are_tried_side_by_side(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A headless service: one name, one address per pod, the first of which is frozen."""
    port = _port(database_url)
    loop = asyncio.get_running_loop()

    async def getaddrinfo(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        assert host == "pg.test"
        kinds = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kinds, (address, port)) for address in ("127.0.0.77", "127.0.0.1")]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    with socket.create_server(("127.0.0.77", port)):
        url = database_url.replace("@127.0.0.1:", "@pg.test:")
        opened = await connect(lambda: url, purpose="test")
    assert (opened.info.host, opened.info.hostaddr) == ("pg.test", "127.0.0.1")
    await discard(opened)
