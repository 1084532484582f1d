"""Files that are no files, volumes that hang, and configurations that do not fit the process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
import yaml

from sidecar._proto.baton.v1 import leadership_pb2, leadership_pb2_grpc
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.volumes import hanging

TICKING = {"name": "each", "every": "1s"}
TOKEN = "token-of-the-tests"


@contextmanager
def _pod(directory: Path, url: str, **config: Any) -> Iterator[tuple[Cluster, Replica]]:
    """One pod whose config file is a link into `directory`/volume."""
    setup = Setup(url, profile="steady", config={"schedules": [TICKING], **config})
    cluster = Cluster(directory / "lab", 1, setup)
    volume = directory / "volume"
    volume.mkdir()
    cluster[0].config_file.symlink_to(volume / "baton.yaml")
    with cluster:
        cluster.wait_for_leader()
        yield cluster, cluster[0]


def _events(replica: Replica, name: str) -> list[dict[str, Any]]:
    return [line for line in replica.log() if line["event"] == name]


def _health(replica: Replica) -> dict[str, Any]:
    return dict(json.loads(replica.http("/health")[1]))


def _expect_alive(cluster: Cluster, replica: Replica) -> None:
    """Ticks go on, probes answer, and the term is the same."""
    seen = len(cluster.events("execute"))
    wait_until(lambda: len(cluster.events("execute")) > seen + 2, 20, replica.describe)
    assert replica.http("/livez")[0] == 200
    assert len(cluster.events("become")) == 1


def _schedules(url: str) -> list[str]:
    """The schedules that are not retired."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT name FROM baton.schedule WHERE retired_at IS NULL")
        return [row[0] for row in rows]


def test_a_config_file_that_is_no_regular_file(tmp_path: Path, database_url: str) -> None:
    """G11: a pipe, a device, a directory, a socket: refused once, and the last good one stays."""
    with _pod(tmp_path, database_url) as (cluster, replica):
        file = tmp_path / "volume" / "baton.yaml"
        good = file.read_text()

        def swap(make: Any, kind: str) -> None:
            new = tmp_path / "volume" / "new"
            make(new)
            file.unlink()
            new.rename(file)
            wait_until(
                lambda: any(
                    f"is a {kind}, not a regular file" in str(line["problems"])
                    for line in _events(replica, "config_refused")
                ),
                20,
                replica.describe,
            )
            _expect_alive(cluster, replica)
            assert any(f"is a {kind}" in text for text in _health(replica)["warnings"])
            file.rmdir() if file.is_dir() else file.unlink()
            file.write_text(good)
            wait_until(lambda: not _health(replica)["warnings"], 20, replica.describe)

        swap(os.mkfifo, "pipe")
        swap(lambda path: path.symlink_to("/dev/zero"), "device")
        swap(Path.mkdir, "directory")
        swap(_make_socket, "socket")
        refusals = [str(line["problems"]) for line in _events(replica, "config_refused")]
        for kind in ("pipe", "device", "directory", "socket"):
            assert sum(f"is a {kind}," in text for text in refusals) == 1, refusals
        assert _schedules(database_url) == ["each"]


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))


