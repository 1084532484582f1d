"""The menu of faults. Each seed draws a few kinds and serves them again and again.

A fault ends by itself after a while; the cluster's `heal` ends all of them. One combination is left
out because no epoch can survive it: a server whose wall clock was set back *and* whose failover
lost a takeover.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from sidecar.model.errors import SidecarError
from tests.simulation.apps import Conduct
from tests.simulation.cluster import Cluster
from tests.simulation.loop import Process
from tests.simulation.runners import Runner
from tests.simulation.world import Link, Stutter, Way

Fault = Callable[[Cluster], None]
_WAYS = ({Way.OUT}, {Way.BACK}, {Way.OUT, Way.BACK})
_LATE_REPORTS = {"complete"}
_STUTTERING = (_LATE_REPORTS, _LATE_REPORTS, _LATE_REPORTS, {"claim", "claim_ticks"}, {"requeue"})
_SHORT = (0.1, 3.0)
_LONG = (0.5, 8.0)


# ── the sidecar ─────────────────────────────────────────────────────────────────────────────────


def freeze(cluster: Cluster) -> None:
    """SIGSTOP, or a suspended machine, in which case the app stands still as well."""
    world, runner = cluster.world, cluster.somebody()
    if not runner.running:
        return
    suspended = world.chance(0.3)
    world.note("fault_freeze", runner=runner.process.name, suspended=suspended)
    process = runner.process
    process.freeze()
    seconds = world.between(_LONG)
    if suspended:
        runner.app.fail_checks(hang=True)
        world.after(seconds, runner.app.recover)
    world.after(seconds, lambda: process.thaw(suspended=suspended))


def crash(cluster: Cluster) -> None:
    world, runner = cluster.world, cluster.somebody()
    if not runner.running:
        return
    host_too = world.chance(0.5)
    world.note("fault_crash", runner=runner.process.name, host_too=host_too)
    runner.crash(server_notices=not host_too)
    cluster.later(world.between(_LONG), _start, runner)


def _start(runner: Runner) -> None:
    if not runner.running:
        runner.start()


def stop(cluster: Cluster) -> None:
    """SIGTERM, sometimes twice."""
    world, runner = cluster.world, cluster.somebody()
    if not runner.running or runner.process.frozen:
        return
    runner.stop()
    if world.chance(0.3):
        process = runner.process
        cluster.later(world.between(_SHORT), _hurry, runner, process)
    cluster.later(world.between((6.0, 15.0)), _start, runner)


def _hurry(runner: Runner, process: Process) -> None:
    if runner.process is process and runner.running:
        runner.stop(hurry=True)


def resign(cluster: Cluster) -> None:
    """Asked through any pod: a row, and a hint to the leader."""
    world = cluster.world
    name, group_id = world.random.choice([*cluster.groups.items()])
    epoch = cluster.server.rows[group_id].epoch
    world.note("fault_resign", group=name, epoch=epoch)
    cluster.server.resign_requests[group_id] = epoch
    for runner in cluster.sidecars():
        cluster.hint(runner, runner.resign_requested)


# ── the network ─────────────────────────────────────────────────────────────────────────────────


def cut(cluster: Cluster) -> None:
    """The connection is torn; the client knows at once, the server perhaps not."""
    world, runner = cluster.world, cluster.somebody()
    if not runner.running:
        return
    notices, pool = world.chance(0.5), world.chance(0.5)
    world.note("fault_cut", runner=runner.process.name, server_notices=notices, pool=pool)
    if pool:
        runner.pool.cut(server_notices=notices)
    elif runner.lock.connection:
        runner.lock.connection.cut(server_notices=notices)


def lose_answers(cluster: Cluster) -> None:
    """Statements of the work are torn from their answers while the lock session stands."""
    world, runner = cluster.world, cluster.somebody()
    runner.pooled.answer_loss = world.between((0.05, 0.5))
    loss = round(runner.pooled.answer_loss, 2)
    world.note("fault_lose_answers", pod=runner.name, loss=loss)
    world.after(world.between(_LONG), setattr, runner.pooled, "answer_loss", 0.0)


def black_hole(cluster: Cluster) -> None:
    """Requests, answers or both are swallowed for a while, and then arrive after all."""
    world, runner = cluster.world, cluster.somebody()
    ways, links = world.random.choice(_WAYS), _some_links(cluster, runner)
    world.note("fault_black_hole", pod=runner.name, ways=_named(ways), links=len(links))
    seconds = world.between(_LONG)
    for link in links:
        link.black_holes |= ways
        world.after(seconds, link.heal)


def slow_network(cluster: Cluster) -> None:
    world, runner = cluster.world, cluster.somebody()
    ways, links = world.random.choice(_WAYS), _some_links(cluster, runner)
    world.note("fault_slow", pod=runner.name, ways=_named(ways), links=len(links))
    longest, seconds = world.between((0.3, 2.5)), world.between(_LONG)
    for link in links:
        link.slow.update(dict.fromkeys(ways, (0.0, longest)))
        world.after(seconds, link.heal)


def refuse(cluster: Cluster) -> None:
    world, runner = cluster.world, cluster.somebody()
    links, notices, seconds = _some_links(cluster, runner), world.chance(0.5), world.between(_SHORT)
    world.note("fault_refuse", pod=runner.name, links=len(links))
    for link in links:
        link.refuses = True
        world.after(seconds, link.heal)
    if runner.running:
        runner.pool.cut(server_notices=notices)
        if runner.database in links and runner.lock.connection:
            runner.lock.connection.cut(server_notices=notices)


def stutter(cluster: Cluster) -> None:
    """Single connections of the pool stand still for longer than anybody waits for an answer.

    The term goes on over its own connection, and what was given up is executed after all: late
    answers meet the next attempt, because many attempts fail and take their time.
    """
    world, runner = cluster.world, cluster.somebody()
    handlers, lease, seconds = runner.app.handlers, cluster.timers.lease, world.between((4.0, 12.0))
    statements = world.random.choice(_STUTTERING)
    world.note("fault_stutter", pod=runner.name, statements=sorted(statements))
    runner.pooled.stutter = Stutter(frozenset(statements), 0.5, (lease, lease + 3.0))
    handlers.troubled, handlers.failing, handlers.lazy = 0.9, 0.8, True
    cluster.later(seconds, setattr, runner.pooled, "stutter", None)
    cluster.later(seconds, handlers.recover)


def stall(cluster: Cluster) -> None:
    """The requests of the pool are held back, all of them, while the lock session stands."""
    world, runner = cluster.world, cluster.somebody()
    seconds = cluster.timers.lease + world.between((-0.5, 4.0))
    world.note("fault_stall", pod=runner.name, seconds=round(seconds, 2))
    runner.pooled.black_holes |= {Way.OUT}
    world.after(seconds, runner.pooled.heal)


def _some_links(cluster: Cluster, runner: Runner) -> tuple[Link, ...]:
    """The whole network, or just the way of the pool."""
    return runner.links if cluster.world.chance(0.6) else (runner.pooled,)


def _named(ways: set[Way]) -> list[str]:
    return sorted(way.value for way in ways)


# ── the server ──────────────────────────────────────────────────────────────────────────────────


def restart_server(cluster: Cluster) -> None:
    world, server = cluster.world, cluster.server
    world.note("fault_restart")
    server.restart()
    world.after(world.between(_SHORT), setattr, server, "up", True)


def freeze_server(cluster: Cluster) -> None:
    world, server = cluster.world, cluster.server
    world.note("fault_freeze_server")
    server.freeze()
    world.after(world.between(_LONG), server.thaw)


def slow_server(cluster: Cluster) -> None:
    world, server = cluster.world, cluster.server
    world.note("fault_slow_server")
    server.stumble_probability = 0.5
    cluster.later(world.between(_LONG), setattr, server, "stumble_probability", 0.01)


def unreplicated(cluster: Cluster) -> None:
    """The synchronous standby is away, and somebody cancels the waits."""
    world, server = cluster.world, cluster.server
    world.note("fault_unreplicated")
    server.replicated = False
    world.after(world.between(_SHORT), setattr, server, "replicated", True)


def fill_the_disk(cluster: Cluster) -> None:
    """Whatever writes is refused with an error; nothing of it is done."""
    world, server = cluster.world, cluster.server
    world.note("fault_disk_full")
    server.full = True
    cluster.later(world.between(_SHORT), setattr, server, "full", False)


def lock_a_row(cluster: Cluster) -> None:
    """A write sits on the row of a term while it changes hands."""
    world, group_id = cluster.world, cluster.world.random.choice([*cluster.groups.values()])
    seconds = world.between((0.3, 8.0))
    world.note("fault_lock_a_row", group=group_id, seconds=round(seconds, 2))
    cluster.server.rows_locked_until[group_id] = world.now + seconds
    terminate(cluster)


def cap_connections(cluster: Cluster) -> None:
    """Nobody new gets in: the connections are all taken."""
    world, server = cluster.world, cluster.server
    world.note("fault_connection_cap")
    server.sessions_max = len(server.sessions)
    cluster.later(world.between(_LONG), setattr, server, "sessions_max", None)


def terminate(cluster: Cluster) -> None:
    """pg_terminate_backend on somebody's lock session; a pod cut off does not hear of it."""
    world, runner = cluster.world, cluster.somebody()
    sessions = cluster.server.sessions.values()
    mine = [s for s in sessions if s.client.runner_id.startswith(runner.name)]
    for session in mine:
        world.note("fault_terminate", pid=session.pid)
        cluster.server.end(session, "terminated")


