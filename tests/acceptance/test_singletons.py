"""One life of a singleton at a time: its state through rollouts and freezes, seen from any pod."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from sidecar._proto.baton.v1 import (
    runs_pb2,
    runs_pb2_grpc,
    singletons_pb2,
    singletons_pb2_grpc,
)
from tests.acceptance.client_lab import ClientCluster, patiently
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Replica, Setup

SCHEMA = {
    "type": "object",
    "properties": {
        "lives": {"type": "integer"},
        "label": {"type": "string", "default": "new"},
    },
    "required": ["lives", "label"],
}


def _keeper(**state: Any) -> dict[str, Any]:
    return {"singletons": [{"name": "keeper", "restart_after": "200ms", "state": state}]}


def _cluster(directory: Path, url: str, *configs: dict[str, Any]) -> ClientCluster:
    setup = Setup(url, profile="steady")
    cluster = ClientCluster(directory, len(configs), setup, "tests.acceptance.keeping_app")
    for replica, config in zip(cluster.replicas, configs, strict=True):
        replica.setup = replace(setup, config=config)
    return cluster


def _singleton(replica: Replica) -> singletons_pb2.Singleton:
    with grpc.insecure_channel(replica.api_address) as channel:
        stub: Any = singletons_pb2_grpc.SingletonsStub(channel)  # type: ignore[arg-type]
        request = singletons_pb2.SingletonsGetRequest(name="keeper")
        found: singletons_pb2.Singleton = stub.Get(request, timeout=5).singleton
        return found


def _cancel(replica: Replica, run_id: int) -> None:
    with grpc.insecure_channel(replica.api_address) as channel:
        stub: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
        stub.Cancel(runs_pb2.RunsCancelRequest(run_id=run_id), timeout=5)


def _stored(url: str) -> dict[int, Any]:
    """The state by its state.version."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT state_version, value FROM baton.state WHERE key = 'singleton-state:keeper'"
        ).fetchall()
    return {version: json.loads(bytes(value)) for version, value in rows}


def test_versions_of_a_state_never_harm_each_other_in_a_rollout(
    tmp_path: Path, database_url: str
) -> None:
    """G7: a new version starts from the decoded old; an old pod never overwrites the newer."""
    new = _keeper(version=2, schema=SCHEMA, initial={"lives": 100, "label": "first"})
    cluster = _cluster(tmp_path / "lab", database_url, _keeper(), new)
    ledger = cluster.ledger
    old_pod, new_pod = cluster.replicas
    with cluster:
        for replica in cluster.replicas:
            patiently(partial(_singleton, replica), 40)
        # Whoever leads first, version 1 shall begin.
        if cluster.leading(timeout=40) is new_pod:
            ledger.wait("put", version=2)
            cluster.hand_to(old_pod)
        one = ledger.wait("put", version=1)[-1]["state"]
        assert one["legacy"]
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("DELETE FROM baton.state WHERE state_version = 2")
        twos = len(ledger.lines("start", version=2))
        cluster.hand_to(new_pod)
        two = ledger.wait("start", twos + 1, version=2)[twos]["state"]
        # Pods that have both just resigned go in either order: each may have lived twice.
        one = ledger.lines("put", version=1)[-1]["state"]
        assert two == {"lives": one["lives"], "label": "new"}, "fitted: new field, none unknown"
        ledger.wait("put", twos + 1, version=2)
        ones = len(ledger.lines("start", version=1))
        cluster.hand_to(old_pod)
        back = ledger.wait("start", ones + 1, version=1)[ones]["state"]
        assert back == one, "a rolled back pod goes on where it was"
        ledger.wait("put", ones + 1, version=1)
        acknowledged = {v: ledger.lines("put", version=v)[-1]["state"] for v in (1, 2)}
        assert _stored(database_url) == acknowledged
        assert acknowledged[2]["lives"] > one["lives"]
        assert acknowledged[2]["label"] == "new"
        assert acknowledged[1]["lives"] == one["lives"] + 1
        _undecodable_is_set_aside(cluster, database_url, old_pod, new_pod)