def test_a_volume_that_hangs(tmp_path: Path, database_url: str) -> None:
    """With it hang neither ticks, probes, calls nor the end of the process; it is logged once."""
    token = tmp_path / "volume" / "token"
    tmp_path.joinpath("volume").mkdir()
    token.write_text(TOKEN)
    tokens = {"api": {"token_file": str(token)}}
    setup = Setup(database_url, profile="steady", config={"schedules": [TICKING], **tokens})
    cluster = Cluster(tmp_path / "lab", 1, setup)
    replica = cluster[0]
    replica.config_file.symlink_to(tmp_path / "volume" / "baton.yaml")
    with cluster:
        wait_until(lambda: cluster.events("execute"), 30, replica.describe)
        with hanging(tmp_path / "volume"):
            wait_until(lambda: _events(replica, "config_refused"), 30, replica.describe)
            wait_until(lambda: _events(replica, "secret_unreadable"), 30, replica.describe)
            _expect_alive(cluster, replica)
            _call(replica)
            warnings = _health(replica)["warnings"]
            assert len(warnings) == 2, warnings
            assert all("no answer within 5 s" in text for text in warnings)
        wait_until(lambda: not _health(replica)["warnings"], 30, replica.describe)
        assert len(_events(replica, "config_refused")) == 1
        (told,) = _events(replica, "secret_unreadable")
        assert told["setting"] == "api.token_file"
        assert len(_events(replica, "secret_readable_again")) == 1
        with hanging(tmp_path / "volume"):
            wait_until(lambda: _health(replica)["warnings"], 30, replica.describe)
            replica.sidecar.terminate()
            assert replica.sidecar.wait(30) == 0


def _call(replica: Replica) -> None:
    """A call that needs the token."""
    with grpc.insecure_channel(replica.api_address) as channel:
        service: Any = leadership_pb2_grpc.LeadershipStub
        request = leadership_pb2.LeadershipGetRequest(group="default")
        metadata = (("baton-token", TOKEN),)
        answer = service(channel).Get(request, timeout=10, metadata=metadata)
        assert answer.leader.is_leader


def test_the_file_of_another_cluster(tmp_path: Path, database_url: str) -> None:
    """Nothing of it is applied: before, it retired every schedule of this one."""
    with _pod(tmp_path, database_url) as (cluster, replica):
        good = replica.config_file.read_text()
        evil = replica.config() | {"cluster": "evil", "schedules": []}
        replica.config_file.write_text(yaml.safe_dump(evil))
        wait_until(lambda: _events(replica, "config_refused"), 20, replica.describe)
        (told,) = _events(replica, "config_refused")
        assert told["level"] == "warning"
        assert 'the file is for "evil", this sidecar serves "lab"' in str(told["problems"])
        report = _health(replica)
        assert "evil" in report["warnings"][0]
        assert report["status"] == "degraded"
        assert replica.http("/readyz")[0] == 200
        _expect_alive(cluster, replica)
        assert _schedules(database_url) == ["each"]
        replica.config_file.write_text(good)
        wait_until(lambda: not _health(replica)["warnings"], 20, replica.describe)


def test_keys_that_need_a_restart(tmp_path: Path, database_url: str) -> None:
    """They are named, never their values; schedules of the same file apply."""
    with _pod(tmp_path, database_url) as (_, replica):
        config = replica.config()
        config["election"]["drain"] = "17s"
        config["redis"] = {"url": "redis://u:hunter2@127.0.0.1:1"}
        config["singletons"] = [{"name": "one"}]
        config["schedules"] = [TICKING, {"name": "new", "every": "1h"}]
        replica.config_file.write_text(yaml.safe_dump(config))
        wait_until(lambda: _events(replica, "config_needs_restart"), 20, replica.describe)
        (told,) = _events(replica, "config_needs_restart")
        assert told["level"] == "warning"
        assert told["keys"] == ["redis.url", "election.drain", "singletons"]
        (warning,) = _health(replica)["warnings"]
        assert warning == "restart to apply the changed keys redis.url, election.drain, singletons"
        wait_until(lambda: "new" in _schedules(database_url), 20, replica.describe)
        assert "hunter2" not in replica.sidecar.output
        replica.config_file.write_text(yaml.safe_dump(replica.config()))
        wait_until(lambda: not _health(replica)["warnings"], 20, replica.describe)


@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_check_answers_at_once(tmp_path: Path, kind: str) -> None:
    """G11: nobody ever writes to this pipe, and the device never ends."""
    path = tmp_path / "config"
    {
        "pipe": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "directory": os.mkdir,
    }[kind](path)
    command = [sys.executable, "-m", "sidecar", "check", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stdout == f"{path}:0: (file): is a {kind}, not a regular file; a readable file\n"