def fail_over(cluster: Cluster, *, lost_seconds: float = 0.0) -> None:
    world, server = cluster.world, cluster.server
    world.note("fault_failover", lost_seconds=round(lost_seconds, 3))
    server.fail_over(lost_seconds=lost_seconds, silently=lambda _: world.chance(0.5))
    world.after(world.between((0.05, 3.0)), setattr, server, "up", True)


def fail_over_lossy(cluster: Cluster) -> None:
    fail_over(cluster, lost_seconds=cluster.world.between((0.0, 5.0)))


def step_wall_clock(cluster: Cluster) -> None:
    world = cluster.world
    seconds = world.random.choice((-3600.0, -30.0, -2.0, 2.0, 3600.0))
    world.note("fault_wall_clock", seconds=seconds)
    cluster.server.step_wall_clock(seconds)


# ── the app ─────────────────────────────────────────────────────────────────────────────────────


def app_fails_checks(cluster: Cluster) -> None:
    world, runner = cluster.world, cluster.somebody()
    hangs = world.chance(0.5)
    world.note("fault_app_checks", app=runner.app.name, hangs=hangs)
    runner.app.fail_checks(hang=hangs)
    world.after(world.between((0.5, 12.0)), runner.app.recover)


def app_misbehaves(cluster: Cluster) -> None:
    world, runner = cluster.world, cluster.somebody()
    app = runner.app
    app.on_become = world.random.choice([*Conduct])
    app.on_lose = world.random.choice([*Conduct])
    world.note("fault_conduct", app=app.name, become=app.on_become.value, lose=app.on_lose.value)
    world.after(world.between(_LONG), app.recover)


