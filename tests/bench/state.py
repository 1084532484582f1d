"""State against the bare servers it stands on, in one run: what Baton's promises cost.

    State.Put   vs  INSERT … ON CONFLICT DO UPDATE, one commit each, on as many connections
    State.Get   vs  GET of a bare redis-py client, and strong, vs  SELECT of a bare psycopg one

Measured inside the sidecar, as the bare clients are in their process: what an app waits for is this
and a gRPC call, whose raw cost is under Ticks and bounds what 64 callers get. With one caller and
with 64. Rounds of both sides take turns, so that a busy machine hurts both; the ratio is ours over
the peer's (calls per second, the median of the rounds): 1 is as fast, above 1 faster.
Run alone: `python -m tests.bench.state`.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from redis.asyncio import Redis

from devtools.servers import PostgresServer, RedisServer, postgres_binaries
from sidecar.adapters.postgres.session import Connection, connect
from sidecar.model.state_types import Put
from tests.state_lab import pod_with_redis, state_lab

Call = Callable[[int], Awaitable[object]]

LIMITS = (
    "Alone: the round trip to Postgres or Redis, plus the Python around it, which costs more than"
    " the bare client's because versions, limits and freshness are checked. Together: one processor"
    " core for the event loop; above 1 because calls that wait at the same time share a statement."
)
ROUNDS = 5
ROUND_SECONDS = 0.6
CALLERS = (1, 64)
CONNECTIONS = 4
KEYS = 1000
VALUE = b"x" * 100

_UPSERT = (
    "INSERT INTO bare (key, value) VALUES (%s, %s)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_SELECT = "SELECT value FROM bare WHERE key = %s"


@dataclass(frozen=True, slots=True)
class Result:
    """One comparison; speeds in calls per second."""

    name: str
    callers: int
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    def row(self, bench: str) -> dict[str, Any]:
        return {
            "bench": bench,
            "name": self.name,
            "callers": self.callers,
            "ours_per_second": round(self.ours),
            "peer_per_second": round(self.peer),
            "ratio": round(self.ratio, 2),
        }


def run() -> list[dict[str, Any]]:
    """The rows of the report."""
    with PostgresServer(postgres_binaries("auto")) as postgres, RedisServer() as redis:
        results = asyncio.run(_compared(postgres.url, redis.url))
    return [result.row("state") for result in results]


async def _compared(postgres_url: str, redis_url: str) -> list[Result]:
    lab = await state_lab(postgres_url)
    async with AsyncExitStack() as stack:
        pod = await stack.enter_async_context(
            pod_with_redis(lab, redis_url, ttl_seconds=300.0, timeout_seconds=2.0)
        )
        bare = await stack.enter_async_context(bare_connections(postgres_url))
        redis = await stack.enter_async_context(Redis.from_url(redis_url))
        for number in range(KEYS):
            await pod.put(Put(f"k{number}", VALUE))
            await redis.set(f"bare:{number}", VALUE)
        pairs: dict[str, tuple[Call, Call]] = {
            "State.Put vs INSERT ON CONFLICT": (
                lambda i: pod.put(Put(f"k{i % KEYS}", VALUE)),
                lambda i: on_connection(bare, _UPSERT, (f"k{i % KEYS}", VALUE)),
            ),
            "State.Get vs redis GET": (
                lambda i: pod.get(f"k{i % KEYS}"),
                lambda i: redis.get(f"bare:{i % KEYS}"),
            ),
            "State.Get STRONG vs SELECT": (
                lambda i: pod.get(f"k{i % KEYS}", strong=True),
                lambda i: on_connection(bare, _SELECT, (f"k{i % KEYS}",)),
            ),
        }
        return [
            await compared(name, callers, *pair)
            for name, pair in pairs.items()
            for callers in CALLERS
        ]


async def compared(name: str, callers: int, ours: Call, peer: Call) -> Result:
    speeds: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(ROUNDS):
        speeds["ours"].append(await speed(ours, callers))
        speeds["peer"].append(await speed(peer, callers))
    return Result(
        name, callers, statistics.median(speeds["ours"]), statistics.median(speeds["peer"])
    )


async def speed(call: Call, callers: int) -> float:
    numbers = itertools.count()
    ends = time.perf_counter() + ROUND_SECONDS

    async def keep_calling() -> None:
        while time.perf_counter() < ends:
            await call(next(numbers))

    began = time.perf_counter()
    await asyncio.gather(*(keep_calling() for _ in range(callers)))
    return next(numbers) / (time.perf_counter() - began)


@asynccontextmanager
async def bare_connections(
    url: str, number: int = CONNECTIONS
) -> AsyncIterator["asyncio.Queue[Connection]"]:
    free: asyncio.Queue[Connection] = asyncio.Queue()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        await admin.execute("CREATE TABLE bare (key text PRIMARY KEY, value bytea NOT NULL)")
    for _ in range(number):
        free.put_nowait(await connect(lambda: url, purpose="bench"))
    yield free
    while not free.empty():
        await free.get_nowait().close()


async def on_connection(
    free: "asyncio.Queue[Connection]", text: str, parameters: tuple[object, ...]
) -> None:
    connection = await free.get()
    try:
        cursor = await connection.execute(text.encode(), parameters)
        if cursor.description:
            await cursor.fetchall()
    finally:
        free.put_nowait(connection)


if __name__ == "__main__":
    for row in run():
        print(row)
