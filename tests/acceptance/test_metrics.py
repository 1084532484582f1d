"""What Prometheus would scrape from real sidecars after a scripted day in their life.

Every metric that section 8 of the design names is there and says what happened; the dashboard and
the alerts ask for names and labels that a real scrape has; what callers make up grows nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from devtools.servers import free_port
from sidecar import metrics
from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    singletons_pb2,
    singletons_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.acceptance.client_lab import patiently
from tests.conftest import NewCluster
from tests.lab.cluster import Cluster
from tests.lab.processes import Child, wait_until
from tests.lab.replica import Replica

FILES = Path(__file__).parents[2] / "helm" / "baton" / "files"
_NAME = re.compile(r"\b(?:baton|singleton|process)_[a-z0-9_]+")
CONFIG = {
    "election": {"takeover_sla": "500ms"},
    "singletons": [
        {"name": "coordinator", "restart_after": "1s"},
        {
            "name": "picky",
            "state": {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        },
    ],
    "schedules": [
        {"name": "quick", "every": "1s"},
        {"name": "broken", "every": "1s", "expected_interval": "1h", "retry": {"attempts": 1}},
        {"name": "busy", "every": "1s", "expected_interval": "1h", "overlap": "skip"},
        {"name": "nightly", "cron": "0 2 * * *"},
    ],
}
BEHAVIOUR = {"coordinator": "ok", "broken": "fail:final", "busy": "sleep:2.5"}

Series = dict[str, dict[tuple[tuple[str, str], ...], float]]


def scraped(replica: Replica) -> Series:
    """Values by name and labels."""
    found: Series = {}
    status, text = replica.http("/metrics")
    assert status == 200, text
    for family in text_string_to_metric_families(text):
        found.setdefault(family.name, {})
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def _value(series: Series, name: str, **labels: str) -> float:
    return series.get(name, {}).get(tuple(sorted(labels.items())), 0.0)


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """A leader that did some work, lost its cache, and crashed; its successor has worked too."""
    cluster = new_cluster(2, config=CONFIG)
    for replica in cluster.replicas:
        replica.tell(execute=BEHAVIOUR)
    cluster.wait_for("execute", 2, name="quick", timeout=30)
    leader = cluster.wait_for_leader()
    (other,) = cluster.others(leader)
    assert other.redis_wire is not None
    other.redis_wire.refuse()
    other.redis_wire.cut()
    leader.kill()
    cluster.wait_for_leader()
    cluster.wait_for("execute", 4, app=other.name, name="quick", timeout=20)
    cluster.wait_for("execute", 2, app=other.name, name="busy", timeout=20)
    with _stub(other, state_pb2_grpc.StateStub) as state:
        for number in range(3):
            state.Put(state_pb2.StatePutRequest(key=f"k{number}", value=b"v"), timeout=5)
            state.Get(state_pb2.StateGetRequest(key=f"k{number}"), timeout=5)
    time.sleep(5.5)  # the switch reads every 5 s at the latest
    return cluster


@contextmanager
def _stub(replica: Replica, stub: Any) -> Iterator[Any]:
    with grpc.insecure_channel(replica.api_address) as channel:
        yield stub(channel)


def test_every_promised_metric_says_what_happened(cluster: Cluster) -> None:
    leader = cluster.wait_for_leader()
    _calls(leader, 1_000)
    assert "made-up" not in leader.http("/metrics")[1]
    # A scrape is rendered family by family: the first one during which no run and no term ended.
    series = patiently(lambda: _as_it_happened(cluster, leader))
    assert _value(series, "baton_cache_errors_total") > 0
    assert len(series["singleton_state_errors_total"]) == 5  # closed, and 0 before the first
    assert _value(series, "process_resident_memory_bytes") > 10e6
    assert _value(series, "baton_postgres_pool_connections") >= 1
    assert _value(series, "baton_event_loop_lag_seconds_count") >= 5
    assert len(series["baton_build_info"]) == 1
    assert _value(series, "baton_dependency_up", dependency="redis") == 0
    assert _value(series, "baton_dependency_up", dependency="postgres") == 1
    _assert_help(leader)
    asked = {name for text in _questions() for name in _NAME.findall(text)}
    assert len(asked) > 20
    assert asked <= series.keys()


def _as_it_happened(cluster: Cluster, leader: Replica) -> Series:
    """A scrape that tells of the work and the terms what the app knows of them."""
    series = scraped(leader)
    _assert_work(series)
    _assert_terms(cluster, leader, series)
    return series


def _assert_work(series: Series) -> None:
    now = time.time()
    for name in ("quick", "broken", "busy"):
        labels = {"singleton": name, "type": "cron"}
        executions = _value(series, "singleton_executions_total", **labels)
        assert executions >= 2, name
        assert _value(series, "singleton_duration_seconds_count", **labels) == executions
        errors = _value(series, "singleton_errors_total", **labels)
        assert errors == (executions if name == "broken" else 0)
        assert 0 <= now - _value(series, "singleton_last_execution", **labels) < 30
        assert now - 30 < _value(series, "baton_schedule_next_run_timestamp", schedule=name)
    assert _value(series, "singleton_duration_seconds_sum", singleton="busy", type="cron") > 2
    lives = {"singleton": "coordinator", "type": "singleton"}
    assert _value(series, "singleton_executions_total", **lives) >= 1
    assert 0 <= now - _value(series, "singleton_last_execution", **lives) < 30
    assert 0 <= now - _value(series, "baton_heartbeat_timestamp", **lives) < 45
    assert _value(series, "baton_schedule_next_run_timestamp", schedule="nightly") > now
    success = _value(series, "baton_schedule_last_success_timestamp", schedule="quick")
    assert 0 <= now - success < 30
    assert _value(series, "baton_schedule_last_success_timestamp", schedule="broken") == 0
    assert _value(series, "baton_ticks_total", outcome="succeeded", reason="") >= 3
    assert _value(series, "baton_ticks_total", outcome="failed", reason="") >= 2
    assert _value(series, "baton_ticks_total", outcome="skipped", reason="overlap") >= 1
    assert _value(series, "baton_tick_lateness_seconds_count") >= 5


def _assert_terms(cluster: Cluster, leader: Replica, series: Series) -> None:
    """As many as the app was told of: after the crash, or where the machine stood still."""
    told = cluster.events("become", app=leader.name, ignored=False)
    losses = cluster.events("lose", app=leader.name, reason="LEASE_LOST")
    lost = [event for event in losses if event.epoch]  # the greeting is about no term of its own
    assert _value(series, "baton_is_leader", group="default") == 1
    assert _value(series, "baton_epoch", group="default") == told[-1].epoch
    for method in ("OnBecomeLeader", "Execute"):
        assert _value(series, "baton_callback_seconds_count", method=method, code="OK") >= 1
    assert _value(series, "baton_terms_ended_total", reason="lease_lost") == len(lost)
    # A crash, counted from the last sign of the old leader: neither nothing nor for ever.
    assert _value(series, "baton_takeover_seconds_count") == len(told)
    assert 0.5 < _value(series, "baton_takeover_seconds_sum") < 10 * len(told)
    assert 1 <= _value(series, "baton_migration_sla_exceeded_total") <= len(told)


def _assert_help(replica: Replica) -> None:
    plain = replica.http("/metrics")[1]
    assert "# EOF" not in plain
    accept = "application/openmetrics-text; version=1.0.0"
    assert replica.http("/metrics", accept)[1].endswith("# EOF\n")
    documented = {line.split()[2] for line in plain.splitlines() if line.startswith("# HELP ")}
    typed = {line.split()[2] for line in plain.splitlines() if line.startswith("# TYPE ")}
    assert documented == typed


def _questions() -> list[str]:
    """What the dashboard and the alerts ask Prometheus for."""
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    return texts + _alerts()


@pytest.mark.slow
def test_a_real_prometheus_answers_every_question_of_the_dashboard(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each panel has something to draw after the scripted scenario."""
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is not installed: apt-get install prometheus")
    leader, port = cluster.wait_for_leader(), free_port()
    target = {
        "targets": [f"127.0.0.1:{leader.http_port}"],
        "labels": {"namespace": "shop", "pod": leader.name},
    }
    job = {"job_name": "orders", "scrape_interval": "1s", "static_configs": [target]}
    config = tmp_path / "prometheus.yaml"
    config.write_text(json.dumps({"scrape_configs": [job]}))
    command = [
        prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with Child(command, tmp_path / "prometheus.log"):
        time.sleep(12)
        empty = [text for text in _questions()[: -len(_alerts())] if not _asked(port, text)]
        for text in _alerts():
            _asked(port, text)
    assert empty == []


def _alerts() -> list[str]:
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def _asked(port: int, text: str) -> list[Any]:
    """The answer of Prometheus, once Grafana has filled in its variables."""
    filled = text.replace("$namespace", ".*").replace("$job", ".*")
    query = urllib.parse.urlencode({"query": filled.replace("$__rate_interval", "10s")})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=10) as response:
        answer = json.load(response)
    assert answer["status"] == "success", text
    found: list[Any] = answer["data"]["result"]
    return found


