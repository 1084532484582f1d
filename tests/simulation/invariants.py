"""The judge: what must hold in every history, checked whenever something happens.

- G1: the trust times of two apps never overlap in one group: `believes`, whenever an app is told;
  nor do those of two sidecars: `check_trust`, after every step of the world.
- G2: the epochs of a group rise with every takeover, also over failovers that lost writes:
  `taken_over`.
- G3: nothing is written under an epoch once a newer one exists in the database: `written`.
- G4 to G6, at every commit and every delivery: see `work_judge.py`.
- G8, and outcomes in time (G4), in the quiet phase: see `scenario.py` and `takeover.py`.
- G9: an app that fails its health checks does not become leader, and is leader no longer:
  `becoming`, and `watch` now and then.
- G10, as far as a leader steps down for staleness: see `health_judge.py` and `wedge.py`.
- Order: OnBecomeLeader, its answer, Execute, OnLoseLeadership; each term told of is taken back,
  before its trust ends unless the sidecar itself was stopped: `becoming`, `executes`, `losing`.
- Losses: an app that did not acknowledge a loss becomes leader of nothing before it has, and one
  that answers well does not believe in a term that its sidecar ended: `becoming`, `watch`.
"""

from dataclasses import dataclass

from sidecar.model.term import ANY_EPOCH
from sidecar.model.election_types import Phase
from sidecar.model.run import Run, RunRef
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import LossReason, Term
from tests.simulation.apps import App, Belief
from tests.simulation.health_judge import LOOK_SECONDS, READING_SECONDS, HealthJudge
from tests.simulation.loop import Process
from tests.simulation.runners import Runner
from tests.simulation.work_judge import WorkJudge
from tests.simulation.world import World

# Three checks a second apart, one of which had just begun, and the way of the news.
_HEALTH_SECONDS = 4.5
# A check a second apart, and the answers to it and to OnLoseLeadership.
_REPEAT_SECONDS = 3.0
# In these a sidecar may say that it leads.
_LEADING = (Phase.BECOMING, Phase.LEADING, Phase.DRAINING)
# Cancelled work is given 0.05 s to end before the app is told.
_TELL_SECONDS = 0.06


@dataclass(slots=True)
class _Told:
    """The last term that a sidecar told its app of."""

    epoch: int
    since: float
    become_ended: bool = False
    lost: bool = False
    acknowledged: bool | None = None  # None: OnLoseLeadership is under way


