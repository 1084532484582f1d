"""A cluster of pods on one modelled Postgres, built from the seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sidecar.model.election import Election
from sidecar.model.election_types import RunnerSeen, Timers
from tests.simulation.apps import App, ModelLink
from tests.simulation.invariants import Judge
from tests.simulation.postgres_model import Server
from tests.simulation.run_statements import RunStatements
from tests.simulation.runners import Runner
from tests.simulation.schedule_statements import ScheduleStatements
from tests.simulation.tables import Tables
from tests.simulation.work_client import ModelRuns, ModelSchedules
from tests.simulation.workload import Workload
from tests.simulation.world import World

RUNNERS = 3
_FAST = Timers(ping=0.6, lease=1.9, server_lease=2.5, poll=0.5, grace=2.0)
_GROUPS = ("default", "other", "third", "fourth")
_HINT_SECONDS = (0.001, 0.02)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a planted bug replaces."""

    election: type[Election] = Election
    link: type[ModelLink] = ModelLink
    server: type[Server] = Server
    run_statements: type[RunStatements] = RunStatements
    schedule_statements: type[ScheduleStatements] = ScheduleStatements
    runs: type[ModelRuns] = ModelRuns
    schedules: type[ModelSchedules] = ModelSchedules
    grace_factor: float = 1.0


class Cluster:
    """The pods and the server."""

    def __init__(self, world: World, parts: Parts) -> None:
        self.world = world
        self.judge = Judge(world)
        names = _GROUPS[: world.random.choice((1, 1, 1, 2, 2, 4))]
        self.groups = {name: number for number, name in enumerate(names, start=1)}
        self.timers = self._timers(parts)
        self.rebalance = world.chance(0.3)
        self.server = parts.server(world, self.judge, tuple(self.groups.values()))
        self.server.on_notify.append(self._released)
        self.server.on_rewind.append(self._rewind)
        self.tables = self.judge.work.tables = Tables(
            now=lambda: self.server.wall,
            seconds=lambda: world.now,
            stands=self.server.stands,
            vacant=self.server.vacant,
            auditor=self.judge.work,
        )
        self.workload = Workload(world, self.tables, self.groups)
        self.workload.plant(parts)
        statements = self.workload.schedule_statements
        self.judge.health.vitals = lambda: statements.vitals([*self.groups])
        self.runners = [self._runner(f"pod{n}", parts) for n in range(1, RUNNERS + 1)]
        self.runners[-1].campaign = not world.chance(0.2)
        self.judge.runners = self.runners
        world.loop.after_step = self.judge.check_trust
        self.storming = True
        self.hint_loss = 0.2

    def _timers(self, parts: Parts) -> Timers:
        world = self.world
        timers = _FAST if world.chance(0.3) else Timers()
        return replace(
            timers,
            grace=timers.grace * parts.grace_factor,
            drain=world.between((1.0, 6.0)),
            callback_timeout=1.0 if world.chance(0.3) else world.between((1.0, 6.0)),
        )

    def _runner(self, name: str, parts: Parts) -> Runner:
        app = App(f"app-{name}", self.world, self.judge)
        runner = Runner(
            name,
            self.world,
            self.server,
            app,
            self.timers,
            self.groups,
            self.judge,
            self,
            self.workload,
        )
        runner.rebalance = self.rebalance
        runner.election_class = parts.election
        runner.link_class = parts.link
        runner.on_stopped = self.judge.stopped
        return runner

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    def seen(self) -> list[RunnerSeen]:
        return [
            RunnerSeen(r.process.name, r.election.campaigning, 100.0)
            for r in self.runners
            if r.running
        ]

    def leaders(self, group: str) -> list[Runner]:
        """The runners whose app believes in a trusted term of this group."""
        now = self.world.now
        return [
            r for r in self.runners if (belief := r.app.beliefs.get(group)) and belief.until > now
        ]

    def leader(self, group: str) -> Runner | None:
        """The one leader whose sidecar and app agree on it, if there is just one."""
        leaders = self.leaders(group)
        if len(leaders) != 1 or not leaders[0].running:
            return None
        (runner,) = leaders
        view = runner.elector.view(group)
        belief = runner.app.beliefs[group]
        agreed = view.is_leader and belief.answered and view.epoch == belief.epoch
        return runner if agreed else None

    def somebody(self) -> Runner:
        """A pod to hurt: mostly one that leads."""
        leading = [r for g in self.groups for r in self.leaders(g)]
        if leading and self.world.chance(0.6):
            return self.world.random.choice(leading)
        return self.world.random.choice(self.runners)

    def sidecars(self) -> Iterator[Runner]:
        return (r for r in self.runners if r.running)

    # ── hints ───────────────────────────────────────────────────────────────────────────────────

    def _released(self, group_id: int) -> None:
        for runner in self.sidecars():
            self.hint(runner, runner.released, group_id)

    def notify(self, topic: str) -> None:
        """A hint of the work, to everybody."""
        for runner in self.sidecars():
            self.hint(runner, runner.hints.arrived, topic)

    def hint(self, runner: Runner, act: object, *arguments: object) -> None:
        """A notification: late, or lost."""
        link = runner.database
        if not (link.black_holes or link.refuses or self.world.chance(self.hint_loss)):
            delay = self.world.between(_HINT_SECONDS)
            self.world.after(delay, runner.process.call, act, *arguments)

    # ── failovers ───────────────────────────────────────────────────────────────────────────────

    def _rewind(self, seconds: float) -> None:
        self.tables.rewind(seconds)
        self.judge.work.rewound()

    # ── healing ─────────────────────────────────────────────────────────────────────────────────

    def later(self, seconds: float, act: Callable[..., object], *arguments: object) -> None:
        """Do something that belongs to the storm, unless it is over by then."""
        self.world.after(seconds, lambda: self.storming and act(*arguments))

    def tend(self) -> None:
        """What stopped starts again."""
        for runner in self.runners:
            if not runner.running:
                runner.start()

    def heal(self) -> None:
        """Undo every fault, for good."""
        self.storming = False
        self.server.thaw()
        self.server.up = True
        self.server.replicated = True
        self.server.full = False
        self.server.rows_locked_until.clear()
        self.server.sessions_max = None
        self.server.stumble_probability = 0.0
        self.workload.resume()
        self.notify("schedules")
        for runner in self.runners:
            for link in runner.links:
                link.heal()
            runner.app.recover()
            if not runner.app.running:
                runner.app.start()
            if runner.running:
                runner.process.thaw()
