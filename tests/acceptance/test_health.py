"""G10 with real sidecars, apps and servers: red in time and with the reason, green again, no false
alarm.

Most tests shorten `health.heartbeat` and `health.stale_after` from 30 s and 60 s to 2 s and 4 s;
the slow ones at the end keep the defaults. The bounds are those of the design: 5 s past the limit,
15 s to recover, 10 s for a dependency to show.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from devtools.servers import PostgresServer, RedisServer
from tests.conftest import NewCluster
from tests.lab.cluster import Cluster
from tests.lab.probes import Probes, wait_ready
from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Replica, Setup

SLACK_SECONDS = 5.0
RECOVERY_SECONDS = 15.0
DEPENDENCY_SECONDS = 10.0
PROBE_SECONDS = 1.0  # what a kubelet waits by default
QUICK = {"heartbeat": "2s", "stale_after": "4s"}


def _events(replica: Replica, name: str) -> list[dict[str, Any]]:
    return [line for line in replica.log() if line["event"] == name]


def _health(replica: Replica) -> dict[str, Any]:
    def answer() -> str:
        status, body = replica.http("/health")
        return body if status == 200 else ""

    report: dict[str, Any] = json.loads(wait_until(answer, 10, replica.describe))
    return report


def _terms(cluster: Cluster) -> list[tuple[str, int]]:
    return [(event.app, event.epoch) for event in cluster.events("become", ignored=False)]


def _wait_dependency(replica: Replica, name: str, status: str) -> None:
    wait_until(
        lambda: _health(replica)["dependencies"][name]["status"] == status,
        DEPENDENCY_SECONDS,
        lambda: f"{name} {status}: {_health(replica)['dependencies']}",
    )


def test_a_wedged_singleton_turns_its_leader_red_and_moves_on(new_cluster: NewCluster) -> None:
    """G10: it hangs without a word, although one is expected every 2 s; the other pod's works."""
    config = {
        "health": QUICK,
        "singletons": [{"name": "coordinator", "expected_interval": "2s"}],
    }
    cluster = new_cluster(2, profile="steady", config=config)
    leader = cluster.wait_for_leader()  # nothing said: its singleton hangs
    (other,) = cluster.others(leader)
    wait_ready(leader, ready=True, seconds=SLACK_SECONDS)
    other.tell(execute={"coordinator": "heartbeat:0.5"})
    body = wait_ready(leader, ready=False, seconds=4 + SLACK_SECONDS)
    assert "singleton coordinator: no success for" in body
    wait_until(lambda: cluster.leader() is other, 20, leader.describe)

    def fresh() -> bool:
        shown = _health(other)["singletons"]  # what it inherits is stale until the first sign
        return any(
            each["led_here"] and each["stale"] is None and each["last_success_at"] != "never"
            for each in shown
        )

    wait_until(fresh, RECOVERY_SECONDS, other.describe)
    for replica in cluster.replicas:
        wait_ready(replica, ready=True, seconds=RECOVERY_SECONDS)
    cluster.check("become")


def test_a_hanging_handler_does_not_get_its_leader_back(new_cluster: NewCluster) -> None:
    """G10: the drain outlasts the pause after a step-down; the group goes to the other pod."""
    config = {
        "health": QUICK,
        "election": {"drain": "8s"},
        "schedules": [{"name": "quick", "every": "1s", "overlap": "skip"}],
    }
    cluster = new_cluster(2, profile="steady", config=config)
    leader = cluster.wait_for_leader()
    wait_ready(leader, ready=True, seconds=10)
    (other,) = cluster.others(leader)
    before, since = len(_terms(cluster)), boottime()
    leader.tell(execute={"quick": "hang"})
    body = wait_ready(leader, ready=False, seconds=2 + SLACK_SECONDS)
    assert "schedule quick: no success" in body
    takeover = cluster.wait_for_takeover(since, leader, timeout=20)
    assert takeover.replica is other
    assert [app for app, _ in _terms(cluster)[before:]] == [other.name]
    for replica in cluster.replicas:
        wait_ready(replica, ready=True, seconds=RECOVERY_SECONDS)
    cluster.check("become")


