"""G10 while Postgres cannot be reached: who steps down, and who is red."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from tests.conftest import NewCluster
from tests.lab.cluster import Cluster
from tests.lab.probes import wait_ready
from tests.lab.processes import wait_until
from tests.lab.replica import Replica

AWAY_SECONDS = 7.0  # more than the 5 s in which a schedule of a second must succeed


def _events(replica: Replica, name: str) -> list[dict[str, Any]]:
    return [line for line in replica.log() if line["event"] == name]


def _wait_until_acquainted(cluster: Cluster) -> None:
    """All pods have seen that the others campaign: each beat reads the others' rows."""

    def campaigning(since: str) -> int:
        with psycopg.connect(cluster[0].setup.database_url) as connection:
            query = (
                "SELECT count(*), now()::text FROM baton.runner WHERE campaigning AND seen_at > "
            )
            row = connection.execute(f"{query} '{since}'".encode()).fetchone()
        assert row is not None
        times.append(row[1])
        return int(row[0])

    times: list[str] = ["-infinity"]
    pods = len(cluster.replicas)
    wait_until(lambda: campaigning("-infinity") == pods, 30, "all pods in the registry")
    all_there = times[-1]
    wait_until(lambda: campaigning(all_there) == pods, 30, "all pods to beat once more")


def test_a_pooler_that_is_away_for_all_moves_no_leadership(new_cluster: NewCluster) -> None:
    """G10: schedules of a second miss their time, which no other pod could have kept. Their next
    runs take a while, so what is read when the pooler is back shows no success yet."""
    cluster = new_cluster(
        2, profile="steady", config={"schedules": [{"name": "quick", "every": "1s"}]}
    )
    leader = cluster.wait_for_leader()
    cluster.wait_for("execute", 3, name="quick")
    _wait_until_acquainted(cluster)
    pools = [replica.pool_wire for replica in cluster.replicas if replica.pool_wire]
    for wire in pools:
        wire.refuse()
        wire.cut()
    for replica in cluster.replicas:
        replica.tell(execute={"quick": "sleep:3"})
    time.sleep(AWAY_SECONDS)
    for wire in pools:
        wire.heal()
    done = len(cluster.events("execute", name="quick"))
    cluster.wait_for("execute", done + 8, name="quick")
    wait_ready(leader, ready=True, seconds=15)
    assert _events(leader, "stepping_down_stale") == []
    assert [event.app for event in cluster.events("become", ignored=False)] == [leader.name]


def test_a_leader_whose_own_pool_is_cut_off_hands_over_and_stays_red(
    new_cluster: NewCluster,
) -> None:
    """G10: its lock session lives, so only the dead man's switch ends its term; the pod is red,
    with the reason, until Postgres answers it, and the other works on."""
    health = {"heartbeat": "2s", "stale_after": "6s"}
    cluster = new_cluster(
        2,
        profile="steady",
        config={"health": health, "schedules": [{"name": "quick", "every": "1s"}]},
    )
    leader = cluster.wait_for_leader()
    (other,) = cluster.others(leader)
    cluster.wait_for("execute", 3, name="quick")
    _wait_until_acquainted(cluster)
    assert leader.pool_wire is not None
    leader.pool_wire.silence()
    wait_until(lambda: cluster.leader() is other, 40, leader.describe)
    cluster.wait_for("execute", 3, name="quick", app=other.name)
    status, body = leader.http("/readyz")
    assert status == 503
    assert "schedule quick: no heartbeat for" in body
    assert "group default was handed over: Postgres: " in body
    wait_ready(other, ready=True, seconds=15)
    assert leader.http("/readyz")[0] == 503
    leader.pool_wire.heal()
    wait_ready(leader, ready=True, seconds=15)
    assert cluster.leader() is other
