"""Redis may do what it likes, and answers of Postgres may get lost: state stays right (G7).

Real sidecars under load. Stale reads are counted: none for STRONG, none on the pod that wrote, and
elsewhere none older than the time to live.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
import redis

from devtools.servers import RedisServer
from sidecar._proto.baton.v1 import state_pb2 as pb
from sidecar._proto.baton.v1 import state_pb2_grpc
from tests.acceptance.ledger import Ledger
from tests.lab.cluster import Cluster
from tests.lab.processes import Child, wait_until
from tests.lab.replica import Replica, Setup

TTL_SECONDS = 3.0
FAULT_SECONDS = 1.2
KEYS_PER_POD = 3
CALL_SECONDS = 10.0
CACHED, STRONG = pb.CONSISTENCY_CACHED, pb.CONSISTENCY_STRONG


@dataclass
class Load:
    """Two pods that write keys of their own and read all of them; every answer is judged."""

    pods: list[Any]  # stubs of State
    # By key: (when acknowledged, number), in order.
    written: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    stale: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    over: bool = False

    def known(self, key: str, before: float) -> int:
        """The newest number acknowledged before that moment."""
        return next((n for at, n in reversed(self.written.get(key, [])) if at <= before), 0)

    async def write(self, pod: int, key: str) -> None:
        for number in itertools.count(1):
            if self.over:
                return
            await self._timed(self.pods[pod].Put, pb.StatePutRequest(key=key, value=b"%d" % number))
            self.written.setdefault(key, []).append((time.monotonic(), number))
            await self.read("read-your-writes", pod, key, CACHED, age=0.0)

    async def keep_reading(self, kind: str, pod: int, keys: list[str], age: float) -> None:
        consistency = STRONG if kind == "strong" else CACHED
        for key in itertools.cycle(keys):
            if self.over:
                return
            await self.read(kind, pod, key, consistency, age)
            await asyncio.sleep(0.005)

    async def read(self, kind: str, pod: int, key: str, consistency: Any, age: float) -> None:
        """`age`: how old an answer may be."""
        asked = time.monotonic()
        expected = self.known(key, asked - age)
        request = pb.StateGetRequest(key=key, consistency=consistency)
        try:
            answer = await self._timed(self.pods[pod].Get, request)
            found = int(answer.entry.value)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            found = 0
        self.reads[kind] += 1
        self.stale[kind] += found < expected

    async def _timed(self, method: Any, request: Any) -> Any:
        began = time.monotonic()
        answer = await method(request, timeout=CALL_SECONDS)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return answer


@dataclass
class Faults:
    """Each is done to the server, goes on for a while and is taken back."""

    server: RedisServer
    chance: random.Random

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.server.url, socket_timeout=2)

    async def kill(self) -> None:
        self.server.kill()
        await asyncio.sleep(FAULT_SECONDS)
        await asyncio.to_thread(self.server.start)

    async def freeze(self) -> None:
        self.server.freeze()
        await asyncio.sleep(FAULT_SECONDS)
        self.server.thaw()

    async def flush(self) -> None:
        await self._again_and_again(lambda client: client.flushall())

    async def out_of_memory(self) -> None:
        await self._configured(maxmemory="1", policy="noeviction")

    async def eviction(self) -> None:
        with self.client() as client:
            used = int(client.info("memory")["used_memory"])
        await self._configured(maxmemory=str(used), policy="allkeys-random")

    async def read_only(self) -> None:
        with self.client() as client:
            client.replicaof("127.0.0.1", "1")
            await asyncio.sleep(FAULT_SECONDS)
            client.replicaof("NO", "ONE")

    async def corrupt(self) -> None:
        def harm(client: redis.Redis) -> None:
            for name in client.keys("baton:*"):
                blob = bytearray(cast(bytes, client.get(name)) or b"?")
                blob[self.chance.randrange(len(blob))] ^= 0xFF
                client.set(name, bytes(blob))

        await self._again_and_again(harm)

    async def other_types(self) -> None:
        def harm(client: redis.Redis) -> None:
            for name in client.keys("baton:*"):
                both: Any = client.pipeline()
                both.delete(name).rpush(name, b"a list").execute()

        await self._again_and_again(harm)

    async def late_writers(self) -> None:
        """Copies of the past come back, without a time to live."""
        with self.client() as client:
            old = {name: client.get(name) for name in client.keys("baton:*")}
        await self._again_and_again(
            lambda client: [client.set(name, blob) for name, blob in old.items() if blob]
        )

    async def _again_and_again(self, harm: Callable[[redis.Redis], object]) -> None:
        ends = time.monotonic() + FAULT_SECONDS
        with self.client() as client:
            while time.monotonic() < ends:
                await asyncio.to_thread(harm, client)
                await asyncio.sleep(0.02)

    async def _configured(self, *, maxmemory: str, policy: str) -> None:
        with self.client() as client:
            client.config_set("maxmemory-policy", policy)
            client.config_set("maxmemory", maxmemory)
            await asyncio.sleep(FAULT_SECONDS)
            client.config_set("maxmemory", "0")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


async def test_stale_reads_are_counted_while_redis_misbehaves(
    tmp_path: Path, database_url: str, server: RedisServer
) -> None:
    """G7: no wrong answer, no failed call, whatever Redis does; the cache comes back by itself."""
    config = {"redis": {"ttl": f"{TTL_SECONDS:g}s"}, "breaker": {"open": "1s"}}
    setup = Setup(database_url, redis_url=server.url, config=config)
    faults = Faults(server, random.Random(11))
    with Cluster(tmp_path / "lab", 2, setup) as cluster:
        for replica in cluster.replicas:
            _wait_joined(replica)
        channels = [grpc.aio.insecure_channel(r.api_address) for r in cluster.replicas]
        load = Load([state_pb2_grpc.StateStub(channel) for channel in channels])
        own = {pod: [f"k{pod}-{n}" for n in range(KEYS_PER_POD)] for pod in (0, 1)}
        try:
            async with asyncio.TaskGroup() as tasks:
                for pod, other in ((0, 1), (1, 0)):
                    for key in own[pod]:
                        tasks.create_task(load.write(pod, key))
                    # What another pod wrote: at worst as old as the time to live.
                    cached = load.keep_reading("cached", pod, own[other], TTL_SECONDS + 0.1)
                    tasks.create_task(cached)
                    tasks.create_task(load.keep_reading("strong", pod, own[other], 0.0))
                for fault in (
                    faults.flush, faults.kill, faults.freeze, faults.out_of_memory, faults.eviction,
                    faults.read_only, faults.corrupt, faults.late_writers, faults.other_types,
                ):  # fmt: skip
                    await fault()
                    await asyncio.sleep(0.3)
                load.over = True
            await asyncio.sleep(TTL_SECONDS)
            await _converged(load, own, server)
        finally:
            for channel in channels:
                await channel.close(None)
    print("reads", dict(load.reads), "slowest", round(load.slowest, 3))
    assert min(load.reads[kind] for kind in ("strong", "cached", "read-your-writes")) > 100
    assert load.stale == {"strong": 0, "cached": 0, "read-your-writes": 0}


def _wait_joined(replica: Replica) -> None:
    def joined() -> bool:
        return any(line["event"] == "cluster_joined" for line in replica.log())

    wait_until(joined, 30, replica.describe)


async def _converged(load: Load, own: dict[int, list[str]], server: RedisServer) -> None:
    """After its time to live the cache is right, and in use again."""
    for pod in (0, 1):
        for key in own[0] + own[1]:
            await load.read("cached", pod, key, CACHED, age=0.0)
            await load.read("strong", pod, key, STRONG, age=0.0)
    with redis.Redis.from_url(server.url) as client:
        for _ in range(100):
            if len(client.keys("baton:*")) == 2 * KEYS_PER_POD:
                return
            for key in own[0] + own[1]:  # a copy lives for a while only, and may come too late
                await load.read("cached", 0, key, CACHED, age=0.0)
            await asyncio.sleep(0.05)
    raise AssertionError("Redis holds no copies again")


def test_an_increment_whose_answer_was_lost_counts_once(tmp_path: Path, database_url: str) -> None:
    """G7: the client repeats a Put whose commit was not answered, with the same request_id."""
    ledger, swallowed = Ledger(tmp_path / "ledger.jsonl"), 0
    with Cluster(tmp_path / "lab", 1, Setup(database_url)) as cluster:
        replica = cluster[0]
        _wait_joined(replica)
        command: list[str | Path] = [
            sys.executable, "-m", "tests.acceptance.putting_app", replica.api_address, ledger.path,
            "60",
        ]  # fmt: skip
        wire = replica.pool_wire
        assert wire
        with Child(command, tmp_path / "client.log") as client:
            ledger.wait("acknowledged", 5)
            while client.running and swallowed < 5:
                # The answer to a Put names its key; those to reads do not.
                lost = wire.drop_next_answer(match=b"counted")
                before = len(ledger.lines("acknowledged"))
                if lost.wait(5):
                    swallowed += 1
                    ledger.wait("acknowledged", min(before + 2, 60))
            assert client.wait(30) == 0, client.output
        counts = [line["count"] for line in ledger.lines("acknowledged")]
        assert swallowed >= 4
        assert counts == list(range(1, 61)), "an increment was lost or done twice"


def test_a_watch_goes_on_after_its_sidecar_was_killed(tmp_path: Path, database_url: str) -> None:
    """G7: changes made elsewhere meanwhile, deletions included, are told after the reconnect."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with Cluster(tmp_path / "lab", 2, Setup(database_url)) as cluster:
        for replica in cluster.replicas:
            _wait_joined(replica)
        writing, watching = cluster.replicas
        command: list[str | Path] = [
            sys.executable, "-m", "tests.acceptance.watching_app", watching.api_address, ledger.path
        ]  # fmt: skip
        with (
            Child(command, tmp_path / "client.log"),
            grpc.insecure_channel(writing.api_address) as channel,
        ):
            state: Any = state_pb2_grpc.StateStub(channel)  # type: ignore[arg-type]

            def put(key: str, value: bytes) -> int:
                request = pb.StatePutRequest(key=key, value=value)
                return int(state.Put(request, timeout=5).entry.version)

            ledger.wait("change", key="watched/first")
            put("watched/a", b"1")
            ledger.wait("change", key="watched/a", value=1)
            watching.sidecar.kill()
            put("watched/a", b"2")
            newest = put("watched/a", b"3")
            put("watched/b", b"1")
            state.Delete(pb.StateDeleteRequest(key="watched/b"), timeout=5)
            watching.sidecar.start()
            ledger.wait("change", key="watched/a", value=3, version=newest)
            ledger.wait("change", key="watched/b", value=None)
            put("watched/c", b"1")
            ledger.wait("change", key="watched/c", value=1)
    for key in ("watched/a", "watched/b", "watched/c"):
        versions = [line["version"] for line in ledger.lines("change", key=key)]
        assert versions == sorted(versions), "a change of one key was told after a newer one"
