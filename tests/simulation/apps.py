"""Models of the apps: what they are told, what they believe, how they fail.

An app believes that it leads from the arrival of OnBecomeLeader until OnLoseLeadership arrives or
the trust time it was given ends (G1); `Leadership.Watch` renews it. `ModelLink` is the sidecar's
end: it fits the ports `sidecar.election.elector.App` and `sidecar.election.app_watch.Link`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from sidecar.model.term import ANY_EPOCH
from sidecar.model.election_types import LeaderView
from sidecar.model.errors import AppNotServing, AppUnavailable, LeaderHandoffFailed, SidecarError
from sidecar.model.run import Answer, CallFailed, Run, RunRef
from sidecar.model.term import LossReason, Term
from tests.simulation.handlers import Handlers, Handling
from tests.simulation.loop import Process
from tests.simulation.world import Link, Way, World

_CALL_LATENCY = (0.0002, 0.002)
_WORK_SECONDS = (0.0, 0.1)
_SLOW_SECONDS = (0.5, 4.0)


class Conduct(Enum):
    """How the app answers a callback."""

    WELL = "well"
    SLOWLY = "slowly"
    WITH_AN_ERROR = "error"
    NEVER = "never"


@dataclass(slots=True)
class Belief:
    """One term as the app knows it. Times are global."""

    epoch: int
    until: float
    answered: bool = False


class Witness(Protocol):
    """Whoever judges what the apps believe."""

    def believes(self, app: "App", group: str, belief: Belief) -> None: ...
    def executes(self, app: "App", run: Run) -> None: ...


class Ledger(Protocol):
    """Whoever judges the order of a sidecar's calls."""

    def becoming(self, caller: Process, term: Term) -> None: ...
    def became(self, caller: Process, term: Term) -> None: ...
    def losing(self, caller: Process, term: Term, reason: LossReason) -> None: ...
    def lose_ended(self, caller: Process, term: Term, acknowledged: bool) -> None: ...


Reply = Callable[[SidecarError | None], None]
Keep = Callable[[RunRef, str, bytes], Awaitable[None]]


@dataclass(eq=False)
class App:
    """The process next to a sidecar."""

    name: str
    world: World
    witness: Witness
    healthy: bool = True
    hangs: bool = False
    running: bool = True
    on_become: Conduct = Conduct.WELL
    on_lose: Conduct = Conduct.WELL
    failing_since: float | None = None  # since when health checks cannot succeed
    beliefs: dict[str, Belief] = field(default_factory=dict)
    previous_beliefs: dict[str, Belief] = field(
        default_factory=dict
    )  # of the process before this one
    lost: dict[str, int] = field(default_factory=dict)
    _backlog: list[Callable[[], None]] = field(default_factory=list)
    links: "list[ModelLink]" = field(default_factory=list)
    handlers: Handlers = field(init=False)

    def __post_init__(self) -> None:
        self.handlers = Handlers(self.world)

    def receive(self, act: Callable[[], None]) -> None:
        """A message arrives; an app that hangs reads it later."""
        if self.hangs:
            self._backlog.append(act)
        elif self.running:
            act()

    # ── callbacks ───────────────────────────────────────────────────────────────────────────────

    def become(self, term: Term, until: float, reply: Reply) -> None:
        self.world.note("told_become", app=self.name, group=term.group, epoch=term.epoch)
        if term.epoch <= self.lost.get(term.group, 0):
            reply(None)  # An app may ignore epochs not above the last one lost.
            return
        belief = self.beliefs[term.group] = Belief(term.epoch, until)
        self.witness.believes(self, term.group, belief)
        self._answer(self.on_become, reply, belief)

    def lose(self, term: Term, reply: Reply) -> None:
        self.world.note("told_lose", app=self.name, group=term.group, epoch=term.epoch)
        belief = self.beliefs.get(term.group)
        if belief and (term.epoch == ANY_EPOCH or term.epoch >= belief.epoch):
            self.lost[term.group] = belief.epoch
            del self.beliefs[term.group]
        self._answer(self.on_lose, reply, None)

    def renew(self, view: LeaderView, until: float) -> None:
        belief = self.beliefs.get(view.group)
        if belief and view.is_leader and belief.epoch == view.epoch and until > belief.until:
            belief.until = until
            self.witness.believes(self, view.group, belief)

    def execute(self, handling: Handling) -> None:
        if not handling.ended:  # Cancelled before it was read.
            self.witness.executes(self, handling.run)
            self.handlers.handle(handling)

    def _answer(self, conduct: Conduct, reply: Reply, belief: Belief | None) -> None:
        if conduct is Conduct.NEVER:
            return
        span = _SLOW_SECONDS if conduct is Conduct.SLOWLY else _WORK_SECONDS
        failed = conduct is Conduct.WITH_AN_ERROR
        error = LeaderHandoffFailed("the app says no") if failed else None
        self.world.after(self.world.between(span), self._reply, reply, error, belief)

    def _reply(self, reply: Reply, error: SidecarError | None, belief: Belief | None) -> None:
        if self.hangs:
            self._backlog.append(lambda: self._reply(reply, error, belief))
        elif self.running:
            if belief:
                belief.answered = error is None
            reply(error)

    # ── faults ──────────────────────────────────────────────────────────────────────────────────

    def fail_checks(self, *, hang: bool) -> None:
        self.hangs, self.healthy = hang or self.hangs, False
        if self.failing_since is None:
            self.failing_since = self.world.now

    @property
    def answers(self) -> bool:
        """Nothing is wrong with it."""
        well = self.healthy and self.on_lose is Conduct.WELL
        return well and self.running and not self.hangs

    def recover(self) -> None:
        self.healthy, self.hangs, self.failing_since = True, False, None
        self.on_become = self.on_lose = Conduct.WELL
        self.handlers.recover()
        backlog, self._backlog = self._backlog, []
        for act in backlog:
            self.receive(act)

    def stop(self) -> None:
        """The process ends: its beliefs go, its connections break."""
        self.running, self.hangs = False, False
        self.beliefs.clear()
        self.lost.clear()
        self._backlog.clear()
        for link in self.links:
            link.disconnect()

    def be_replaced(self) -> None:
        """It closes its server and lives on, believing; another process answers in its place."""
        self.previous_beliefs = dict(self.beliefs)
        self.stop()
        self.start()

    def start(self) -> None:
        self.running = True
        for link in self.links:
            link.connect()