def _undecodable_is_set_aside(
    cluster: ClientCluster, url: str, old_pod: Replica, new_pod: Replica
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE baton.state SET value = 'harmed' WHERE state_version = 2")
        starts = len(cluster.ledger.lines("start", version=2))
        old_pod.kill()
        started = cluster.ledger.wait("start", starts + 1, version=2)[-1]
        assert started["state"] == {"lives": 100, "label": "first"}, "the initial state"
        kept = connection.execute(
            "SELECT key, value, problem FROM baton.state_set_aside WHERE state_version = 2"
        ).fetchall()
    assert [(key, bytes(value)) for key, value, _ in kept] == [
        ("singleton-state:keeper", b"harmed")
    ]
    _, metrics = new_pod.http("/metrics")
    assert 'singleton_state_errors_total{reason="SchemaDecodeFailed"} 1.0' in metrics
    told = [line for line in new_pod.log() if line["event"] == "state_not_decodable"]
    assert told[0]["kept_in"] == "state_set_aside"


def test_a_stale_leader_commits_nothing_and_every_pod_tells_who_leads(
    tmp_path: Path, database_url: str
) -> None:
    """G3: the life on the frozen pod is refused when it wakes up; its successor's state stands."""
    cluster = _cluster(tmp_path / "lab", database_url, _keeper(), _keeper(), _keeper())
    with cluster:
        cluster.ledger.wait("put", timeout=40)
        old = cluster.leading()
        _seen_from_all(cluster, old, lives=0)
        old.freeze()
        second = cluster.ledger.wait("put", 2)[1]
        old.thaw()
        refused = cluster.ledger.wait("refused")[0]
        assert refused["reason"] == "Fenced"
        assert refused["epoch"] < second["epoch"]
        assert refused["why"] in {"TRUST_EXPIRED", "CALL_CANCELLED", "LEASE_LOST"}
        assert 'baton_fenced_writes_total{write="state"} 1.0' in old.http("/metrics")[1]
        assert _stored(database_url) == {1: second["state"]}
        _seen_from_all(cluster, cluster.leading(but=old), lives=1)
        with pytest.raises(grpc.RpcError) as caught:
            _cancel(old, second["run"])
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "resign its group" in str(caught.value.details())
        cluster.leading(but=old).kill()
        third = cluster.ledger.wait("start", 3)[2]
        assert third["state"] == second["state"], "exactly what was acknowledged last"
        assert third["lives"] == 2, "lives that nobody ended are remembered"


def _seen_from_all(cluster: ClientCluster, leader: Replica, *, lives: int) -> None:
    for replica in cluster.replicas:

        def right(replica: Replica = replica) -> bool:
            return patiently(lambda: _singleton(replica)).leader.startswith(f"{leader.name}-")

        wait_until(right, 10, f"{replica.name} knows the leader")
        shown = _singleton(replica)
        assert shown.metadata.HasField("last_run_at")
        assert shown.metadata.run_count == lives
        page = baton("status", "--address", replica.api_address)
        row = next(line for line in page.splitlines() if line.startswith("keeper"))
        assert leader.name in row
        assert "never" not in row.split("ago")[0], "it runs: LAST RUN is known"


def test_a_wrong_schema_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """G11: `baton check` names the line, the key and the problem."""
    file = tmp_path / "baton.yaml"
    file.write_text(
        "cluster: c\npostgres: {url: postgresql://h/d}\nsingletons:\n"
        "  - name: keeper\n    state:\n      schema: {type: nonsense}\n"
    )
    command = [sys.executable, "-m", "sidecar", "check", "--config", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "baton.yaml:6: singletons[0].state.schema: is not a JSON Schema" in ended.stdout


def test_a_removed_group_is_tidied_once_its_last_pod_is_gone(
    tmp_path: Path, database_url: str
) -> None:
    """Not while a pod of the older file lives: its life goes on, its history stays."""
    with_group: dict[str, Any] = {"singletons": [{"name": "keeper", "group": "side"}]}
    cluster = Cluster(tmp_path / "lab", 2, Setup(database_url))
    old_pod, new_pod = cluster.replicas
    old_pod.setup = replace(old_pod.setup, groups=("default", "side"), config=with_group)
    for replica in cluster.replicas:
        command = list(replica.sidecar.command)
        command[command.index("sidecar")] = "tests.acceptance.tidying_often"
        replica.sidecar.command = command
    with cluster:
        cluster.wait_for("execute", app=old_pod.name)
        cluster.wait_for("watch", app=new_pod.name)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(_OLD_RUN)
            time.sleep(4)
            assert _left(connection) == [("keeper", "running"), ("old", "ended")]
            old_pod.kill()
            time.sleep(4)
            assert _left(connection) == [("keeper", "running"), ("old", "ended")], "may come back"
            connection.execute(
                "UPDATE baton.runner SET seen_at = seen_at - interval '1 hour'"
                " WHERE runner_id LIKE %s",
                (f"{old_pod.name}-%",),
            )
            wait_until(lambda: _left(connection) == [("keeper", "ended")], 30, new_pod.describe)


_OLD_RUN = """
INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, outcome, due_at, finished_at)
SELECT cluster_id, id, 'singleton', 'old', at, 'ended', 'succeeded', at, at
FROM baton.leader_group, (SELECT now() - interval '8 days' AS at) AS long_ago WHERE name = 'side'
"""


def _left(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, state FROM baton.run ORDER BY name").fetchall()
