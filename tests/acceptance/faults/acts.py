"""What is done to an arena: injections and their healing, where a single call does not say it."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg
import redis

from tests.acceptance.faults import collected
from tests.acceptance.faults.arena import BEHAVIOUR, Arena
from tests.lab.netns import Namespace
from tests.lab.processes import wait_until
from tests.lab.proxy import Direction
from tests.lab.replica import Replica
from tests.lab.servers import SmallDiskPostgres, Stutter


def nothing(arena: Arena) -> None:
    """The fault is over by itself."""


# ── apps ────────────────────────────────────────────────────────────────────────────────────────


def wedge(arena: Arena) -> None:
    """Its handlers do not come back any more; its health checks do."""
    arena.victim.tell(execute={**BEHAVIOUR, "each": "hang", "newest": "hang", "sum": "hang"})


def unwedge(arena: Arena) -> None:
    arena.victim.tell(execute=BEHAVIOUR)


# ── network ─────────────────────────────────────────────────────────────────────────────────────


def silence(replica: Replica, direction: Direction) -> None:
    for wire in replica.wires:
        wire.silence(frozenset({direction}))


def delay(arena: Arena, seconds: float) -> None:
    for replica in arena.cluster.replicas:
        for wire in replica.wires:
            wire.delay(seconds)


def heal_wires(arena: Arena) -> None:
    for replica in arena.cluster.replicas:
        replica.heal()


def namespace(arena: Arena) -> Namespace:
    assert arena.victim.namespace is not None
    return arena.victim.namespace


# ── Postgres ────────────────────────────────────────────────────────────────────────────────────


def stutter(arena: Arena) -> None:
    arena.kept.append(Stutter(arena.postgres, still=0.3, runs=0.1).start())


def close_kept(arena: Arena) -> None:
    while arena.kept:
        kept = arena.kept.pop()
        (kept.stop if isinstance(kept, Stutter) else kept.close)()


def fill_disk(arena: Arena) -> None:
    assert isinstance(arena.postgres, SmallDiskPostgres)
    arena.postgres.fill()


def clear_disk(arena: Arena) -> None:
    """As an operator does: make room, and start the server if it gave up."""
    assert isinstance(arena.postgres, SmallDiskPostgres)
    arena.postgres.clear()
    time.sleep(1)
    arena.notes["server gave up"] = gave_up = not arena.postgres.running
    if gave_up:
        arena.postgres.kill()
        arena.postgres.start()


def exhaust_and_kill(arena: Arena) -> None:
    with suppress(psycopg.OperationalError):
        while True:
            arena.kept.append(psycopg.connect(arena.url, connect_timeout=5))
    assert arena.kept, "there was no connection to take"
    arena.notes["connections taken"] = len(arena.kept)
    arena.victim.kill()
    with suppress(psycopg.OperationalError):  # what the dead ones held
        while True:
            arena.kept.append(psycopg.connect(arena.url, connect_timeout=5))


def release_and_revive(arena: Arena) -> None:
    close_kept(arena)
    arena.revive()


def limit_connections(arena: Arena, most: int) -> None:
    arena.sql(f"ALTER ROLE lab CONNECTION LIMIT {most}")
    if most >= 0:
        for replica in arena.cluster.replicas:
            for wire in replica.wires:
                wire.cut()


def a_million_rows(arena: Arena) -> None:
    """Ended runs of the last six days, none of them due for pruning yet."""
    collected.rows(arena.url, _MILLION)
    collected.rows(arena.url, "ANALYZE baton.run")


_MILLION = """
INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, state, outcome, due_at,
                       attempt, runner_id, created_at, queued_at, started_at, finished_at)
SELECT s.cluster_id, s.group_id, 'schedule', 'old', s.id, at, 'ended', 'succeeded', at,
       1, 'history', at, at, at, at
FROM baton.schedule s, generate_series(1, 1000000) n,
     LATERAL (SELECT now() - n * interval '500 ms' AS at) t
