"""Jobs through real sidecars: submitted on one pod, seen on another, counted by the leader."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

from sidecar.cli import main
from tests.conftest import NewCluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica

CONFIG: dict[str, Any] = {"jobs": {"queues": [{"name": "mail", "cluster_max_running": 3}]}}


def baton(replica: Replica, *arguments: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([*arguments, "--address", replica.api_address])
    return printed.getvalue() if code == 0 else ""


def test_jobs_of_one_pod_are_those_of_all(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, config=CONFIG)
    leader = cluster.wait_for_leader()
    (other,) = cluster.others(leader)
    job_id = wait_until(lambda: baton(other, "job", "submit", "nobody", "--queue", "mail"), 60)
    assert job_id.strip() in baton(leader, "job", "list", "--name", "nobody")
    assert "mail" in baton(leader, "queue", "list")
    depth = 'baton_job_queue_depth{queue="mail",state="ready"} 1.0'
    wait_until(lambda: depth in leader.http("/metrics")[1], 60)
    assert "baton_job_queue_depth{" not in other.http("/metrics")[1]
    stored = '"cluster_max_running": 3'
    wait_until(lambda: stored in baton(other, "queue", "list", "-o", "json"), 60)
