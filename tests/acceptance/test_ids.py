"""Ids of eight runners: none twice and each runner's rising, through kills, freezes, clock steps.

The clock that steps, by libfaketime, is the database's: from it come leases and the time in an id.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from sidecar._proto.baton.v1 import ids_pb2, ids_pb2_grpc
from sidecar.adapters.postgres.migrate import migrate
from tests.lab import faketime
from tests.lab.cluster import Cluster
from tests.lab.faketime import SteppedPostgres, WallClock
from tests.lab.processes import Child, wait_until
from tests.lab.replica import Replica, Setup

pytestmark = pytest.mark.skipif(
    faketime.LIBRARY is None, reason="libfaketime is not installed: apt-get install faketime"
)
RUNNERS = 8
STEPS = (-7200, 0, 3600, -60, 300, -3600)  # seconds off


@pytest.fixture
def clock(tmp_path_factory: pytest.TempPathFactory) -> WallClock:
    directory = tmp_path_factory.mktemp("clock")
    for each in (directory, *directory.parents[:2]):
        each.chmod(0o755)  # the server may be another user
    return WallClock(directory / "clock")


@pytest.fixture
def postgres(clock: WallClock) -> Iterator[SteppedPostgres]:
    with SteppedPostgres(clock) as server:
        yield server


class Runner:
    """A process that makes ids; each of its lives writes a file of its own."""

    def __init__(self, name: str, url: str, directory: Path) -> None:
        self._name, self._url, self._directory = name, url, directory
        self.files: list[Path] = []
        self.child = self._next_life()

    def _next_life(self) -> Child:
        life = f"{self._name}-{len(self.files)}"
        self.files.append(self._directory / f"{life}.ids")
        module = "tests.acceptance.ids_worker"
        command = [sys.executable, "-m", module, self._url, life, str(self.files[-1])]
        return Child(command, self._directory / f"{life}.log").start()

    def stop(self) -> None:
        self.child.kill()

    def die_and_return(self) -> None:
        self.child.kill()
        self.child = self._next_life()


def _given(file: Path) -> list[int]:
    """What one life was given; a last number that a kill cut off was not."""
    content = file.read_bytes() if file.exists() else b""
    return array("Q", content[: len(content) // 8 * 8]).tolist()


def _assert_unique(lives: list[list[int]]) -> int:
    for given in lives:
        assert all(one < next_one for one, next_one in pairwise(given))
    everything = [number for given in lives for number in given]
    assert len(set(everything)) == len(everything)
    return len(everything)


def test_no_id_comes_twice_whatever_dies_sleeps_or_steps(
    tmp_path: Path, clock: WallClock, postgres: SteppedPostgres
) -> None:
    """Leases of 2 s; frozen runners sleep through theirs, and others take their numbers."""
    asyncio.run(migrate(postgres.url, "baton"))
    chance = random.Random(6)
    with ExitStack() as running:
        runners = []
        for number in range(RUNNERS):
            runners.append(Runner(f"r{number}", postgres.url, tmp_path))
            running.callback(runners[-1].stop)
        wait_until(
            lambda: all(_given(runner.files[-1]) for runner in runners),
            60,
            lambda: "\n".join(runner.child.output[-300:] for runner in runners),
        )
        for step in STEPS[:3]:
            killed, frozen = chance.sample(runners, 2)
            frozen.child.freeze()
            clock.step(step)
            killed.die_and_return()
            time.sleep(2.7)  # the frozen one's lease and the grace are over
            frozen.child.thaw()
        time.sleep(1)
    lives = [_given(file) for runner in runners for file in runner.files]
    assert _assert_unique(lives) > 50_000
    with psycopg.connect(postgres.url) as connection:
        row = connection.execute("SELECT count(*) FROM baton.machine").fetchone()
    assert row is not None
    assert row[0] < RUNNERS + 3  # numbers were handed on, not only used up


class Caller(threading.Thread):
    """Asks one sidecar for ids until it has enough; failed calls are repeated."""

    def __init__(self, replica: Replica, wanted: int) -> None:
        super().__init__(name=f"caller.{replica.name}")
        self._replica, self._wanted = replica, wanted
        self.lives: dict[int, list[int]] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self.lives.values()))

    def run(self) -> None:
        with grpc.insecure_channel(self._replica.api_address) as channel:
            stub: Any = ids_pb2_grpc.IdsStub(channel)  # type: ignore[arg-type]  # not async
            while self.count < self._wanted:
                life = self._replica.sidecar.pid
                try:
                    answer = stub.Generate(ids_pb2.IdsGenerateRequest(count=10_000), timeout=5)
                except grpc.RpcError:
                    time.sleep(0.1)
                    continue
                if self._replica.sidecar.pid == life:  # else nobody knows whose they are
                    self.lives.setdefault(life, []).extend(answer.ids)
                time.sleep(0.15)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_million_ids_from_eight_sidecars(
    tmp_path: Path, clock: WallClock, postgres: SteppedPostgres
) -> None:
    """Real sidecars, which need no app for this, beside a clock that steps for them too."""
    cluster = Cluster(tmp_path / "lab", RUNNERS, Setup(postgres.url))
    for replica in cluster.replicas:
        replica.sidecar.env = clock.environment
    chance = random.Random(8)
    with cluster:
        for replica in cluster.replicas:
            replica.app.kill()
        callers = [Caller(replica, 250_000) for replica in cluster.replicas]
        for caller in callers:
            caller.start()
        wait_until(lambda: all(caller.count for caller in callers), 90)
        steps = iter(STEPS * 100)
        while any(caller.is_alive() for caller in callers):
            killed, frozen = chance.sample(cluster.replicas, 2)
            clock.step(next(steps))
            frozen.sidecar.freeze()
            killed.sidecar.kill()
            killed.sidecar.start()
            time.sleep(2)
            frozen.sidecar.thaw()
            time.sleep(2)
    lives = [given for caller in callers for given in caller.lives.values()]
    assert len(lives) > RUNNERS
    assert _assert_unique(lives) >= 2_000_000