WHERE s.name = 'each'"""


def a_standby_server(arena: Arena) -> None:
    """Asynchronous, as it comes."""
    arena.add_standby()


def a_synchronous_standby(arena: Arena) -> None:
    arena.add_standby().synchronize()


def promote(arena: Arena) -> None:
    arena.standby.promote()
    arena.fail_over()


def lag_and_kill(arena: Arena) -> None:
    """What is committed in the last seconds of the primary never reaches its standby."""
    arena.standby.wire.silence(lose=True)
    time.sleep(3)
    arena.postgres.kill()


def split(arena: Arena) -> None:
    """The standby is promoted while the primary lives; only the leader still talks to the old."""
    arena.standby.wire.silence(lose=True)
    arena.standby.promote()
    others = arena.cluster.others(arena.victim)
    arena.follow(arena.standby, others)
    for replica in others:
        for wire in replica.wires:
            wire.cut()


def end_split(arena: Arena) -> None:
    """As a watchdog does: the old primary is gone."""
    arena.postgres.kill()
    arena.fail_over()


# ── Redis ───────────────────────────────────────────────────────────────────────────────────────


def flush(arena: Arena) -> None:
    with redis.Redis.from_url(arena.redis.url) as client:
        for _ in range(50):
            client.flushall()
            time.sleep(0.1)


def redis_memory(arena: Arena, most: str) -> None:
    with redis.Redis.from_url(arena.redis.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", most)


# ── clocks ──────────────────────────────────────────────────────────────────────────────────────


def step_ahead_and_back(arena: Arena) -> None:
    for seconds in (3600, -3600):
        arena.clock.step(seconds)
        time.sleep(5)


def step_back_and_freeze(arena: Arena) -> None:
    """Back to the right time: behind it, libfaketime shows signal handlers another clock."""
    arena.clock.step(0)
    arena.victim.freeze()


# ── versions ────────────────────────────────────────────────────────────────────────────────────


def roll(arena: Arena) -> None:
    """What the kubelet does to one pod: sidecar and app are asked to end, then replaced."""
    arena.end(arena.victim.sidecar)
    arena.end(arena.victim.app)


_EXPANSION = """
ALTER TABLE baton.run ADD COLUMN priority integer NOT NULL DEFAULT 0;
ALTER TABLE baton.beat ADD COLUMN note text;
ALTER TABLE baton.state ADD COLUMN origin text;
CREATE TABLE baton.addition (id bigint PRIMARY KEY);
CREATE INDEX run_by_priority ON baton.run (group_id, priority) WHERE state = 'queued';
UPDATE baton.meta SET schema_version = schema_version + 1"""


def migrate(arena: Arena) -> None:
    """As `baton migrate` of a newer release would: one transaction, short waits for locks."""

    def done() -> bool:
        try:
            with psycopg.connect(arena.url) as connection:
                connection.execute("SET lock_timeout = '500ms'")
                connection.execute(_EXPANSION.encode())
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    wait_until(done, 20, "the migration")


def restart_victim(arena: Arena) -> None:
    """A sidecar of the older release joins the newer tables."""
    arena.end(arena.victim.sidecar)
    arena.victim.sidecar.start()


def a_standby(arena: Arena, number: int) -> Replica:
    return arena.cluster.others(arena.cluster.wait_for_leader())[0]


def refuse_older(arena: Arena) -> None:
    arena.sql(
        "UPDATE baton.meta SET schema_version = schema_version + 1,"
        " oldest_reader = schema_version + 1"
    )
    arena.end(arena.victim.sidecar)
    arena.victim.sidecar.start()
    with suppress(AssertionError):  # the judge will say
        wait_until(lambda: "newer release" in arena.victim.http("/readyz")[1], 25)


def allow_older(arena: Arena) -> None:
    arena.sql("UPDATE baton.meta SET oldest_reader = 0")
