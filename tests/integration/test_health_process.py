"""The dead man's switch of real sidecars beside real apps."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup

CONFIG = {
    "schedules": [
        {"name": "quick", "every": "2s"},
        {"name": "nightly", "cron": "0 2 * * *", "timezone": "Europe/Berlin"},
        {"name": "off", "every": "1s", "enabled": False},
    ],
    "singletons": [{"name": "coordinator"}],
}


@pytest.fixture
def cluster(tmp_path: Path, database_url: str) -> Iterator[Cluster]:
    setup = Setup(database_url, profile="steady", config=CONFIG)
    with Cluster(tmp_path / "lab", 2, setup) as cluster:
        cluster.wait_for_leader()
        yield cluster
        cluster.check("become")


def _events(replica: Replica, name: str) -> list[dict[str, Any]]:
    return [line for line in replica.log() if line["event"] == name]


def _wait_ready(replica: Replica, ready: bool, seconds: float) -> str:
    """The body of /readyz once it says so."""

    def answer() -> str:
        status, body = replica.http("/readyz")
        return body if status == (200 if ready else 503) else ""

    return wait_until(answer, seconds, lambda: f"{replica.name}: {replica.http('/readyz')}")


def _report(replica: Replica) -> dict[str, Any]:
    return dict(json.loads(replica.http("/health")[1]))


def test_a_healthy_cluster_is_never_red(cluster: Cluster) -> None:
    """G10: not for a schedule that is faster than our reading, nor for one that is off."""
    for replica in cluster.replicas:
        _wait_ready(replica, ready=True, seconds=10)
    deadline = time.monotonic() + 12
    while time.monotonic() < deadline:
        answers = [replica.http("/readyz") for replica in cluster.replicas]
        assert [status for status, _ in answers] == [200, 200], answers
        time.sleep(0.25)
    assert not [line for replica in cluster.replicas for line in _events(replica, "entity_stale")]
    leader = cluster.wait_for_leader()
    wait_until(lambda: _report(leader)["status"] == "ok", 10, lambda: leader.http("/health")[1])
    report = _report(leader)
    shown = {each["name"]: each for each in report["schedules"]}
    assert shown["quick"]["last_success_at"] != "never"
    assert shown["nightly"]["last_run_at"] == "never"
    assert shown["nightly"]["next_run_at"] is not None
    assert shown["off"]["next_run_at"] is None
    assert report["singletons"][0]["last_heartbeat_at"] != "never"
    metrics = leader.http("/metrics")[1]
    assert 'baton_is_leader{group="default"} 1.0' in metrics
    assert 'baton_stale{singleton="quick",type="cron"} 0.0' in metrics


@pytest.mark.slow
def test_alone_and_wedged_it_stays_and_recovers(cluster: Cluster) -> None:
    """G10: nobody steps down for nobody; green again within 15 s."""
    leader = cluster.wait_for_leader()
    _wait_ready(leader, ready=True, seconds=10)
    (other,) = cluster.others(leader)
    other.kill()
    time.sleep(16)  # until it no longer counts as alive
    leader.tell(execute={"quick": "fail:final"})
    _wait_ready(leader, ready=False, seconds=4 + 5)
    time.sleep(3)
    assert cluster.leader() is leader
    leader.tell(execute={})
    _wait_ready(leader, ready=True, seconds=15)
