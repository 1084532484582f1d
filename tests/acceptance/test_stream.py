"""The work stream with real processes: apps that attach instead of serving AppCallback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Cluster
from tests.lab.processes import baton, boottime, wait_until
from tests.lab.proxy import Direction
from tests.lab.replica import Replica, Setup

WORK: dict[str, Any] = {
    "singletons": [{"name": "coordinator"}],
    "schedules": [{"name": "often", "every": "1s"}],
}


def a_setup(database_url: str, **more: Any) -> Setup:
    return Setup(database_url, profile="fast", config=WORK, stream=True, **more)


@pytest.fixture
def pair(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "lab", 2, a_setup(database_url)) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_for("execute", 2, app=leader.name)
        yield cluster


def health(replica: Replica) -> dict[str, Any]:
    _, body = replica.http("/health")
    try:
        found: dict[str, Any] = json.loads(body)
    except ValueError:
        return {}
    return found


@pytest.mark.parametrize(
    "fault",
    [Replica.kill, Replica.freeze, lambda r: r.app.kill(), lambda r: r.sidecar.kill()],
    ids=["pod-killed", "pod-frozen", "app-killed", "sidecar-killed"],
)
def test_another_pod_takes_over(pair: Cluster, fault: Callable[[Replica], None]) -> None:
    """G1, G5, G8: over the stream as over the callback, whatever dies."""
    taken = pair.takeover(fault)
    pair.wait_for("execute", 3, app=taken.replica.name)
    pair.check()


def test_an_app_that_does_not_answer_pings_does_not_lead(pair: Cluster) -> None:
    """G9: an app whose loop hangs steps down, and leads again when it answers."""
    leader = pair.wait_for_leader()
    taken = pair.takeover(lambda replica: replica.tell(health="not_serving"))
    assert taken.replica is not leader
    leader.tell(health="serving")
    wait_until(lambda: leader.http("/readyz")[0] == 200, 30, leader.describe)
    pair.check()


@pytest.mark.parametrize("direction", list(Direction), ids=lambda direction: direction.value)
def test_a_stream_that_is_silent_in_one_direction_ends_the_term(
    pair: Cluster, direction: Direction
) -> None:
    """G1, G9: the app's trust runs out, and another pod leads."""
    leader = pair.wait_for_leader()
    wire = leader.stream_wire
    assert wire is not None
    pair.takeover(lambda _: wire.silence(frozenset({direction})))
    wire.heal()
    wait_until(lambda: leader.http("/readyz")[0] == 200, 30, leader.describe)
    pair.check()


def test_a_broken_stream_is_attached_again(pair: Cluster) -> None:
    """G1, G5: nothing runs in the old term afterwards; the work continues."""
    leader = pair.wait_for_leader()
    assert leader.stream_wire is not None
    since = boottime()
    leader.stream_wire.cut()
    pair.wait_for("stream_broken", app=leader.name)
    wait_until(lambda: [e for e in pair.events("execute") if e.at > since + 1], 30, leader.describe)
    wait_until(lambda: leader.http("/readyz")[0] == 200, 30, leader.describe)
    pair.check()


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_a_sibling_process_takes_the_place_of_the_primary(
    database_url: str, tmp_path: Path, fault: str
) -> None:
    """G1, G9: one leader in the pod; the other process leads under a new term when it is gone."""
    with Cluster(tmp_path / "lab", 1, a_setup(database_url)) as cluster:
        pod = cluster[0]
        cluster.wait_for("execute", 2, app="r0")
        with pod.another_app("sibling"):
            wait_until(lambda: len(health(pod)["processes"]) == 2, 30, pod.describe)
            primary = [each["primary"] for each in health(pod)["processes"]]
            assert primary == [True, False]
            assert not cluster.events("become", app="sibling")
            getattr(pod.app, fault)()
            cluster.wait_for("become", app="sibling")
            cluster.wait_for("execute", 3, app="sibling")
            cluster.check()


def test_a_schedule_without_a_handler_is_seen_before_it_is_due(
    database_url: str, tmp_path: Path
) -> None:
    """G11: in /health, in the log and in `baton status`; nothing is delivered, nothing fails."""
    config = {"schedules": [*WORK["schedules"], {"name": "lonely", "every": "1h"}]}
    setup = Setup(database_url, profile="fast", config=config, stream=True, unhandled=("lonely",))
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        pod = cluster[0]
        cluster.wait_for("execute", 1, app="r0")
        problem = "has no handler for schedule 'lonely'"
        wait_until(lambda: problem in "".join(health(pod).get("warnings", [])), 10, pod.describe)
        assert any(problem in line.get("problem", "") for line in pod.log())
        assert problem in baton("status", "--address", pod.api_address)
