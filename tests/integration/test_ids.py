"""Ids of several runners on one real Postgres: none twice, whatever clocks and leases do."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import grpc.aio
import psycopg
import pytest

from sidecar._proto.baton.v1 import ids_pb2, ids_pb2_grpc
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_server.ids import IdsService
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.machines import Machines
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.ids import LEASE_SECONDS, Ids
from sidecar.model.errors import InvalidArgument, LimitExceeded, StoreUnavailable
from sidecar.model.identity import Identity
from sidecar.model.snowflake import EPOCH_UNIX_MS


@dataclass
class Clock:
    """A clock that jumps when told to."""

    offset: float = 0.0

    def __call__(self) -> float:
        return boottime() + self.offset


@dataclass
class Cluster:
    url: str
    database: Database
    identity: Identity

    def runner(self, name: str, clock: Callable[[], float] = boottime) -> Ids:
        return Ids(self.machines(name), clock)

    def machines(self, name: str) -> Machines:
        identity = replace(self.identity, runner_id=name)
        return Machines(self.database, lambda: identity, lease_seconds=LEASE_SECONDS)

    async def execute(self, text: str) -> None:
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        async with connection:
            await connection.execute(text.encode(), {"cluster_id": self.identity.cluster_id})


@pytest.fixture
async def cluster(database_url: str) -> AsyncIterator[Cluster]:
    await migrate(database_url, "baton")
    database = Database(lambda: database_url, schema="baton", size=8, statement_seconds=3.0)
    membership = Membership(database, runner_id="r", host="h", version="0")
    yield Cluster(database_url, database, await membership.join("orders", "", ["default"]))
    await database.close()


EXPIRE = "UPDATE baton.machine SET expires_at = expires_at - interval '1 day'"


async def test_eight_runners_with_jumping_clocks_never_repeat_an_id(cluster: Cluster) -> None:
    """Clocks step, leases expire, runners sleep through them, restart and hand numbers on."""
    chance = random.Random(1)
    given: list[int] = []

    async def live(number: int) -> None:
        clock = Clock()
        ids, life = cluster.runner(f"r{number}", clock), 0
        last = 0
        for _ in range(25):
            batch = await ids.generate(chance.choice([1, 7, 500, 5000]))
            assert batch == sorted(batch)
            assert batch[0] > last
            last = batch[-1]
            given.extend(batch)
            clock.offset += chance.choice([0, 0, 1, -3600, 100, 400, -0.5])
            if chance.random() < 0.15:
                await cluster.execute(EXPIRE)  # every number may be taken by others now
            if chance.random() < 0.2:
                if chance.random() < 0.5:
                    await ids.close()  # else: it vanishes without a word
                life += 1
                ids, last = cluster.runner(f"r{number}-{life}", clock), 0

    await asyncio.gather(*(live(number) for number in range(8)))
    assert len(given) == len(set(given)) > 50_000


async def test_living_runners_have_numbers_of_their_own(cluster: Cluster) -> None:
    runners = [cluster.runner(f"r{n}") for n in range(8)]
    batches = await asyncio.gather(*(each.generate(3) for each in runners))
    assert len({runners[0].decompose(batch[0]).machine for batch in batches}) == 8


async def test_the_time_in_an_id_is_now(cluster: Cluster) -> None:
    ids = cluster.runner("r", Clock(offset=-86_400))
    parts = ids.decompose((await ids.generate(0))[0])
    assert abs(parts.at - datetime.now(UTC)) < timedelta(seconds=2)


async def test_a_released_number_is_taken_at_once_and_goes_on_above(cluster: Cluster) -> None:
    first = cluster.runner("first")
    before = await first.generate(10_000)
    await first.close()
    after = await cluster.runner("second").generate(1)
    assert first.decompose(after[0]).machine == first.decompose(before[0]).machine
    assert after[0] > before[-1]


async def test_releasing_an_unused_number_gives_no_old_time_away(cluster: Cluster) -> None:
    """The window of a number never moves back."""
    used = cluster.runner("used")
    before = await used.generate(10_000)
    await used.close()
    lease = await cluster.machines("idle").acquire()
    idle = cluster.runner("idle")
    await idle.generate(1)
    await idle.close()
    after = await cluster.runner("third").generate(1)
    assert lease.window.floor_ms > before[-1] >> 22
    assert after[0] > before[-1]


async def test_a_lost_answer_costs_no_second_number(cluster: Cluster) -> None:
    first = await cluster.machines("r").acquire()
    again = await cluster.machines("r").acquire()
    assert again.window.machine == first.window.machine
    assert again.window.floor_ms >= first.window.ceiling_ms


async def test_a_number_that_went_to_somebody_else_is_not_renewed(cluster: Cluster) -> None:
    sleeper = cluster.machines("sleeper")
    lease = await sleeper.acquire()
    await cluster.execute(EXPIRE)
    other = await cluster.machines("other").acquire()
    assert other.window.machine == lease.window.machine
    assert other.window.floor_ms == lease.window.ceiling_ms
    assert await sleeper.renew(lease.window.machine, lease.window.floor_ms) is None


async def test_a_number_that_went_to_somebody_else_is_not_released(cluster: Cluster) -> None:
    """Whoever ends late gives back nothing that another holds by now."""
    sleeper = cluster.machines("sleeper")
    lease = await sleeper.acquire()
    await cluster.execute(EXPIRE)
    other = await cluster.machines("other").acquire()
    await sleeper.release(lease.window.machine, lease.window.floor_ms)
    third = await cluster.machines("third").acquire()
    assert third.window.machine != other.window.machine


async def test_a_number_is_kept_for_a_grace_after_its_lease(cluster: Cluster) -> None:
    """Its runner counts the lease on a clock of its own, which may be a little slower."""
    lease = await cluster.machines("sleeper").acquire()
    await cluster.execute("UPDATE baton.machine SET expires_at = now() - interval '10 s'")
    other = await cluster.machines("other").acquire()
    assert other.window.machine != lease.window.machine


async def test_all_numbers_leased_is_said_clearly(cluster: Cluster) -> None:
    """G11"""
    await cluster.execute(
        "INSERT INTO baton.machine SELECT %(cluster_id)s, n, 'x' || n, now() + interval '1 hour',"
        " 0 FROM generate_series(0, 1023) AS n"
    )
    with pytest.raises(LimitExceeded, match="all 1,024 machine numbers"):
        await cluster.runner("late").generate(1)


@pytest.mark.parametrize("count", [-1, 10_001])
async def test_too_many_at_once_is_refused(cluster: Cluster, count: int) -> None:
    """G11"""
    with pytest.raises(InvalidArgument, match=r"count: must be 0 to 10,000, not "):
        await cluster.runner("r").generate(count)


async def test_ids_go_on_without_postgres_until_the_lease_ends(cluster: Cluster) -> None:
    clock = Clock()
    ids = cluster.runner("r", clock)
    await ids.generate(1)
    broken = cast(Machines, _Away())
    ids._machines = broken
    clock.offset += LEASE_SECONDS - 10
    assert len(await ids.generate(100)) == 100
    clock.offset += 20
    with pytest.raises(StoreUnavailable):
        await ids.generate(1)
    await ids.close()


class _Away:
    """Postgres does not answer."""

    async def renew(self, number: int, used_ms: int) -> None:
        raise StoreUnavailable("away")

    async def release(self, number: int, used_ms: int) -> None:
        raise StoreUnavailable("away")


async def test_the_service_makes_ids_and_takes_them_apart(cluster: Cluster) -> None:
    server = grpc.aio.server()
    ids_pb2_grpc.add_IdsServicer_to_server(IdsService(cluster.runner("r")), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = ids_pb2_grpc.IdsStub(channel)
        made = (await stub.Generate(ids_pb2.IdsGenerateRequest(count=10_000))).ids
        parts = await stub.Decompose(ids_pb2.IdsDecomposeRequest(id=made[-1]))
    await server.stop(None)
    assert len(set(made)) == 10_000
    assert (parts.timestamp.ToMilliseconds() - EPOCH_UNIX_MS) << 22 | (
        parts.machine_id << 12
    ) | parts.sequence == made[-1]
