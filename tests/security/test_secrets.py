"""Planted secrets appear in nothing that a sidecar says, whatever goes wrong (G12).

Each is a word of its own, put where a user would put it; then everything that has one fails: wrong
passwords, a collector and a ping URL that refuse, a bad file on reload, calls with a wrong token.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
import yaml

from devtools.servers import free_port
from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup

PLANTED = {
    "postgres": "planted-postgres-7311",
    "redis": "planted-redis-7312",
    "api-token": "planted-api-token-7313",
    "app-token": "planted-app-token-7314",
    "ping-path": "planted-ping-path-7315",
    "ping-password": "planted-ping-password-7316",
    "otlp-header": "planted-otlp-header-7317",
    "rotated": "planted-rotated-7318",
    "reload": "planted-reload-7319",
    "wrong": "planted-wrong-7320",
}


@pytest.fixture
def texts(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What was said, by where; filled by the test, judged here."""
    said: dict[str, str] = {}
    yield said
    assert said
    for place, text in said.items():
        assert text, f"nothing was said in {place}"
        leaked = [name for name, secret in PLANTED.items() if secret in text]
        assert not leaked, f"{leaked} in {place}"


def _collect(replica: Replica, said: dict[str, str], suffix: str = "") -> None:
    said["log" + suffix] = replica.sidecar.output
    for path in ("/health", "/metrics", "/readyz"):
        said[path + suffix] = replica.http(path)[1]
    line = Path(f"/proc/{replica.sidecar.pid}/cmdline").read_bytes()
    said["process list" + suffix] = line.decode().replace("\0", " ")


def _refusing_url(scheme: str, user: str, password: str, path: str) -> str:
    return f"{scheme}://{user}:{password}@127.0.0.1:{free_port()}/{path}"


def test_where_everything_goes_well_but_the_outside(
    tmp_path: Path, database_url: str, texts: dict[str, str]
) -> None:
    """Leading, with a cache, a collector and ping URLs that refuse; tokens rotated and wrong."""
    api_token, app_token = tmp_path / "api-token", tmp_path / "app-token"
    api_token.write_text(PLANTED["api-token"])
    app_token.write_text(PLANTED["app-token"])
    user, secret = PLANTED["ping-password"], PLANTED["ping-path"]
    config: dict[str, Any] = {
        "api": {"token_file": str(api_token)},
        "app": {"token_file": str(app_token)},
        "redis": {"url": _refusing_url("redis", "u", PLANTED["redis"], "0")},
        "tracing": {"endpoint": f"http://127.0.0.1:{free_port()}"},
        "log": {"level": "debug"},
        "schedules": [
            {"name": "pinging", "every": "1s", "ping_url": _refusing_url("http", "u", user, secret)}
        ],
    }
    cluster = Cluster(tmp_path / "lab", 1, Setup(database_url, config=config))
    replica, header = cluster[0], f"authorization=Bearer {PLANTED['otlp-header']}"
    replica.sidecar.env["OTEL_EXPORTER_OTLP_HEADERS"] = header
    with cluster:
        replica.tell(execute={"pinging": "fail"})
        wait_until(lambda: "ping_failed" in replica.sidecar.output, 40, replica.describe)
        texts["errors"] = _refusals(replica, PLANTED["wrong"])
        api_token.write_text(PLANTED["rotated"])
        wait_until(lambda: _accepted(replica, PLANTED["rotated"]), 20, replica.describe)
        texts["errors after rotation"] = _refusals(replica, PLANTED["api-token"])
        _reload(replica, config)
        wait_until(lambda: "config_refused" in replica.sidecar.output, 20, replica.describe)
        _collect(replica, texts)


def _accepted(replica: Replica, token: str) -> bool:
    with grpc.insecure_channel(replica.api_address) as channel:
        service: Any = leadership_pb2_grpc.LeadershipStub
        try:
            request = leadership_pb2.LeadershipGetRequest(group="default")
            service(channel).Get(request, timeout=10, metadata=(("baton-token", token),))
        except grpc.RpcError:
            return False
    return True


def _refusals(replica: Replica, token: str) -> str:
    """What callers are told: with a wrong token, and in the middle of an argument."""
    said = []
    with grpc.insecure_channel(replica.api_address) as channel:
        calls: list[tuple[Any, str, Any]] = [
            (leadership_pb2_grpc.LeadershipStub, "Get", leadership_pb2.LeadershipGetRequest()),
            (state_pb2_grpc.StateStub, "Get", state_pb2.StateGetRequest(key="nothing")),
            (schedules_pb2_grpc.SchedulesStub, "Get", schedules_pb2.SchedulesGetRequest(name="x")),
        ]
        metadata = (("baton-token", token),)
        for stub, method, request in calls:
            with pytest.raises(grpc.RpcError) as caught:
                getattr(stub(channel), method)(request, timeout=10, metadata=metadata)
            error: Any = caught.value
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            said.append(f"{error.details()} {error.trailing_metadata()}")
    return "\n".join(said)


def _reload(replica: Replica, config: dict[str, Any]) -> None:
    """A file that is wrong, with secrets in the wrong places."""
    bad = f"postgresql://u:{PLANTED['reload']}@h:x/d"
    wrong = replica.config() | {"postgres": {"url": bad, "token": PLANTED["reload"]}}
    replica.config_file.write_text(yaml.safe_dump(wrong))
    replica.sidecar._started.send_signal(signal.SIGHUP)


def test_where_nothing_can_be_reached(
    tmp_path: Path, database_url: str, redis_url: str, texts: dict[str, str]
) -> None:
    """Wrong passwords: the servers themselves repeat what they were told, and we do not."""
    parts, cache = urlsplit(database_url), urlsplit(redis_url)
    host = f"{parts.hostname}:{parts.port}"
    wrong = parts._replace(netloc=f"{parts.username}:{PLANTED['postgres']}@{host}").geturl()
    wrong_cache = cache._replace(netloc=f":{PLANTED['redis']}@{cache.hostname}:{cache.port}")
    config = {"redis": {"url": wrong_cache.geturl()}, "log": {"level": "debug"}}
    setup = Setup(wrong, config=config)
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        replica = cluster[0]
        needed = ("waiting_for_postgres", "lock_session_refused", "password authentication failed")
        wait_until(
            lambda: all(word in replica.sidecar.output for word in needed[::2]),
            30,
            replica.describe,
        )
        _collect(replica, texts)


def test_a_crash_tells_nothing(tmp_path: Path, texts: dict[str, str]) -> None:
    """A taken port ends the start: the last words hold no URL's password."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        url = _refusing_url("postgresql", "u", PLANTED["postgres"], "d")
        setup = Setup(url, config={"http": {"address": f"127.0.0.1:{port}"}})
        with Cluster(tmp_path / "lab", 1, setup) as cluster:
            assert cluster[0].sidecar.wait(30) == 1
            texts["last words"] = cluster[0].sidecar.output
    assert "is in use by another process" in texts["last words"]
