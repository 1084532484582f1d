"""The fault proxy does to a real Postgres connection what its faults are named after."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.lab.processes import wait_until
from tests.lab.proxy import Direction, FaultProxy, Verdict


@pytest.fixture
def proxy(database_url: str) -> Iterator[FaultProxy]:
    with FaultProxy.before(database_url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: FaultProxy, database_url: str) -> Iterator[psycopg.Connection]:
    connection = psycopg.connect(proxy.url(database_url), autocommit=True)
    yield connection
    connection.close()


def _answered(connection: psycopg.Connection, within: float) -> bool:
    """Whether the query that was sent is answered in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        connection.pgconn.consume_input()
        if not connection.pgconn.is_busy():
            return True
        time.sleep(0.01)
    return False


def _rows(url: str, query: str) -> int:
    with psycopg.connect(url) as direct:
        row = direct.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_it_forwards(connection: psycopg.Connection, proxy: FaultProxy) -> None:
    value = connection.execute("SELECT repeat('x', 1000000)").fetchone()
    assert value is not None
    assert len(value[0]) == 1_000_000
    assert proxy.connections == 1


@pytest.mark.parametrize(
    "directions", [set(Direction), {Direction.TO_CLIENT}, {Direction.TO_SERVER}]
)
def test_silence_holds_back_and_heal_delivers(
    connection: psycopg.Connection,
    proxy: FaultProxy,
    database_url: str,
    directions: set[Direction],
) -> None:
    connection.execute("CREATE TABLE t (n int)")
    proxy.silence(frozenset(directions))
    connection.pgconn.send_query(b"INSERT INTO t VALUES (1)")
    assert not _answered(connection, within=0.3)
    if Direction.TO_SERVER in directions:
        assert _rows(database_url, "SELECT count(*) FROM t") == 0
    else:
        wait_until(lambda: _rows(database_url, "SELECT count(*) FROM t") == 1, 10)
    proxy.heal()
    assert _answered(connection, within=10)
    assert _rows(database_url, "SELECT count(*) FROM t") == 1


def test_lost_bytes_stay_lost(
    connection: psycopg.Connection, proxy: FaultProxy, database_url: str
) -> None:
    connection.execute("CREATE TABLE t (n int)")
    proxy.silence(lose=True)
    connection.pgconn.send_query(b"INSERT INTO t VALUES (1)")
    assert not _answered(connection, within=0.2)
    proxy.heal()
    assert not _answered(connection, within=0.3)
    assert _rows(database_url, "SELECT count(*) FROM t") == 0


def test_the_server_does_not_see_a_client_die_in_a_partition(
    proxy: FaultProxy, database_url: str
) -> None:
    connection = psycopg.connect(proxy.url(database_url))
    pid = connection.info.backend_pid
    proxy.silence()
    connection.close()
    time.sleep(0.3)
    query = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"  # noqa: S608
    assert _rows(database_url, query) == 1
    proxy.heal()
    wait_until(lambda: _rows(database_url, query) == 0, 10)


def test_a_new_connection_waits_out_a_partition(proxy: FaultProxy, database_url: str) -> None:
    proxy.silence()
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        psycopg.connect(proxy.url(database_url), connect_timeout=2)


def test_delay(connection: psycopg.Connection, proxy: FaultProxy) -> None:
    def seconds() -> float:
        begun = time.monotonic()
        connection.execute("SELECT 1")
        return time.monotonic() - begun

    proxy.delay(0.2)
    assert 0.4 <= min(seconds() for _ in range(3)) < 1.5  # there and back
    proxy.heal()
    assert min(seconds() for _ in range(5)) < 0.2


def test_refuse_and_heal(
    connection: psycopg.Connection, proxy: FaultProxy, database_url: str
) -> None:
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(proxy.url(database_url))
    connection.execute("SELECT 1")
    proxy.heal()
    psycopg.connect(proxy.url(database_url)).close()


@pytest.mark.parametrize("fault", [FaultProxy.cut, FaultProxy.hang_up])
def test_connections_end(
    connection: psycopg.Connection,
    proxy: FaultProxy,
    database_url: str,
    fault: Callable[[FaultProxy], int],
) -> None:
    assert fault(proxy) == 1
    with pytest.raises(psycopg.OperationalError, match="closed"):
        connection.execute("SELECT 1")
    psycopg.connect(proxy.url(database_url)).close()


def test_cut_resets_and_hang_up_does_not(proxy: FaultProxy) -> None:
    for fault in (proxy.cut, proxy.hang_up):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as raw:
            while not proxy.connections:
                time.sleep(0.01)
            fault()
            if fault == proxy.cut:
                with pytest.raises(ConnectionResetError):
                    raw.recv(1)
            else:
                assert raw.recv(1) == b""


@pytest.mark.parametrize("then", [Verdict.CUT, Verdict.MUTE])
def test_a_lost_answer_to_commit(proxy: FaultProxy, database_url: str, then: Verdict) -> None:
    """The server has committed, the client cannot know."""
    with psycopg.connect(database_url, autocommit=True) as direct:
        direct.execute("CREATE TABLE t (n int)")
    connection = psycopg.connect(proxy.url(database_url))
    connection.execute("INSERT INTO t VALUES (1)")
    dropped = proxy.drop_next_answer(b"COMMIT", then=then)
    if then is Verdict.CUT:
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    else:
        connection.pgconn.send_query(b"COMMIT")
        assert not _answered(connection, within=0.3)
    connection.close()
    assert dropped.wait(10)
    assert _rows(database_url, "SELECT count(*) FROM t") == 1
    with psycopg.connect(proxy.url(database_url)) as another:
        another.execute("INSERT INTO t VALUES (2)")
    assert _rows(database_url, "SELECT count(*) FROM t") == 2
