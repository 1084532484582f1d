"""The faults, as data: name, what is done, how it is healed, and what is expected.

G8 sets the bounds: another app leads within 10 s of a fault of the leader, within 1 s of a clean
release. After a fault of a server somebody leads again within 15 s of its healing. What concerns
no leader (Redis, clocks, delays, migrations) must cost no leadership at all.
"""

from __future__ import annotations

from tests.acceptance.faults import acts
from tests.acceptance.faults.arena import Arena, Scene
from tests.acceptance.faults.run import Fault, terms
from tests.lab import faketime, netns, pgbouncer, servers
from tests.lab.proxy import Direction
from tests.lab.servers import SmallDiskPostgres

CLEAN, CRASH, BACK = 1.0, 10.0, 15.0

_APPS_AND_SIDECARS = [
    Fault(
        "sidecar-killed", "kill -9 of the leader's sidecar; started again after the takeover",
        lambda a: a.victim.sidecar.kill(), Arena.revive, terms(takeover_seconds=CRASH, mutes=True),
        rounds=3,
    ),
    Fault(
        "app-killed", "kill -9 of the leader's app; started again after the takeover",
        lambda a: a.victim.app.kill(), Arena.revive,
        terms(takeover_seconds=CRASH, red="app:"), rounds=3, hold=4,
    ),
    Fault(
        "pod-killed", "kill -9 of the leader's sidecar and app at once",
        lambda a: a.victim.kill(), Arena.revive, terms(takeover_seconds=CRASH, mutes=True),
        rounds=3,
    ),
    Fault(
        "sidecar-frozen", "SIGSTOP of the leader's sidecar for 9 s at least, then SIGCONT",
        lambda a: a.victim.sidecar.freeze(), lambda a: a.victim.sidecar.thaw(),
        terms(takeover_seconds=CRASH, mutes=True), hold=9, rounds=2,
    ),
    Fault(
        "app-frozen", "SIGSTOP of the leader's app until another leads, then SIGCONT",
        lambda a: a.victim.app.freeze(), lambda a: a.victim.app.thaw(),
        terms(takeover_seconds=CRASH, red="app:"), rounds=2, hold=6,
    ),
    Fault(
        "pod-frozen", "SIGSTOP of the leader's sidecar and app for 9 s at least, then SIGCONT",
        lambda a: a.victim.freeze(), lambda a: a.victim.thaw(),
        terms(takeover_seconds=CRASH, mutes=True), hold=9, rounds=2,
    ),
    Fault(
        "sidecar-terminated", "SIGTERM of the leader's sidecar, which drains and ends with 0",
        lambda a: a.end(a.victim.sidecar), Arena.revive,
        terms(takeover_seconds=CLEAN, clean=True, mutes=True), rounds=3,
    ),
    Fault(
        "app-terminated", "SIGTERM of the leader's app; started again after the takeover",
        lambda a: a.end(a.victim.app), Arena.revive,
        terms(takeover_seconds=CRASH, red="app:"), rounds=3, hold=4,
    ),
    Fault(
        "handlers-wedged", "no handler of the leader's app returns, but its health checks do",
        acts.wedge, acts.unwedge,
        # Stale at twice the expected interval of 5 s (+5), then a drain of 5 s.
        terms(takeover_seconds=22.0, red="no success for", red_seconds=15.0),
    ),
    Fault(
        "rolling-update", "each pod in turn: SIGTERM of its sidecar, then of its app, both anew",
        acts.roll, Arena.revive, terms(takeover_seconds=CLEAN, clean=True, mutes=True),
        rounds=3, pick=lambda a, n: a.cluster[n],
    ),
]  # fmt: skip

