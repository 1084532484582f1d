"""More work than a leader can do, from its file and from its API (G11).

Each runs at a tenth of its size, or at its full size when marked `slow`; triggers over the TCP
address and the socket file, with and without the token. The term is kept, memory stays within
bounds, probes answer, and ticks are on time, except where the ticks themselves are too many.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from sidecar._proto.baton.v1 import schedules_pb2, schedules_pb2_grpc
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, boottime, wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.stalls import Stalls
from tests.security.witness import Witness, gap_seconds, megabytes

MEGABYTES_MAX = 150
PROBE_SECONDS_MAX = 1.0
LATE_SECONDS_MAX = 1.0
PUNCTUAL_AGAIN_SECONDS = 30
TOKEN = "the-token-of-this-test"
WITNESS = {"name": "witness", "every": "1s", "expected_interval": "1d"}
TARGET = {"name": "target", "cron": "@yearly"}
FULL = pytest.mark.slow


@pytest.fixture(params=["tcp", "unix"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Iterator[Cluster]:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    api = {"token_file": str(token_file)}
    with tempfile.TemporaryDirectory(prefix="baton-test-") as sockets:
        if request.param == "unix":
            api["address"] = f"unix://{sockets}/api.sock"
        # Four calls at once: a tenth of the load is more than can be run, on any machine.
        calls = {"max_concurrent": 4} if "small" in request.node.name else {}
        config = {"api": api, "app": calls, "schedules": [WITNESS, TARGET]}
        with Cluster(tmp_path / "lab", 1, Setup(database_url, config=config)) as cluster:
            cluster.wait_for_leader()
            cluster.wait_for("execute", 2, name="witness")
            yield cluster


# ── triggers ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("token", ["", TOKEN], ids=["no-token", "token"])
@pytest.mark.parametrize(
    ("rate", "seconds"), [(1_000, 2), pytest.param(2_000, 10, marks=FULL)], ids=["tenth", "full"]
)
async def test_triggers_do_not_delay_ticks(
    cluster: Cluster, rate: int, seconds: int, token: str
) -> None:
    """G11: those that would wait too long are refused, with a retry delay."""
    replica = cluster[0]
    terms, before, began = len(cluster.events("become")), megabytes(replica), boottime()
    with Stalls(replica.sidecar.pid) as stalls, Witness(replica) as witness:
        codes = await _trigger(str(replica.config()["api"]["address"]), rate, seconds, token)
        ticks = len(cluster.events("execute", name="witness"))
        await asyncio.to_thread(cluster.wait_for, "execute", ticks + 3, name="witness")
    if token:
        assert codes["OK"] > 100, codes
        assert codes.keys() <= {"OK", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}, codes
    else:
        assert codes.keys() <= {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}, codes
    _unharmed(cluster, witness, stalls, terms, before)
    assert gap_seconds(cluster, began) - 1 < _late_seconds_max(token) + stalls.seconds


def _late_seconds_max(token: str) -> float:
    """Some hundred triggers may wait before a tick: the time that the app takes for them."""
    return LATE_SECONDS_MAX + (2.0 if token else 0.0)


async def _trigger(address: str, rate: int, seconds: int, token: str) -> Counter[str]:
    codes: Counter[str] = Counter()
    metadata = (("baton-token", token),) if token else ()
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = schedules_pb2_grpc.SchedulesStub(channel)

        async def one() -> None:
            request = schedules_pb2.SchedulesTriggerRequest(name="target", payload=b"{}")
            try:
                await stub.Trigger(request, timeout=30, metadata=metadata)
                codes["OK"] += 1
            except grpc.aio.AioRpcError as error:
                codes[error.code().name] += 1

        async with asyncio.TaskGroup() as tasks:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for _ in range(rate // 20):
                    tasks.create_task(one())
                await asyncio.sleep(0.05)
    return codes


# ── schedules ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cluster", ["tcp"], indirect=True)
@pytest.mark.parametrize(
    ("count", "seconds"),
    [(1_500, 15), pytest.param(5_000, 600, marks=[FULL, pytest.mark.timeout(1200)])],
    ids=["small", "full"],
)
def test_thousands_of_schedules_each_second(cluster: Cluster, count: int, seconds: int) -> None:
    """G11: ticks are late in order; the backlog is told; without them all is punctual again."""
    replica = cluster[0]
    terms, before = len(cluster.events("become")), megabytes(replica)
    many = [WITNESS | {"name": f"s{n:04}"} for n in range(count)]
    with Stalls(replica.sidecar.pid) as stalls, Witness(replica) as witness:
        _declare(replica, [WITNESS, *many])
        wait_until(lambda: _backlog(replica) > 0, 120, replica.describe)
        time.sleep(seconds)
        _told(replica)
        _declare(replica, [WITNESS])
        since = time.monotonic()
        wait_until(lambda: _punctual(cluster), 120, replica.describe)
        took = time.monotonic() - since
    _unharmed(cluster, witness, stalls, terms, before)
    assert took < PUNCTUAL_AGAIN_SECONDS + stalls.seconds + stalls.starved_seconds
    wait_until(lambda: _backlog(replica) == 0, 30, replica.describe)


def _declare(replica: Replica, schedules: list[dict[str, Any]]) -> None:
    file = replica.config_file
    part = file.with_suffix(".part")
    part.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"schedules": schedules}))
    part.rename(file)


def _backlog(replica: Replica) -> int:
    (led,) = json.loads(replica.http("/health")[1])["backlog"]
    return int(led["runs"])


def _told(replica: Replica) -> None:
    wanted = "runs are due and not started, the oldest for"

    def warned() -> dict[str, Any] | None:
        report: dict[str, Any] = json.loads(replica.http("/health")[1])
        return report if any(wanted in each for each in report["warnings"]) else None

    report = wait_until(warned, 60, replica.describe)
    assert report["backlog"][0]["oldest_seconds"] >= 1
    metrics = replica.http("/metrics")[1]
    assert 'baton_run_backlog{group="default"} 0.0' not in metrics
    assert 'baton_run_backlog_seconds{group="default"} 0.0' not in metrics
    assert wanted in baton("status", "--config", str(replica.config_file))


def _punctual(cluster: Cluster) -> bool:
    """The last three ticks came a second after each other, and recently."""
    at = [event.at for event in cluster.events("execute", name="witness")][-4:]
    gaps = [late - early for early, late in itertools.pairwise(at)]
    return boottime() - at[-1] < 1.5 and all(abs(gap - 1) < 0.5 for gap in gaps)


def _unharmed(
    cluster: Cluster, witness: Witness, stalls: Stalls, terms: int, before: float
) -> None:
    kept = len(cluster.events("become")) == terms
    assert kept or stalls.cost_a_term, "it lost its term"
    assert witness.megabytes - before < MEGABYTES_MAX
    assert not witness.failed or stalls.cost_a_term, witness.failed[:3]
    assert witness.slowest < PROBE_SECONDS_MAX + stalls.seconds + stalls.starved_seconds
    broken = [line["exception"][-600:] for line in cluster[0].log() if "exception" in line]
    assert not broken, broken[:2]