def _calls(replica: Replica, number: int) -> None:
    """Names that nobody knows, wherever a caller can put one."""
    with grpc.insecure_channel(replica.api_address) as channel:
        leadership: Any = leadership_pb2_grpc.LeadershipStub(channel)  # type: ignore[arg-type]
        schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
        singletons: Any = singletons_pb2_grpc.SingletonsStub(channel)  # type: ignore[arg-type]
        state: Any = state_pb2_grpc.StateStub(channel)  # type: ignore[arg-type]
        ways = (
            lambda name: schedules.Trigger.future(schedules_pb2.SchedulesTriggerRequest(name=name)),
            lambda name: leadership.Get.future(leadership_pb2.LeadershipGetRequest(group=name)),
            lambda name: singletons.Get.future(singletons_pb2.SingletonsGetRequest(name=name)),
            lambda name: state.Get.future(state_pb2.StateGetRequest(key=name)),
        )
        for start in range(0, number, 200):
            asked = [ways[n % len(ways)](f"made-up-{n}") for n in range(start, start + 200)]
            for future in asked:
                with suppress(grpc.RpcError):
                    future.result(timeout=30)


def _create(replica: Replica, number: int) -> None:
    """Schedules of a caller's own, each run once."""
    with grpc.insecure_channel(replica.api_address) as channel:
        schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
        for start in range(0, number, 10):  # more at once might be told to come again
            names = [f"own-{n}" for n in range(start, start + 10)]
            asked = [schedules.Create.future(_hourly(name)) for name in names]
            for future in asked:
                future.result(timeout=60)
            asked = [
                schedules.Trigger.future(schedules_pb2.SchedulesTriggerRequest(name=name))
                for name in names
            ]
            for future in asked:
                future.result(timeout=60)