def app_restarts(cluster: Cluster) -> None:
    world, app = cluster.world, cluster.somebody().app
    world.note("fault_app_restart", app=app.name)
    app.stop()
    world.after(world.between(_SHORT), app.start)


def app_replaced(cluster: Cluster) -> None:
    """Its successor listens at once where it did; the old process is not gone yet."""
    world, app = cluster.world, cluster.somebody().app
    if app.running:
        world.note("fault_app_replaced", app=app.name)
        app.be_replaced()


def app_troubled(cluster: Cluster) -> None:
    """Its handlers fail, decline, take long or hang."""
    world, app = cluster.world, cluster.somebody().app
    app.handlers.troubled = world.between((0.2, 0.9))
    world.note("fault_handlers", app=app.name, troubled=round(app.handlers.troubled, 2))
    world.after(world.between(_LONG), setattr, app.handlers, "troubled", 0.0)


def all_wedged(cluster: Cluster) -> None:
    """No handler anywhere does its work, though every app answers its checks."""
    world, seconds = cluster.world, cluster.world.between((3.0, 15.0))
    world.note("fault_all_wedged", seconds=round(seconds, 2))
    for runner in cluster.runners:
        runner.app.handlers.troubled = 1.0
        world.after(seconds, setattr, runner.app.handlers, "troubled", 0.0)


# ── operators ───────────────────────────────────────────────────────────────────────────────────