_NETWORK = [
    Fault(
        "partition", "nothing passes between the leader's sidecar and the servers, both ways",
        lambda a: a.victim.isolate(), lambda a: a.victim.heal(), terms(takeover_seconds=CRASH),
        rounds=2, hold=9,
    ),
    Fault(
        "partition-to-server", "what the leader's sidecar sends vanishes; it still hears",
        lambda a: acts.silence(a.victim, Direction.TO_SERVER), lambda a: a.victim.heal(),
        terms(takeover_seconds=CRASH), rounds=2, hold=9,
    ),
    Fault(
        "partition-to-client", "the leader's sidecar hears nothing; what it sends arrives",
        lambda a: acts.silence(a.victim, Direction.TO_CLIENT), lambda a: a.victim.heal(),
        terms(takeover_seconds=CRASH), rounds=2, hold=9,
    ),
    Fault(
        "packet-loss", "packets of the leader's pod vanish 30 % of the time, in bursts, for 15 s",
        lambda a: acts.namespace(a).lose(0.3), lambda a: acts.namespace(a).heal(),
        terms(recovery_seconds=BACK, mutes=True), hold=15, scene=Scene(namespaces=True),
        why_not=netns.why_not,
    ),
    Fault(
        "delay", "every byte between all sidecars and servers takes 150 ms longer, for 12 s",
        lambda a: acts.delay(a, 0.15), acts.heal_wires, terms(steady=True), hold=12,
    ),
]  # fmt: skip

_POSTGRES = [
    Fault(
        "postgres-killed", "kill -9 of all processes of Postgres; started again after 4 s",
        lambda a: a.postgres.kill(), lambda a: a.postgres.start(),
        terms(recovery_seconds=BACK), hold=4, rounds=2, of_a_server=True,
    ),
    Fault(
        "postgres-restarted", "Postgres is stopped in the fast mode and started at once",
        lambda a: a.postgres.restart(), acts.nothing,
        terms(recovery_seconds=BACK), rounds=2, of_a_server=True,
    ),
    Fault(
        "postgres-frozen", "SIGSTOP of all processes of Postgres for 8 s, then SIGCONT",
        lambda a: a.postgres.freeze(), lambda a: a.postgres.thaw(),
        terms(recovery_seconds=BACK), hold=8, rounds=2, of_a_server=True,
    ),
    Fault(
        "postgres-slow", "Postgres stands still for 300 ms of each 400 ms, for 12 s",
        acts.stutter, acts.close_kept, terms(recovery_seconds=BACK), hold=12, of_a_server=True,
    ),
    Fault(
        "disk-full", "the file system of Postgres is filled to the last byte for 10 s",
        acts.fill_disk, acts.clear_disk, terms(recovery_seconds=BACK), hold=10,
        of_a_server=True, scene=Scene(server=SmallDiskPostgres), why_not=servers.why_no_disk,
    ),
    Fault(
        "connections-exhausted", "others take every free connection, then the leader's pod dies",
        acts.exhaust_and_kill, acts.release_and_revive,
        terms(takeover_seconds=CRASH, mutes=True), rounds=2, hold=8,
    ),
    Fault(
        "connection-limit", "all connections are cut and the role may open only two, for 8 s",
        lambda a: acts.limit_connections(a, 2), lambda a: acts.limit_connections(a, -1),
        terms(recovery_seconds=BACK), hold=8, of_a_server=True,
    ),
    Fault(
        "million-rows", "a million ended runs stand in the history when the leader's pod dies",
        lambda a: a.victim.kill(), Arena.revive,
        terms(takeover_seconds=CRASH, mutes=True), rounds=2, limit=240,
        scene=Scene(prepare=acts.a_million_rows),
    ),
    Fault(
        "postgres-failover", "kill -9 of Postgres; its synchronous standby is promoted after 3 s",
        lambda a: a.postgres.kill(), acts.promote, terms(recovery_seconds=BACK), hold=3,
        of_a_server=True, scene=Scene(prepare=acts.a_synchronous_standby),
    ),
    Fault(
        "postgres-split", "its synchronous standby is promoted beside Postgres, which lives on and"
        " still has the leader for 12 s",
        acts.split, acts.end_split,
        terms(takeover_seconds=CRASH, behind=True), hold=12,
        scene=Scene(prepare=acts.a_synchronous_standby),
    ),
    Fault(
        "postgres-lossy-failover", "its asynchronous standby lags 3 s behind when Postgres is"
        " killed, and is promoted 3 s later",
        acts.lag_and_kill, acts.promote,
        terms(recovery_seconds=BACK, lossy=True),
        hold=6, of_a_server=True, scene=Scene(prepare=acts.a_standby_server),
    ),
]  # fmt: skip