def _hourly(name: str) -> schedules_pb2.SchedulesCreateRequest:
    schedule = schedules_pb2.Schedule(name=name)
    schedule.every.FromSeconds(3600)
    return schedules_pb2.SchedulesCreateRequest(schedule=schedule)


def _executions(replica: Replica) -> float:
    return sum(scraped(replica)["singleton_executions_total"].values())


def _count(series: Series) -> int:
    return sum(map(len, series.values()))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_names_do_not_grow_the_metrics(new_cluster: NewCluster) -> None:
    """G11: neither names that nobody knows nor schedules that a caller creates."""
    cluster = new_cluster(1, profile="fast", redis_url="")
    leader = cluster.wait_for_leader()
    before = patiently(lambda: scraped(leader), 10)
    _calls(leader, 100_000)
    assert _count(scraped(leader)) - _count(before) < 20  # codes and the like, no names
    _create(leader, metrics.ENTITY_NAMES_MAX + 200)
    wait_until(lambda: _executions(leader) >= metrics.ENTITY_NAMES_MAX + 200, 60, leader.describe)
    series = scraped(leader)
    shown = {dict(labels)["singleton"] for labels in series["singleton_executions_total"]}
    assert len(shown) == metrics.ENTITY_NAMES_MAX + 1
    assert metrics.OTHER in shown
    assert len({dict(labels)["singleton"] for labels in series["baton_stale"]}) <= len(shown)
    assert "made-up" not in leader.http("/metrics")[1]