def test_where_all_fail_leadership_does_not_go_round(new_cluster: NewCluster) -> None:
    """G10: one leader gives way; the next inherits the trouble, says so, and stays."""
    config = {
        "health": QUICK,
        "schedules": [{"name": "quick", "every": "1s", "retry": {"attempts": 1}}],
    }
    cluster = new_cluster(3, profile="steady", config=config)
    leader = cluster.wait_for_leader()
    wait_ready(leader, ready=True, seconds=10)
    since = boottime()
    for replica in cluster.replicas:
        replica.tell(execute={"quick": "fail:final"})
    # It may give way before anybody asks whether it is ready.
    wait_until(lambda: _events(leader, "entity_stale"), 2 + SLACK_SECONDS, leader.describe)
    takeover = cluster.wait_for_takeover(since, leader, timeout=20)
    wait_ready(takeover.replica, ready=False, seconds=SLACK_SECONDS)
    time.sleep(7)  # in which a carousel would have turned several times
    assert cluster.wait_for_leader() is takeover.replica
    assert len(_terms(cluster)) == 2
    recovered_at = boottime()
    for replica in cluster.replicas:
        replica.tell(execute={})
    with Probes(cluster.replicas) as probes:
        wait_ready(takeover.replica, ready=True, seconds=RECOVERY_SECONDS)
        time.sleep(3)
    assert not probes.red(since=recovered_at + RECOVERY_SECONDS)
    cluster.check("become")


def test_a_hung_app_is_named_and_comes_back(new_cluster: NewCluster) -> None:
    """G9 G10: a frozen app: its pod is red and leads no more; thawed, it is green again."""
    cluster = new_cluster(2, profile="steady", config={"health": QUICK})
    leader = cluster.wait_for_leader()
    (other,) = cluster.others(leader)
    wait_ready(leader, ready=True, seconds=10)
    leader.app.freeze()
    body = wait_ready(leader, ready=False, seconds=DEPENDENCY_SECONDS)
    assert body.startswith("app: health check: DEADLINE_EXCEEDED")
    wait_until(lambda: cluster.leader() is other, 15, leader.describe)
    assert other.http("/readyz")[0] == 200
    assert _health(leader)["dependencies"]["app"]["status"] == "down"
    leader.app.thaw()
    wait_ready(leader, ready=True, seconds=RECOVERY_SECONDS)
    assert cluster.wait_for_leader() is other


def test_heartbeats_that_cannot_be_written_turn_red(new_cluster: NewCluster) -> None:
    """G10: the lease lives on, the pool is silent: HeartbeatFailed is logged and counted."""
    config = {"health": QUICK, "singletons": [{"name": "coordinator"}]}
    cluster = new_cluster(1, profile="steady", config=config)
    leader = cluster.wait_for_leader()
    wait_ready(leader, ready=True, seconds=10)
    wait_until(lambda: _health(leader)["singletons"], 10)
    time.sleep(2)
    assert leader.pool_wire is not None
    leader.pool_wire.silence()
    body = wait_ready(leader, ready=False, seconds=4 + SLACK_SECONDS)
    assert "singleton coordinator: no heartbeat for" in body
    assert len(_terms(cluster)) == 1
    wait_until(lambda: _events(leader, "heartbeat_failed"), 10, leader.describe)
    metrics = leader.http("/metrics")[1]
    assert 'singleton_state_errors_total{reason="HeartbeatFailed"}' in metrics
    assert 'baton_stale{singleton="coordinator",type="singleton"} 1.0' in metrics
    leader.pool_wire.heal()
    wait_ready(leader, ready=True, seconds=RECOVERY_SECONDS)


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, RedisServer]]:
    with PostgresServer(settings={"fsync": "off"}) as postgres, RedisServer() as redis:
        yield postgres, redis


