"""One pod: an app and the sidecar next to it, wired as `sidecar/app.py` wires it.

Everything of the election is the real code: Election, Elector, AppWatch, Leadership; and so is the
leader's work. Only the ports are models.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol

from sidecar.election.app_watch import AppWatch
from sidecar.election.elector import Elector
from sidecar.election.leadership import Leadership
from sidecar.execution.authority import Authority
from sidecar.model.election import Election
from sidecar.model.election_types import RunnerSeen, Timers
from sidecar.model.run import RunRef
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.spreading import DISCOVERY_SECONDS
from sidecar.model.term import LossReason
from sidecar.model.unacknowledged import UnacknowledgedLosses
from tests.simulation.apps import App, Ledger, ModelLink
from tests.simulation.loop import Process
from tests.simulation.postgres_client import ModelLock
from tests.simulation.postgres_model import Server
from tests.simulation.work import Ports, Work
from tests.simulation.work_client import ModelHints, ModelPool
from tests.simulation.workload import Workload
from tests.simulation.world import Link, World

_REGISTRY_SECONDS = 5.0
# How fast the clocks of the machines run. The wide ones are nearly all that a grace of 1.05 leases
# allows: 1.024 / 0.976.
_RATES = (0.99, 1.01)
_RATES_WIDE = (0.976, 1.024)


class Registry(Protocol):
    """The table of living runners, and the channel of hints."""

    def seen(self) -> list[RunnerSeen]: ...
    def notify(self, topic: str) -> None: ...


class Bookkeeper(Ledger, Protocol):
    """Whoever judges what a sidecar does."""

    def recorded(self, completion: Completion, recorded: Recorded) -> None: ...
    def step_kept(self, ref: RunRef, step: str, value: bytes) -> None: ...
    def steps_down(self, runner: "Runner", group: str) -> None: ...


class Runner:
    """A pod whose app outlives its sidecar and the other way round."""

    election_class: type[Election] = Election
    link_class: type[ModelLink] = ModelLink

    def __init__(
        self,
        name: str,
        world: World,
        server: Server,
        app: App,
        timers: Timers,
        groups: Mapping[str, int],
        ledger: Bookkeeper,
        registry: Registry,
        workload: Workload,
    ) -> None:
        self.name = name
        self.app = app
        self.timers = timers
        self.database = Link(world)  # of the lock session
        self.pooled = Link(world)  # of the pool, which may go another way: through a pooler
        self.running = False
        self.stopping = False
        self.on_stopped: Callable[[Runner], None] = lambda _: None
        self.world = world
        self._server = server
        self._groups = groups
        self._ledger = ledger
        self._registry = registry
        self._workload = workload
        self.campaign = True
        self.rebalance = False
        self._lives = 0
        self._rate = world.between(_RATES_WIDE if world.chance(0.3) else _RATES)
        self._offset = world.between((0.0, 1000.0))

    @property
    def links(self) -> tuple[Link, Link]:
        return self.database, self.pooled

    # ── its lives ───────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """A new sidecar process, with a new runner id."""
        self._lives += 1
        self.running, self.stopping = True, False
        self.process = process = Process(
            self.world.loop, f"{self.name}.{self._lives}", rate=self._rate, offset=self._offset
        )
        self.world.note("start", runner=process.name)
        self._campaign_changed = asyncio.Event()
        self.link = self.link_class(process, self.app, self.world, self._ledger)
        self.app.links.append(self.link)
        self.lock = ModelLock(process, self._server, self.database, self.timers)
        self.pool = ModelPool(process, self._server, self.pooled, self.timers.lease)
        self.hints = ModelHints(self._registry.notify)
        losses = UnacknowledgedLosses()
        self.election = self.election_class(
            process.name,
            self.timers,
            self.world.random.random,
            campaign=self.campaign,
            rebalance=self.rebalance,
            losses=losses,
        )
        self.elector = Elector(
            self.election, self.lock, self.link, process.clock, takeover_sla=10.0
        )
        self.work = self._work()
        self.link.keep = self._keep
        self._watch = AppWatch(
            self.link,
            tuple(self._groups),
            losses,
            process.clock,
            interval=1.0,
            failures_max=3,
            callback_timeout=self.timers.callback_timeout,
        )
        self._process_spawn()

    def _work(self) -> Work:
        workload = self._workload
        ports = Ports(
            runs=workload.runs_class(self.pool, workload.run_statements),
            schedules=workload.schedules_class(self.pool, workload.schedule_statements),
            hints=self.hints,
            link=self.link,
            app_answers=lambda: self._watch.status.healthy,
            peers=self.elector,
            authorities=self.elector.authorities,
            recorded=self._ledger.recorded,
            chance=self.world.random.random,
        )
        return Work(self.process, ports, workload.singletons)

    async def _lead(self, authority: Authority) -> None:
        revoke = authority.revoke

        def witnessed(reason: LossReason) -> None:
            if reason is LossReason.STALE:
                self._ledger.steps_down(self, authority.term.group)
            revoke(reason)

        authority.revoke = witnessed
        await self.work.lead(authority)

    async def _keep(self, ref: RunRef, step: str, value: bytes) -> None:
        await self.work.runs.checkpoint(ref, step, value)
        self._ledger.step_kept(ref, step, value)

    def _process_spawn(self) -> None:
        process = self.process
        self._roots = [
            process.spawn(self._watch.run(), "app_watch"),
            process.spawn(self.elector.run(while_leading=self._lead), "election"),
            process.spawn(self._join(), "join"),
            *(process.spawn(self._renew(group), "watch") for group in self._groups),
        ]
        for task in self._roots:
            task.add_done_callback(self._root_ended)

    def crash(self, *, server_notices: bool) -> None:
        """The process is gone; its host, too, if the server does not notice."""
        self.running = False
        self.world.note("crash", runner=self.process.name)
        self.process.kill()
        self._leave_app()
        if self.lock.connection:
            self.lock.connection.cut(server_notices=server_notices)
        self.pool.cut(server_notices=server_notices)

    def stop(self, *, hurry: bool = False) -> None:
        """SIGTERM; a second one hurries."""
        self.world.note("stop", runner=self.process.name, hurry=hurry)
        self.process.call(self._begin_stop, hurry)

    def _begin_stop(self, hurry: bool) -> None:
        self.elector.handle(lambda now: self.election.stop(now, hurry=hurry))
        if not self.stopping:
            self.stopping = True
            self.process.spawn(self._stop(), "stop")

    async def _stop(self) -> None:
        await self.elector.stopped()
        self.world.note("stopped", runner=self.process.name)
        self.on_stopped(self)
        for task in self._roots:
            task.cancel()
        await asyncio.gather(*self._roots, return_exceptions=True)
        self.running = False
        self._leave_app()
        self.process.dead = True

    def _leave_app(self) -> None:
        self.app.links.remove(self.link)

    def _root_ended(self, task: asyncio.Task[None]) -> None:
        if not self.process.dead and not task.cancelled():
            self.world.violated(f"{self.process.name}: {task.get_name()}: {task.exception()!r}")

    # ── the steps beside the election ───────────────────────────────────────────────────────────

    async def _join(self) -> None:
        handle = self.elector.handle
        self._watch.on_change.append(self._app_changed)
        handle(lambda now: self.election.join(self._groups, now))
        self._app_changed(self._watch.status.healthy)
        while True:
            self._campaign_changed.clear()
            if not self.database.black_holes and not self.database.refuses:
                runners = self._registry.seen()
                handle(partial(self.election.runners_seen, runners))
            looking = self.election.discovering_peers(self.process.clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(DISCOVERY_SECONDS if looking else _REGISTRY_SECONDS):
                    await self._campaign_changed.wait()

    def _app_changed(self, healthy: bool) -> None:
        self.elector.handle(lambda now: self.election.app_health_changed(healthy, now))
        self._campaign_changed.set()

    def released(self, group_id: int) -> None:
        """The hint that a group was released has arrived."""
        self.elector.handle(lambda now: self.election.released_elsewhere(group_id, now))

    def resign_requested(self) -> None:
        self.elector.handle(lambda _: self.election.resign_requested())

    async def _renew(self, group: str) -> None:
        """What the app's Leadership.Watch shows it."""
        leadership = Leadership(
            self.elector, _NoRequests(), dict, lambda *_: None, groups=[*self._groups], host=""
        )
        async for view in leadership.watch(group):
            if view.is_leader:
                self.link.renew(view)


class _NoRequests:
    async def request_resign(self, group_id: int, epoch: int) -> None:
        """Resignations are asked for by the scenario, not through this pod's API."""