class Judge:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self.runners: list[Runner] = []
        self._world = world
        self._epochs: dict[int, int] = {}  # the highest ever
        self._live: dict[int, int] = {}  # what stands in the database
        self._told: dict[tuple[str, str], _Told] = {}
        # By runner: since when its app believes in which terms that are over.
        self._deaf_since: dict[str, dict[tuple[str, int], float]] = {}
        self.takeovers = 0
        self.writes = 0
        self.step_downs = 0
        self.work = WorkJudge(world, self.written, self._leads)
        self.health = HealthJudge(world)

    # ── the database ────────────────────────────────────────────────────────────────────────────

    def taken_over(self, group_id: int, epoch: int, runner_id: str) -> None:
        self.takeovers += 1
        self._world.note("taken_over", group=group_id, epoch=epoch, runner=runner_id)
        if epoch <= self._epochs.get(group_id, 0):
            self._world.violated(f"G2: epoch {epoch} after {self._epochs[group_id]}")
        self._epochs[group_id] = max(epoch, self._epochs.get(group_id, 0))
        self._live[group_id] = epoch

    def rewound(self, group_id: int, epoch: int) -> None:
        """A failover lost writes; a lost takeover is one that does not exist."""
        self._live[group_id] = epoch

    def committed(self) -> None:
        self.work.committed()

    def clock_stepped(self) -> None:
        self.health.clock_stepped()

    def written(self, group_id: int, epoch: int) -> None:
        self.writes += 1
        if epoch != self._live.get(group_id):
            self._world.violated(f"G3: written under epoch {epoch}, newer is {self._live}")

    # ── the apps ────────────────────────────────────────────────────────────────────────────────

    def believes(self, app: App, group: str, belief: Belief) -> None:
        now = self._world.now
        others = [(r.app, r.app.beliefs) for r in self.runners if r.app is not app]
        others += [(r.app, r.app.previous_beliefs) for r in self.runners]
        for other, beliefs in others:
            theirs = beliefs.get(group)
            if theirs and theirs.until > now and belief.until > now:
                self._world.violated(
                    f"G1: {app.name} (epoch {belief.epoch}) leads {group} while {other.name}"
                    f" (epoch {theirs.epoch}) may until {theirs.until:.4f}"
                )

    def executes(self, app: App, run: Run) -> None:
        belief = app.beliefs.get(run.group)
        if belief is None or belief.epoch != run.ref.epoch or not belief.answered:
            self._world.violated(f"order: Execute in {app.name} outside of term {run.ref}")
        self.work.delivered(run)

    # ── the sidecars' calls ─────────────────────────────────────────────────────────────────────

    def becoming(self, caller: Process, term: Term) -> None:
        if caller.dead:
            return
        self._world.note("becoming", runner=caller.name, group=term.group, epoch=term.epoch)
        told = self._told.get((caller.name, term.group))
        if told and (not told.lost or told.epoch >= term.epoch):
            self._world.violated(f"order: {caller.name} becomes {term.epoch} after {told}")
        for (name, group), other in self._told.items():
            if name == caller.name and other.acknowledged is False:
                self._world.violated(f"order: {name} becomes {term} before {group}: {other}")
        self._told[caller.name, term.group] = _Told(term.epoch, self._world.now)
        runner = self._runner(caller)
        app = runner.app
        if not runner.campaign:
            self._world.violated(f"order: {caller.name} leads though it does not campaign")
        if self._fails_checks(app) and self._runs_freely(caller):
            self._world.violated(f"G9: {app.name} fails its checks and becomes leader")

    def became(self, caller: Process, term: Term) -> None:
        told = self._told.get((caller.name, term.group))
        if told and told.epoch == term.epoch:
            told.become_ended = True

    def losing(self, caller: Process, term: Term, reason: LossReason) -> None:
        if caller.dead or term.epoch == ANY_EPOCH:
            return
        self._world.note("losing", runner=caller.name, epoch=term.epoch, reason=reason.value)
        told = self._told.get((caller.name, term.group))
        if told is None or told.epoch != term.epoch or not told.become_ended:
            self._world.violated(f"order: {caller.name} loses {term.epoch} after {told}")
            return
        if told.lost:
            if told.acknowledged is not False:
                self._world.violated(f"order: {caller.name} repeats a loss after {told}")
            return
        told.lost = True
        self._check_told_in_time(caller, term)

    def lose_ended(self, caller: Process, term: Term, acknowledged: bool) -> None:
        told = self._told.get((caller.name, term.group))
        if told and told.epoch == term.epoch:
            told.acknowledged = acknowledged

    def _check_told_in_time(self, caller: Process, term: Term) -> None:
        runner = self._runner(caller)
        group = runner.election.groups[term.group_id]
        late = caller.clock() - (group.trusted_until - runner.timers.margin + _TELL_SECONDS)
        if late > 0 and self._runs_freely(caller):
            self._world.violated(f"order: {caller.name} tells of the loss {late:.3f} s late")

    def recorded(self, completion: Completion, recorded: Recorded) -> None:
        self.work.recorded(completion, recorded)

    def step_kept(self, ref: RunRef, step: str, value: bytes) -> None:
        self.work.step_kept(ref, step, value)

    def steps_down(self, runner: Runner, group: str) -> None:
        name = runner.process.name
        self.step_downs += 1
        self._world.note("steps_down", runner=name, group=group)
        self.health.paces(name, group)
        blind = self._world.now - runner.work.schedules.vitals_read_at > READING_SECONDS
        if self._runs_freely(runner.process) and not blind:  # Silence counts as staleness.
            self.health.steps_down(name, group, self._told[name, group].since)

    def stopped(self, runner: Runner) -> None:
        """A sidecar has ended by its own will: it left nothing behind."""
        for (name, group), told in self._told.items():
            if name == runner.process.name and not told.lost:
                self._world.violated(f"stop: {name} leaves {group} without OnLoseLeadership")
        if not runner.election.idle:
            self._world.violated(f"stop: {runner.process.name} is not at rest")

    # ── now and then ────────────────────────────────────────────────────────────────────────────

    def watch(self) -> None:
        """Check what no single event shows, for ever."""
        for runner in self.runners:
            if runner.running and self._runs_freely(runner.process):
                self._check_freely_running(runner)
            else:
                self._deaf_since.pop(runner.name, None)
        self.work.watch()
        self.health.look()
        self._world.after(LOOK_SECONDS, self.watch)

    def _check_freely_running(self, runner: Runner) -> None:
        failing = self._fails_checks(runner.app)
        for group in runner.election.groups.values():
            view = runner.elector.view(group.name)
            told = self._told.get((runner.process.name, group.name))
            if failing and view.is_leader:
                self._world.violated(f"G9: {runner.app.name} fails its checks and leads")
            if told and not told.lost and told.epoch != group.epoch:
                self._world.violated(f"order: {runner.process.name} keeps epoch {told.epoch}")
            self._check_told(runner, group.name)

    def _check_told(self, runner: Runner, group: str) -> None:
        """An app that answers is told of a loss that it slept through."""
        app, view = runner.app, runner.elector.view(group)
        belief = app.beliefs.get(group)
        if belief is None:
            return
        key, deaf_since = (group, belief.epoch), self._deaf_since.setdefault(runner.name, {})
        if not app.answers or (view.is_leader and view.epoch == belief.epoch):
            deaf_since.pop(key, None)
            return
        since = deaf_since.setdefault(key, self._world.now)
        # A call that began before the app answered well may take its whole time.
        if self._world.now - since > runner.timers.callback_timeout + _REPEAT_SECONDS:
            self._world.violated(f"G1: {app.name} was not told that epoch {belief.epoch} is over")

    def check_trust(self) -> None:
        """After every step of the world: no two sidecars trust their terms of one group."""
        trusted: dict[str, str] = {}
        for runner in self.runners:
            for group in runner.election.groups.values() if runner.running else ():
                if group.phase not in _LEADING or group.trusted_until <= runner.process.clock():
                    continue
                if other := trusted.get(group.name):
                    self._world.violated(f"G1: {runner.process.name} and {other} are trusted")
                trusted[group.name] = runner.process.name

    def _fails_checks(self, app: App) -> bool:
        """For so long that its sidecar must know."""
        since = app.failing_since
        return since is not None and self._world.now - since > _HEALTH_SECONDS

    def _runner(self, process: Process) -> Runner:
        return next(r for r in self.runners if r.running and r.process is process)

    def _leads(self, epoch: int) -> bool:
        """Has this term gone on until now, undisturbed?"""
        return any(
            authority.term.epoch == epoch and not authority.draining.is_set()
            for runner in self.runners
            if runner.running and self._runs_freely(runner.process)
            for authority in runner.elector.authorities.all
        )

    def _runs_freely(self, process: Process) -> bool:
        """It was not stopped just now; then it is bound by its deadlines."""
        rested = self._world.now - process.thawed_at
        return not process.frozen and not process.dead and rested > 2 * _HEALTH_SECONDS
