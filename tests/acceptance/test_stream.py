"""The work stream with real processes: apps that attach instead of serving AppCallback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.replica import Replica, Setup

TICKING = {
    "singletons": [{"name": "coordinator"}],
    "schedules": [{"name": "often", "every": "1s"}],
}


@pytest.fixture
def setup(database_url: str) -> Setup:
    return Setup(database_url, profile="fast", config=TICKING, stream=True)


def test_an_attached_app_leads_ticks_and_is_succeeded(setup: Setup, tmp_path: Path) -> None:
    """G1, G5: over the stream, an app leads, executes, and another takes over when it dies."""
    with Cluster(tmp_path, 2, setup) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_for("execute", 2, app=leader.name, timeout=30)
        taken = cluster.takeover(Replica.kill)
        cluster.wait_for("execute", 2, app=taken.replica.name, timeout=30)
        cluster.check()