@pytest.mark.parametrize("fault", ["freeze", pytest.param("kill", marks=pytest.mark.slow)])
def test_dead_servers_show_and_probes_answer(
    tmp_path: Path, servers: tuple[PostgresServer, RedisServer], fault: str
) -> None:
    """G10: reported within 10 s; unready only where `health.readiness` wants that."""
    postgres, redis = servers
    health = QUICK | {"readiness": ["app", "singletons", "postgres", "redis"]}
    strict = Setup(postgres.url, redis.url, "fast", config={"health": health, "cluster": "strict"})
    config = {"health": QUICK, "singletons": [{"name": "coordinator"}]}
    plain = Setup(postgres.url, redis.url, "fast", config=config)
    with Cluster(tmp_path / "a", 1, plain) as a, Cluster(tmp_path / "b", 1, strict) as b:
        for cluster in (a, b):
            cluster.wait_for_leader()
            wait_ready(cluster[0], ready=True, seconds=10)
        with Probes([a[0], b[0]]) as probes:
            for server in servers:
                getattr(server, fault)()
            for name in ("postgres", "redis"):
                _wait_dependency(a[0], name, "down")
            wait_ready(b[0], ready=False, seconds=DEPENDENCY_SECONDS)
            for name in ("postgres: ", "redis: "):
                wait_until(lambda n=name: n in b[0].http("/readyz")[1], DEPENDENCY_SECONDS)  # type: ignore[misc]
            wait_until(lambda: a[0].http("/readyz")[0] == 200, RECOVERY_SECONDS)
            assert _health(a[0])["status"] == "degraded"
            back = "thaw" if fault == "freeze" else "start"
            for server in servers:
                getattr(server, back)()
            for replica in (a[0], b[0]):
                wait_ready(replica, ready=True, seconds=RECOVERY_SECONDS)
                _wait_dependency(replica, "postgres", "up")
                _wait_dependency(replica, "redis", "up")
        slowest = max(a.seconds(answer.at, answer.at + answer.seconds) for answer in probes.answers)
        assert slowest < PROBE_SECONDS
        assert all(answer.status for answer in probes.answers)
        a.check("become")


def test_slow_everything_is_no_cause_for_alarm(new_cluster: NewCluster) -> None:
    """G10: Postgres and Redis answer after 0.4 s: degraded at most, led all the time, green."""
    health = {"heartbeat": "2s", "stale_after": "8s"}
    config = {"health": health, "schedules": [{"name": "steady", "every": "3s"}]}
    cluster = new_cluster(1, profile="steady", config=config)
    leader = cluster.wait_for_leader()
    wait_ready(leader, ready=True, seconds=10)
    for wire in leader.wires:
        wire.delay(0.2)
    with Probes(cluster.replicas) as probes:
        time.sleep(9)
    assert not probes.red()
    assert len(_terms(cluster)) == 1
    report = wait_until(lambda: _slow(leader), DEPENDENCY_SECONDS, lambda: str(_health(leader)))
    assert report["dependencies"]["redis"]["status"] == "down"  # slower than redis.timeout
    assert report["status"] == "degraded"


def _slow(replica: Replica) -> dict[str, Any] | None:
    """The report, once Postgres was measured since it is slow."""
    report = _health(replica)
    return report if (report["dependencies"]["postgres"]["latency_ms"] or 0) >= 400 else None


def test_a_healthy_second_by_second_schedule_survives_changes_of_leader(
    new_cluster: NewCluster,
) -> None:
    """G10: never red over a clean hand-over; over a crash only if ticks really stood still."""
    cluster = new_cluster(2, config={"schedules": [{"name": "quick", "every": "1s"}]})
    for replica in cluster.replicas:
        wait_ready(replica, ready=True, seconds=20)
    first = cluster.wait_for_leader()
    cluster.wait_for("execute", 3, name="quick")
    (other,) = cluster.others(first)
    with Probes([other]) as probes:
        cluster.takeover(lambda leader: leader.sidecar.terminate())
        time.sleep(4)
        assert not probes.red()
        first.sidecar.wait()
        first.sidecar.start()
        wait_ready(first, ready=True, seconds=20)
    with Probes([first]) as probes:
        killed_at = boottime()
        cluster.takeover(lambda leader: leader.kill())
        cluster.wait_for("execute", 1, app=first.name, epoch=_terms(cluster)[-1][1])
        wait_ready(first, ready=True, seconds=RECOVERY_SECONDS)
        time.sleep(3)
    for answer in probes.red():
        assert "schedule quick: no success for" in answer.body
    assert not probes.red(since=killed_at + 10 + RECOVERY_SECONDS)
    cluster.check("become")


