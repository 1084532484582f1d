"""One seed, one history: a cluster forms, faults rain, quiet returns, everybody stops.

In the quiet phase the cluster must heal: one leader per group in time (G8), none of them lost again
without a cause, and an outcome for every tick that was due (G4).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from sidecar.model.election_types import Phase
from sidecar.model.spreading import share
from tests.simulation import faults
from tests.simulation.cluster import Cluster, Parts
from tests.simulation.world import World

SEEDS = 500  # what the tests run
_FORMING_SECONDS = (3.0, 9.0)
_STORM_SECONDS = 22.0
_PAUSE_SECONDS = (0.1, 3.0)
_KINDS_MAX = 6
_THEME_PROBABILITY = 0.4
_BESIDE_THEME_MAX = 2
_SETTLING_SECONDS = 8.0
_QUIET_SECONDS = 4.0
_TAKEOVER_SECONDS = 10.0
_OUTCOME_SECONDS = 25.0  # waits for a retry, a breaker, a timeout, and others before it
_TROUBLED = (0.0, 0.1, 0.3)
_STOP_SLACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came out of one seed."""

    seed: int
    violations: tuple[str, ...]
    trace_hash: str
    takeovers: int
    writes: int
    deliveries: int
    redeliveries: int
    completions: int
    step_downs: int


def simulate(seed: int, *, verbose: bool = False, parts: Parts | None = None) -> Report:
    """Run one seed to its end, or to the first violation."""
    world = World(seed, verbose=verbose)
    with logs_to(world):
        cluster = Cluster(world, parts or Parts())
        _Storm(cluster).run()
        judge = cluster.judge
        world.note("end", callbacks=world.loop.callbacks_run, chance=world.random.random())
        report = Report(
            seed,
            tuple(world.violations),
            world.trace_hash,
            judge.takeovers,
            judge.writes,
            judge.work.deliveries,
            judge.work.redeliveries,
            judge.work.completions,
            judge.step_downs,
        )
        bury(cluster)
    return report