def meddle(cluster: Cluster) -> None:
    """Somebody pauses, changes, triggers, backfills, cancels or retries, through any pod."""
    runner = cluster.somebody()
    if runner.running and not runner.process.frozen:
        act, call = cluster.workload.meddle(runner.work)
        cluster.world.note("operator", act=act, through=runner.process.name)
        runner.process.spawn(_tried(call), "operator")


async def _tried(call: Coroutine[Any, Any, object]) -> None:
    """People read the error, if there is one."""
    with suppress(SidecarError):
        await call


# ── several at once, because alone they are rarely found together ──────────────────────────────


def freeze_and_terminate(cluster: Cluster) -> None:
    """The leader stands still while the server ends its session."""
    runner = cluster.somebody()
    if runner.running:
        process = runner.process
        process.freeze()
        cluster.world.after(cluster.world.between(_LONG), process.thaw)
        cluster.later(cluster.world.between((0.0, 1.0)), terminate, cluster)


def slow_answer_and_crash(cluster: Cluster) -> None:
    """The last ping is answered late, then the sidecar dies and its app goes on trusting."""
    world, runner = cluster.world, cluster.somebody()
    seconds = world.between((2.0, 6.0))
    for link in runner.links:
        link.slow.update({Way.OUT: (0.2, 0.9), Way.BACK: (0.5, 1.6)})
        world.after(seconds, link.heal)
    cluster.later(world.between((0.5, 2.0)), _crash_when_renewed, cluster, runner, float("inf"))
    cluster.later(world.between((6.0, 10.0)), _start, runner)


def _crash_when_renewed(cluster: Cluster, runner: Runner, trusted_until: float) -> None:
    """As soon as its app has been promised more time."""
    now = max((belief.until for belief in runner.app.beliefs.values()), default=0.0)
    if not runner.running or not now:
        return
    if now > trusted_until:
        runner.crash(server_notices=True)
    else:
        cluster.later(0.05, _crash_when_renewed, cluster, runner, now)


def hang_and_resign(cluster: Cluster) -> None:
    """The app stops reading just before it would be told that its term ends."""
    world, runner = cluster.world, cluster.somebody()
    world.note("fault_app_checks", app=runner.app.name, hangs=True)
    runner.app.fail_checks(hang=True)
    world.after(world.between(_LONG), runner.app.recover)
    for group_id in cluster.groups.values():
        cluster.server.resign_requests[group_id] = cluster.server.rows[group_id].epoch
    cluster.hint(runner, runner.resign_requested)


def lose_the_hand_over(cluster: Cluster) -> None:
    """A clean hand-over, and a failover that forgets who came after it."""
    resign(cluster)
    for seconds in (1.0, 2.0, 3.0, 4.0, 5.0):
        cluster.later(seconds, _forget_successor, cluster)


def _forget_successor(cluster: Cluster) -> None:
    ago = cluster.server.clean_seconds_ago()
    if ago is not None and ago < 2.5:
        fail_over(cluster, lost_seconds=ago)


ALWAYS: tuple[Fault, ...] = (
    freeze,
    crash,
    stop,
    resign,
    cut,
    lose_answers,
    stutter,
    stall,
    black_hole,
    slow_network,
    refuse,
    restart_server,
    freeze_server,
    slow_server,
    unreplicated,
    fill_the_disk,
    lock_a_row,
    cap_connections,
    terminate,
    fail_over,
    app_fails_checks,
    app_misbehaves,
    app_restarts,
    app_replaced,
    app_troubled,
    all_wedged,
    meddle,
    freeze_and_terminate,
    slow_answer_and_crash,
    hang_and_resign,
)
# What makes trouble together, so that each history has a fair chance to go deep somewhere.
THEMES: tuple[tuple[Fault, ...], ...] = (
    (lose_answers, stutter, meddle),
    (stutter,),
    (stutter,),
    (lose_answers, app_troubled),
    (slow_answer_and_crash,),
    (hang_and_resign, app_misbehaves, resign),
    (meddle, stall),
    (all_wedged, app_troubled, stall),
)
LOSING_WRITES: tuple[Fault, ...] = (fail_over_lossy, lose_the_hand_over)
STEPPING_CLOCKS: tuple[Fault, ...] = (step_wall_clock,)
