"""`election.rebalance`: who came late gets its share, and a crash costs what it must."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from sidecar.model.spreading import SETTLED_SECONDS
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Setup

GROUPS = tuple("abcdef")


def _led(cluster: Cluster) -> list[int]:
    """How many groups each replica leads, the fewest first."""
    leaders = Counter(leader.name for g in GROUPS if (leader := cluster.leader(g)))
    return sorted(leaders[replica.name] for replica in cluster.replicas)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_late_comers_get_their_share_and_a_crash_costs_no_further_hand_over(
    tmp_path: Path, database_url: str
) -> None:
    """A pod that crashed is listed for a while: nobody hands anything to it."""
    config = {"election": {"rebalance": True}}
    setup = Setup(database_url, profile="steady", groups=GROUPS, config=config)
    cluster = Cluster(tmp_path / "lab", 3, setup)
    try:
        cluster.start(sidecars=False)
        cluster[0].sidecar.start()
        wait_until(lambda: _led(cluster) == [0, 0, 6], 30, "the first to lead everything")
        for late in cluster.replicas[1:]:
            late.sidecar.start()
        wait_until(lambda: _led(cluster) == [2, 2, 2], 4 * SETTLED_SECONDS, "an even spread")
        terms = len(cluster.events("become"))
        cluster[2].kill()
        # Two that are free at once may go to one of them: who comes first is a matter of chance.
        wait_until(lambda: _led(cluster) in ([0, 3, 3], [0, 2, 4]), 20, "the others to take over")
        time.sleep(20)  # the registry lists the dead for 15 s
        assert len(cluster.events("become")) == terms + 2
        cluster.check()
    finally:
        cluster.stop()