class ModelLink:
    """The connection of one sidecar process to its app."""

    doubts = True  # what another process says of a term

    def __init__(self, process: Process, app: App, world: World, ledger: Ledger) -> None:
        self._process = process
        self._ledger = ledger
        self._app = app
        self._world = world
        self.keep: Keep  # the sidecar's Runs.Checkpoint
        self._calls: list[asyncio.Future[Any]] = []
        self._state = asyncio.Event()  # set: connected
        self._broken = asyncio.Event()
        self._disconnects = 0
        self._disconnects_at_become: dict[Term, int] = {}
        self._network = Link(world, latency=_CALL_LATENCY)
        self.connect() if app.running else self.disconnect()

    # ── the connection ──────────────────────────────────────────────────────────────────────────

    def connect(self) -> None:
        self._wire = self._network.wire(Way.OUT)
        self._back = self._network.wire(Way.BACK)
        self._broken.clear()
        self._state.set()

    def disconnect(self) -> None:
        if self._state.is_set():
            self._wire.close()
            self._back.close()
        self._state.clear()
        self._broken.set()
        self._disconnects += 1
        for call in self._calls:
            if not call.done():
                call.set_exception(AppUnavailable("connection lost"))
        self._calls.clear()

    async def wait_connected(self) -> None:
        await self._state.wait()

    async def wait_disconnected(self) -> None:
        await self._broken.wait()

    # ── calls ───────────────────────────────────────────────────────────────────────────────────

    async def check(self, timeout: float) -> None:
        def answer(reply: Reply) -> None:
            reply(None if self._app.healthy else AppNotServing("NOT_SERVING"))

        await self._call(answer, timeout)

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        until = self._process.global_time(trusted_until)
        self._ledger.becoming(self._process, term)
        self._disconnects_at_become[term] = self._disconnects
        try:
            await self._call(lambda reply: self._app.become(term, until, reply), timeout)
        finally:
            self._ledger.became(self._process, term)

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        self._ledger.losing(self._process, term, reason)
        at_become = self._disconnects_at_become.pop(term, None)
        acknowledged = False
        try:
            await self._call(lambda reply: self._app.lose(term, reply), timeout)
            if self.doubts and at_become not in (None, self._disconnects):
                raise LeaderHandoffFailed("another process may have answered")
            acknowledged = True
        finally:
            self._ledger.lose_ended(self._process, term, acknowledged)

    async def execute(self, run: Run) -> Answer:
        if not self._state.is_set() or self._process.dead:
            return CallFailed("UNAVAILABLE", "not connected", delivered=False)
        answer, back = self._expected(), self._back
        handling = Handling(run, lambda a: back.send(_settle, answer, a), self._keep)
        self._wire.send(self._app.receive, lambda: self._app.execute(handling))
        try:
            result: Answer = await answer
        except AppUnavailable as error:
            handling.cancel()
            return CallFailed("UNAVAILABLE", str(error))
        except asyncio.CancelledError:
            self._wire.send(self._app.receive, handling.cancel)
            raise
        return result

    def _keep(self, ref: RunRef, step: str, value: bytes, done: Reply) -> None:
        """The app calls Runs.Checkpoint."""

        async def keep() -> None:
            error = None
            try:
                await self.keep(ref, step, value)
            except SidecarError as problem:
                error = problem
            if not self._process.dead:
                self._wire.send(self._app.receive, lambda: done(error))

        self._back.send(self._process.call, lambda: self._process.spawn(keep(), "checkpoint"))

    def renew(self, view: LeaderView) -> None:
        """An answer on the stream of Leadership.Watch."""
        until = self._process.global_time(view.trusted_until)
        if self._state.is_set() and not self._process.dead:
            self._wire.send(self._app.receive, lambda: self._app.renew(view, until))

    async def _call(self, act: Callable[[Reply], None], timeout: float) -> None:
        if not self._state.is_set() or self._process.dead:
            raise AppUnavailable("not connected")
        answer, back = self._expected(), self._back

        def reply(error: SidecarError | None) -> None:
            back.send(_settle, answer, error)

        self._wire.send(self._app.receive, lambda: act(reply))
        try:
            async with asyncio.timeout(timeout):
                await answer
        except TimeoutError:
            raise LeaderHandoffFailed("DEADLINE_EXCEEDED") from None

    def _expected(self) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls = [c for c in self._calls if not c.done()]
        self._calls.append(answer)
        return answer


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, SidecarError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