def test_health_tells_everything(new_cluster: NewCluster) -> None:
    """Dependencies with latency, leadership, singletons and schedules with their last and next."""
    config = {
        "singletons": [{"name": "coordinator", "expected_interval": "1m"}],
        "schedules": [
            {"name": "quick", "every": "1s"},
            {"name": "nightly", "cron": "0 2 * * *", "timezone": "Europe/Berlin"},
        ],
    }
    cluster = new_cluster(2, profile="steady", config=config)
    leader = cluster.wait_for_leader()
    (standby,) = cluster.others(leader)
    cluster.wait_for("execute", 2, name="quick")

    def whole(replica: Replica) -> Callable[[], dict[str, Any] | None]:
        def complete() -> dict[str, Any] | None:
            report = _health(replica)
            names = {each["name"]: each for each in report["schedules"]}
            known = names.get("quick", {}).get("last_success_at", "never") != "never"
            # A machine that stalls as all starts makes a first check late, and that is shown too.
            up = all(each["status"] == "up" for each in report["dependencies"].values())
            return report if known and up else None

        return complete

    report = wait_until(whole(leader), 15, leader.describe)
    assert {"app", "postgres", "redis", "loop"} == report["dependencies"].keys()
    for dependency in report["dependencies"].values():
        assert 0 <= dependency["latency_ms"] < 5000
    (group,) = report["leadership"]
    epoch = cluster.events("become")[-1].epoch
    assert (group["group"], group["is_leader"], group["epoch"]) == ("default", True, epoch)
    shown = {each["name"]: each for each in report["schedules"] + report["singletons"]}
    assert shown["nightly"]["last_run_at"] == "never"
    assert all(shown[name]["next_run_at"] for name in ("nightly", "quick"))
    assert shown["coordinator"]["last_heartbeat_at"] != "never"
    assert shown["coordinator"]["expected_interval_seconds"] == 60
    assert all(each["stale"] is None and each["led_here"] for each in shown.values())
    (elsewhere,) = wait_until(
        lambda: [g for g in _health(standby)["leadership"] if g["leader"] == report["runner_id"]],
        DEPENDENCY_SECONDS,
        standby.describe,
    )
    assert elsewhere["is_leader"] is False
    assert json.loads(_readyz_json(leader)) == {"ok": True, "reasons": []}


def _readyz_json(replica: Replica) -> str:
    return replica.http("/readyz", accept="application/json")[1]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_defaults_hold_too(tmp_path: Path, database_url: str) -> None:
    """G10: 60 s without a heartbeat, or twice 30 s without a success: red by 65 s, not before."""
    beats = Setup(
        database_url, config={"cluster": "beats", "singletons": [{"name": "coordinator"}]}
    )
    schedule = {"name": "half-minute", "every": "30s", "retry": {"attempts": 1}}
    fails = Setup(database_url, config={"cluster": "fails", "schedules": [schedule]})
    with Cluster(tmp_path / "a", 1, beats) as a, Cluster(tmp_path / "b", 1, fails) as b:
        b[0].tell(execute={"half-minute": "fail:final"})
        a.wait_for_leader()
        b.wait_for_leader()
        wait_until(lambda: _health(b[0])["schedules"], 15)
        created_at = boottime()
        written_at = wait_until(lambda: _last_heartbeat(a[0]), 15)
        assert a[0].pool_wire is not None
        a[0].pool_wire.silence()
        with Probes([a[0]]) as beating, Probes([b[0]]) as failing:
            wait_until(lambda: beating.red() and failing.red(), 75)
        first_beat, first_fail = beating.red()[0], failing.red()[0]
        assert "no heartbeat" in first_beat.body
        assert 59.5 < first_beat.at - written_at < 65
        assert "no success" in first_fail.body
        assert 50 < first_fail.at - created_at < 65
        a[0].pool_wire.heal()
        b[0].tell(execute={})
        wait_ready(a[0], ready=True, seconds=RECOVERY_SECONDS)
        b.wait_for("execute", 1, timeout=40, name="half-minute", outcome="")
        wait_ready(b[0], ready=True, seconds=30 + RECOVERY_SECONDS)


def _last_heartbeat(replica: Replica) -> float:
    """When the singleton's was written, as `boottime` counts; 0 if never."""
    (about,) = _health(replica)["singletons"]
    if about["last_heartbeat_at"] == "never":
        return 0.0
    return boottime() - time.time() + datetime.fromisoformat(about["last_heartbeat_at"]).timestamp()
