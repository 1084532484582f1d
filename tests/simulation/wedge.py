"""Handlers stop working under a settled leader whose app answers its checks (G10).

Then /readyz turns red in time, the group moves on if that may help, leadership does not go round in
circles, and all is green again soon after the handlers work.
"""

from dataclasses import dataclass
from enum import Enum

from sidecar.model.health import Vitals
from tests.simulation.cluster import Cluster, Parts
from tests.simulation.health_judge import is_silent, limit_seconds
from tests.simulation.runners import Runner
from tests.simulation.scenario import bury, logs_to
from tests.simulation.world import World

_FORMING_SECONDS = 14.0
_RED_SLACK_SECONDS = 5.0
_GREEN_SECONDS = 15.0
_RECOVERY_SECONDS = 40.0
_WEDGED_SECONDS = 60.0
_HAND_OVER_SECONDS = 30.0
_FLAPS = 6
_FLAP_SECONDS = (12.0, 8.0)  # wedged, at work


class Where(Enum):
    """Whose handlers are wedged."""

    LEADER = "leader"  # the next leader's work
    EVERYWHERE = "everywhere"
    FLAPPING = "flapping"  # everywhere, again and again
    ALONE = "alone"  # nobody else campaigns


@dataclass(frozen=True, slots=True)
class Wedge:
    """What came of it."""

    seed: int
    violations: tuple[str, ...]
    step_downs: int
    campaigning: int


def wedge(seed: int, where: Where, parts: Parts | None = None) -> Wedge:
    """One history; which group is watched, and all the rest, is decided by the seed."""
    world = World(seed)
    with logs_to(world):
        cluster = Cluster(world, parts or Parts())
        cluster.hint_loss = cluster.server.stumble_probability = 0.0
        cluster.rebalance = False
        for runner in cluster.runners:
            runner.rebalance = False
            runner.campaign = where is not Where.ALONE or runner is cluster.runners[0]
            world.after(world.between((0.0, 1.0)), runner.start)
        world.after(1.0, cluster.judge.watch)
        world.loop.run_for(_FORMING_SECONDS)
        _Watch(cluster, where).run()
        bury(cluster)
    campaigning = sum(r.campaign for r in cluster.runners)
    return Wedge(seed, tuple(world.violations), cluster.judge.step_downs, campaigning)


class _Watch:
    def __init__(self, cluster: Cluster, where: Where) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._where = where
        self._group = min((v.limit, v.group) for v in self._watched_limits())[1]

    def _watched_limits(self) -> "list[_Limit]":
        return [
            _Limit(limit_seconds(v), v.group)
            for v in self._vitals()
            if v.watched and v.expected_seconds
        ] or [_Limit(limit_seconds(v), v.group) for v in self._vitals()]

    def run(self) -> None:
        leader = self._cluster.leader(self._group)
        if leader is None:
            self._world.violated("G8: nobody leads a cluster that nothing happened to")
            return
        one = self._where in (Where.LEADER, Where.ALONE)
        wedged = [leader] if one else self._cluster.runners
        if self._where is Where.FLAPPING:
            self._flap(wedged)
        else:
            self._stay(wedged, leader)
        self._expect_green()

    def _flap(self, runners: list[Runner]) -> None:
        """The judge of health says how often a leader may step down."""
        for _ in range(_FLAPS):
            for wedged, seconds in zip((True, False), _FLAP_SECONDS, strict=True):
                self._set(runners, wedged)
                self._world.loop.run_for(seconds, self._violated)

    def _stay(self, runners: list[Runner], leader: Runner) -> None:
        self._set(runners, True)
        self._expect_red()
        self._world.loop.run_for(_WEDGED_SECONDS, self._violated)
        if self._where is Where.LEADER and self._cluster.leader(self._group) is leader:
            self._world.violated("G10: the wedged leader does not step down")
        self._expect_constancy()
        self._set(runners, False)

    def _set(self, runners: list[Runner], wedged: bool) -> None:
        for runner in runners:
            runner.app.handlers.wedged = wedged

    def _expect_red(self) -> None:
        seconds = min(v.limit for v in self._watched_limits() if v.group == self._group)
        seconds += _RED_SLACK_SECONDS
        self._world.loop.run_for(seconds, lambda: self._violated() or self._red())
        if not self._red():
            self._world.violated(f"G10: wedged for {seconds:g} s and not red")

    def _expect_constancy(self) -> None:
        """Whoever could step down has done so, and nobody does it twice."""
        before = self._cluster.judge.step_downs
        self._world.loop.run_for(_HAND_OVER_SECONDS, self._violated)
        if self._cluster.judge.step_downs != before:
            self._world.violated("G10: leadership goes round in circles")

    def _expect_green(self) -> None:
        run_for = self._world.loop.run_for
        run_for(_RECOVERY_SECONDS, lambda: self._violated() or not self._silent())
        if self._silent():
            self._world.violated("G10: no success though the handlers work")
        run_for(_GREEN_SECONDS, lambda: self._violated() or not self._red())
        if self._red():
            self._world.violated(f"G10: red {_GREEN_SECONDS:g} s after the recovery")

    def _violated(self) -> bool:
        return bool(self._world.violations)

    def _vitals(self) -> tuple[Vitals, ...]:
        return self._cluster.judge.health.vitals().entities

    def _silent(self) -> bool:
        now = self._cluster.tables.now
        return any(is_silent(v, now) for v in self._vitals() if v.group == self._group)

    def _red(self) -> bool:
        """Is /readyz red for staleness, at whoever leads?"""
        leader: Runner | None = self._cluster.leader(self._group)
        return leader is not None and bool(leader.work.switch.stale())


@dataclass(frozen=True, slots=True, order=True)
class _Limit:
    limit: float
    group: str