class _Storm:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = world = cluster.world
        menu = [*faults.ALWAYS]
        menu += faults.LOSING_WRITES if world.chance(0.5) else faults.STEPPING_CLOCKS
        self._menu = world.random.sample(menu, world.random.randint(1, _KINDS_MAX))
        if world.chance(_THEME_PROBABILITY):
            self._menu = [*world.random.choice(faults.THEMES), *self._menu[:_BESIDE_THEME_MAX]]

    def run(self) -> None:
        world, cluster = self._world, self._cluster
        for runner in cluster.runners:
            world.after(world.between((0.0, 1.0)), runner.start)
        world.after(1.0, cluster.judge.watch)
        self._pass(world.between(_FORMING_SECONDS))
        for runner in cluster.runners:
            runner.app.handlers.troubled = world.random.choice(_TROUBLED)
        self._rain(world.now + _STORM_SECONDS)
        self._expect_healing()
        self._expect_rest()

    def _pass(self, seconds: float) -> None:
        self._world.loop.run_for(seconds, lambda: bool(self._world.violations))

    def _rain(self, until: float) -> None:
        world = self._world
        while world.now < until and not world.violations:
            world.after(0.0, world.random.choice(self._menu), self._cluster)
            self._pass(world.between(_PAUSE_SECONDS))

    # ── the quiet ───────────────────────────────────────────────────────────────────────────────

    def _expect_healing(self) -> None:
        world, cluster = self._world, self._cluster
        if world.violations:
            return
        world.note("quiet")
        world.after(0.0, cluster.heal)
        self._pass(0.0)
        due = cluster.server.wall
        self._expect_leaders()
        # Some are still finding out what hit them, or finish a hand-over.
        self._pass(_SETTLING_SECONDS)
        self._expect_leaders()
        self._expect_constancy()
        self._expect_outcomes(due)

    def _expect_constancy(self) -> None:
        world, judge = self._world, self._cluster.judge
        terms, step_downs = self._terms(), judge.step_downs
        settled = self._spread() and not self._handing_over()
        self._pass(_QUIET_SECONDS)
        changed = self._terms() != terms and judge.step_downs == step_downs and settled
        if not world.violations and changed:
            world.violated(f"G8: leaders changed without a cause: {terms} -> {self._terms()}")

    def _handing_over(self) -> bool:
        """Does somebody drain, for a cause that lies before the quiet?"""
        elections = (runner.election for runner in self._cluster.sidecars())
        return any(g.phase is Phase.DRAINING for e in elections for g in e.groups.values())

    def _spread(self) -> bool:
        """Is there nothing to rebalance?"""
        cluster = self._cluster
        led = Counter(r.name for g in cluster.groups for r in cluster.leaders(g))
        most = share(len(cluster.groups), sum(r.campaign for r in cluster.sidecars()))
        return not cluster.rebalance or all(count <= most for count in led.values())

    def _expect_outcomes(self, due: datetime) -> None:
        world, judge = self._world, self._cluster.judge.work
        if world.violations:
            return
        world.loop.run_for(
            _OUTCOME_SECONDS, lambda: bool(world.violations) or not judge.undone(due)
        )
        if not world.violations and (undone := judge.undone(due)):
            world.violated(f"G4: no outcome {_OUTCOME_SECONDS:g} s later: {undone[:3]}")
        judge.check_ticks()

    def _expect_leaders(self) -> None:
        world = self._world
        seconds = self._healing_seconds()
        world.loop.run_for(seconds, self._healed)
        if not world.violations and not self._led():
            phases = [
                (r.process.name, [g.phase.value for g in r.election.groups.values()])
                for r in self._cluster.sidecars()
            ]
            world.violated(f"G8: no leader {seconds:.1f} s after the faults: {phases}")

    def _healed(self) -> bool:
        self._cluster.tend()
        return bool(self._world.violations) or self._led()

    def _led(self) -> bool:
        return all(self._cluster.leader(g) for g in self._cluster.groups)

    def _terms(self) -> dict[str, int]:
        return {
            group: runner.app.beliefs[group].epoch
            for group in self._cluster.groups
            if (runner := self._cluster.leader(group))
        }

    def _healing_seconds(self) -> float:
        """A takeover, after the pause in which all runners may be that handed the group over."""
        pauses = [
            min(
                (
                    max(0.0, r.election.groups[g].compete_after - r.process.clock())
                    for r in self._cluster.sidecars()
                    if r.campaign and g in r.election.groups
                ),
                default=0.0,
            )
            for g in self._cluster.groups.values()
        ]
        return _TAKEOVER_SECONDS + max(pauses)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _expect_rest(self) -> None:
        world, cluster = self._world, self._cluster
        if world.violations:
            return
        for runner in cluster.runners:
            world.after(0.0, runner.stop)
        timers = cluster.timers
        seconds = timers.drain + timers.callback_timeout + _STOP_SLACK_SECONDS
        world.loop.run_for(seconds, lambda: bool(world.violations) or not any(cluster.sidecars()))
        if not world.violations and any(cluster.sidecars()):
            names = [r.process.name for r in cluster.sidecars()]
            world.violated(f"stop: {names} do not come to rest")


def bury(cluster: Cluster) -> None:
    """Let every task end, so that none is left to the garbage collector."""
    loop = cluster.world.loop
    for _ in range(2):  # The second time for what was about to start.
        for runner in cluster.sidecars():
            runner.crash(server_notices=False)
        loop.run_for(1.0)
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_for(0.1)


@contextmanager
def logs_to(world: World) -> Iterator[None]:
    """The sidecar's errors are violations; the rest of its log is dropped, or joins the trace."""

    def keep(_: object, method: str, event: MutableMapping[str, Any]) -> str:
        if method == "error":
            world.violated(f"logged: {event}")
        raise structlog.DropEvent

    old = structlog.get_config()
    structlog.configure(
        processors=[keep],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**old)