_POOLER = [
    Fault(
        "pooler-killed", "kill -9 of the PgBouncer between all pools and Postgres, back after 4 s",
        lambda a: a.pooler.kill(), lambda a: a.pooler.start(), terms(steady=True), hold=4,
        rounds=2, of_a_server=True, scene=Scene(pooler=True), why_not=pgbouncer.why_not,
    ),
    Fault(
        "pooler-frozen", "SIGSTOP of that PgBouncer for 6 s, then SIGCONT",
        lambda a: a.pooler.freeze(), lambda a: a.pooler.thaw(), terms(steady=True), hold=6,
        of_a_server=True, scene=Scene(pooler=True), why_not=pgbouncer.why_not,
    ),
    Fault(
        "pooled-leader-killed", "kill -9 of the leader's pod; all pools share four connections",
        lambda a: a.victim.kill(), Arena.revive, terms(takeover_seconds=CRASH, mutes=True),
        rounds=2, scene=Scene(pooler=True), why_not=pgbouncer.why_not,
    ),
]  # fmt: skip

_REDIS = [
    Fault(
        "redis-killed", "kill -9 of Redis; an empty one comes back after 5 s",
        lambda a: a.redis.kill(), lambda a: a.redis.start(), terms(steady=True), hold=5,
        of_a_server=True,
    ),
    Fault(
        "redis-flushed", "FLUSHALL ten times a second for 5 s",
        acts.flush, acts.nothing, terms(steady=True), of_a_server=True,
    ),
    Fault(
        "redis-frozen", "SIGSTOP of Redis for 6 s, then SIGCONT",
        lambda a: a.redis.freeze(), lambda a: a.redis.thaw(), terms(steady=True), hold=6,
        of_a_server=True,
    ),
    Fault(
        "redis-out-of-memory", "maxmemory of one byte without eviction, for 6 s",
        lambda a: acts.redis_memory(a, "1"), lambda a: acts.redis_memory(a, "0"),
        terms(steady=True), hold=6, of_a_server=True,
    ),
]  # fmt: skip

_CLOCKS = [
    Fault(
        "sidecar-clocks", "the wall clocks of all sidecars step one hour ahead, then one hour back",
        acts.step_ahead_and_back, lambda a: a.clock.step(0), terms(steady=True), of_a_server=True,
        scene=Scene(stepped="sidecars"), why_not=faketime.why_not,
    ),
    Fault(
        "postgres-clock-ahead", "the wall clock of Postgres steps 90 s ahead and stays there",
        lambda a: a.clock.step(90), acts.nothing, terms(recovery_seconds=BACK),
        hold=6, of_a_server=True, scene=Scene(stepped="postgres"), why_not=faketime.why_not,
    ),
    Fault(
        "postgres-clock-back", "the wall clock of Postgres steps 12 s back and the leader freezes",
        acts.step_back_and_freeze, lambda a: a.victim.thaw(),
        terms(takeover_seconds=CRASH, mutes=True, exempt=frozenset({"early", "fenced"})),
        hold=16, scene=Scene(stepped="postgres", clock_seconds=12), why_not=faketime.why_not,
        exempt_because="the database's own times of two commits cannot be compared across a step",
    ),
]  # fmt: skip

_VERSIONS = [
    Fault(
        "migration", "a newer release adds columns, a table and an index while all sidecars work",
        acts.migrate, acts.restart_victim, terms(steady=True, mutes=True), hold=3,
        pick=acts.a_standby,
    ),
    Fault(
        "newer-schema", "the tables ask for a newer release; a standby that restarts must refuse",
        acts.refuse_older, acts.allow_older,
        terms(red="use a newer release", red_seconds=30, mutes=True), hold=8,
        pick=acts.a_standby,
    ),
    Fault(
        "herd", "fifty sidecars start at once; then Postgres restarts under them",
        lambda a: a.postgres.restart(), acts.nothing,
        terms(recovery_seconds=30.0), of_a_server=True, limit=480,
        scene=Scene(50, 3, {"max_connections": 400}, start_seconds=240.0),
    ),
]  # fmt: skip

FAULTS: list[Fault] = [
    *_APPS_AND_SIDECARS, *_NETWORK, *_POSTGRES, *_POOLER, *_REDIS, *_CLOCKS, *_VERSIONS
]  # fmt: skip


def named(name: str) -> Fault:
    return next(fault for fault in FAULTS if fault.name == name)
