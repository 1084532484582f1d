"""Follower and leader: drives the decisions of `model/election.py` against Postgres and the app.

Guarantees:
- the clock is asked before a statement is sent and after its answer was received, so that a slow
  answer never stretches a term;
- a deadline fires on its own timer, whatever hangs: the statement, the app, the connection;
- the app hears in order: OnBecomeLeader, then Execute, then (all work cancelled) OnLoseLeadership;
- a freshly started sidecar first ends whatever term its app still believes in.

    try-lock ─▶ takeover ─▶ grace ─▶ OnBecomeLeader ─▶ work(tenure) ─▶ drain ─▶ OnLoseLeadership
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import structlog

from sidecar import metrics
from sidecar.model.election import Election
from sidecar.model.election_words import (
    Become,
    Blocked,
    CancelBecome,
    CancelWork,
    Connect,
    DrainWork,
    Effect,
    HangUp,
    LeaderView,
    Lose,
    Ping,
    Result,
    StartWork,
    Statement,
    Takeover,
)
from sidecar.model.errors import LeaderHandoffFailed, SidecarError
from sidecar.model.run import RunRef
from sidecar.model.term import LossReason, Tenure, Term

log = structlog.get_logger()

LeaderWork = Callable[[Tenure], Coroutine[Any, Any, None]]

# OnLoseLeadership waits this long for cancelled work: its calls end at once, the rest is tidying.
_CANCEL_SECONDS = 0.05


class LockSession(Protocol):
    """The lock session. After a failure of `execute` it is only good for `open` again."""

    async def open(self) -> None: ...
    async def execute(self, statement: Statement) -> Result: ...
    def hang_up(self) -> None: ...
    async def close(self) -> None: ...


class App(Protocol):
    """The app's side of leadership. Each raises SidecarError if the app did not answer well."""

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


class Elector:
    """Runs the election of one runner for all groups of its cluster."""

    def __init__(
        self,
        election: Election,
        session: LockSession,
        app: App,
        work: LeaderWork,
        clock: Callable[[], float],
        *,
        takeover_sla: float,
    ) -> None:
        self.election = election
        self._session = session
        self._app = app
        self._work = work
        self._clock = clock
        self._takeover_sla = takeover_sla
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tenures: dict[Term, Tenure] = {}
        self._works: dict[Term, asyncio.Task[None]] = {}
        self._becomings: dict[Term, asyncio.Task[None]] = {}
        self._generation = 0

    # ── for everybody else ──────────────────────────────────────────────────────────────────────

    def view(self, group: str) -> LeaderView:
        return self.election.view(group)

    @property
    def tenures(self) -> list[Tenure]:
        """The terms that work is done under now."""
        return list(self._tenures.values())

    def trusts(self, group: str, epoch: int) -> bool:
        """Whether this very term may still be acted on."""
        for term, tenure in self._tenures.items():
            if term.epoch == epoch and term.group == group:
                return tenure.trusted
        return False

    async def changed(self) -> None:
        """Wait until something about leadership, or the trust in it, changed."""
        async with self._changed:
            await self._changed.wait()

    def tell(self, event: Callable[[float], None]) -> None:
        """Feed an event to the election, after the deadlines that passed before it."""
        now = self._clock()
        self.election.tick(now)
        event(now)
        self._wake.set()

    def resign(self, group: str, reason: LossReason) -> None:
        """Hand the group over, if it is led here."""
        for g in self.election.groups.values():
            if g.name == group:
                self.tell(partial(self.election.resign, g.id, reason))

    def write_refused(self, run: RunRef) -> None:
        """A write that the app sent on behalf of this run was refused."""
        self.tell(partial(self.election.write_refused, run.epoch))

    async def stopped(self) -> None:
        """Wait until nothing is held here and the app was told."""
        while not self.election.at_rest:
            await self.changed()

    # ── the loop ────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Campaign and lead for ever; cancel it when `stopped` has returned."""
        try:
            while True:
                await self._turn()
        finally:
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._session.close()

    async def _turn(self) -> None:
        self._wake.clear()
        self.election.tick(self._clock())
        self._perform(self.election.effects())
        if statement := self.election.next_statement(self._clock()):
            self._spawn(self._run_statement(statement, self._generation), "election.statement")
        async with self._changed:
            self._changed.notify_all()
        if self.election.has_effects:
            return
        delay = self.election.wake_at() - self._clock()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(delay, 60.0))):
                await self._wake.wait()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Connect():
                    self._spawn(self._connect(), "election.connect")
                case HangUp():
                    self._generation += 1
                    self._session.hang_up()
                case Become():
                    self._start_becoming(effect)
                case CancelBecome():
                    _cancel(self._becomings.get(effect.term))
                case StartWork():
                    self._start_work(effect.term)
                case DrainWork():
                    self._drain_work(effect)
                case CancelWork():
                    _cancel(self._works.get(effect.term))
                case Lose():
                    self._spawn(self._lose(effect), "election.lose")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, SidecarError):
            log.error("election_task_failed", task=task.get_name(), exc_info=error)

    # ── Postgres ────────────────────────────────────────────────────────────────────────────────

    async def _connect(self) -> None:
        try:
            await self._session.open()
        except Exception as error:  # whatever it was, the next try may succeed
            log.warning("lock_session_refused", **_told(error))
            self.tell(self.election.connect_failed)
        else:
            log.info("lock_session_open")
            self.tell(self.election.connected_now)

    async def _run_statement(self, statement: Statement, generation: int) -> None:
        sent_at = self._clock()
        try:
            result = await self._session.execute(statement)
        except Exception as error:  # without an answer nobody knows what is held
            if generation == self._generation:
                log.warning("lock_session_lost", **_told(error))
                self.tell(self.election.disconnected)
            return
        received_at = self._clock()
        if isinstance(statement, Ping):
            metrics.PING_SECONDS.observe(received_at - sent_at)
        if isinstance(statement, Takeover) and isinstance(result, Blocked):
            group = self.election.groups[statement.group_id]
            if group.blocked_at is None:  # it is tried again, and again
                log.warning("takeover_blocked", group=group.name)
        self.tell(
            lambda _: self.election.answered(statement, result, sent_at=sent_at, now=received_at)
        )

    # ── the app ─────────────────────────────────────────────────────────────────────────────────

    def _start_becoming(self, effect: Become) -> None:
        term = effect.term
        log.info("becoming_leader", group=term.group, epoch=term.epoch)
        task = self._becomings[term] = self._spawn(self._become(effect), "election.become")
        # A callback of the task, because a task cancelled before its first step runs nothing.
        task.add_done_callback(lambda done: self._became(term, done))

    async def _become(self, effect: Become) -> None:
        trusted_until = self.election.groups[effect.term.group_id].trusted_until
        await self._app.become_leader(effect.term, trusted_until, effect.timeout)

    def _became(self, term: Term, task: asyncio.Task[None]) -> None:
        del self._becomings[term]
        ok = not task.cancelled() and task.exception() is None
        self.tell(lambda now: self.election.became(term, ok, now))
        if ok:
            self._observe_takeover(self.election.groups[term.group_id].takeover_since)
        elif not task.cancelled():
            _handoff_failed("OnBecomeLeader", term, task.exception())

    def _observe_takeover(self, since: float) -> None:
        seconds = self._clock() - since
        metrics.TAKEOVER_SECONDS.observe(seconds)
        if seconds > self._takeover_sla:
            metrics.MIGRATION_SLA_EXCEEDED.inc()

    async def _lose(self, effect: Lose) -> None:
        term, acknowledged = effect.term, False
        if work := self._works.get(term):
            await asyncio.wait({work}, timeout=_CANCEL_SECONDS)
        reason = effect.reason.value
        log.info("losing_leadership", group=term.group, epoch=term.epoch, reason=reason)
        metrics.TERMS_ENDED.labels(reason).inc()
        try:
            await self._app.lose_leadership(term, effect.reason, effect.timeout)
            acknowledged = True
        except SidecarError as error:
            _handoff_failed("OnLoseLeadership", term, error)
        finally:
            self.tell(lambda now: self.election.lost(term, acknowledged, now))

    # ── the leader's work ───────────────────────────────────────────────────────────────────────

    def _start_work(self, term: Term) -> None:
        group = self.election.groups[term.group_id]

        def trusted_seconds() -> float:
            alive = group.locked and group.epoch == term.epoch
            return max(0.0, group.trusted_until - self._clock()) if alive else 0.0

        tenure = Tenure(
            term, trusted_seconds, lambda: self.tell(lambda now: self.election.fenced(term, now))
        )
        self._tenures[term] = tenure
        task = self._works[term] = self._spawn(self._run_work(tenure), "election.work")
        task.add_done_callback(lambda done: self._work_ended(term, done))
        metrics.IS_LEADER.labels(term.group).set(1)
        metrics.EPOCH.labels(term.group).set(term.epoch)
        log.info("leading", group=term.group, epoch=term.epoch)

    def _drain_work(self, effect: DrainWork) -> None:
        if tenure := self._tenures.get(effect.term):
            tenure.work_until = effect.until
            tenure.draining.set()
        else:
            self.tell(partial(self.election.work_ended, effect.term))

    async def _run_work(self, tenure: Tenure) -> None:
        await self._work(tenure)
        # Work that ends by itself has nothing to do; the term goes on until it is drained.
        await tenure.draining.wait()

    def _work_ended(self, term: Term, task: asyncio.Task[None]) -> None:
        del self._tenures[term], self._works[term]
        metrics.IS_LEADER.labels(term.group).set(0)
        self.tell(partial(self.election.work_ended, term))
        if not task.cancelled() and task.exception():
            # A leader that cannot do its work must not keep others from it.
            self.tell(partial(self.election.resign, term.group_id, LossReason.RESIGNED))


def _cancel(task: asyncio.Task[None] | None) -> None:
    """It may have ended in the same instant."""
    if task:
        task.cancel()


def _told(error: Exception) -> dict[str, Any]:
    """For the log: with the place it came from, if nobody meant to raise it."""
    unexpected = not isinstance(error, SidecarError)
    return {"problem": str(error), "reason": type(error).__name__, "exc_info": unexpected}


def _handoff_failed(callback: str, term: Term, error: BaseException | None) -> None:
    metrics.STATE_ERRORS.labels(LeaderHandoffFailed.__name__).inc()
    log.warning(
        "leader_handoff_failed",
        callback=callback,
        group=term.group,
        epoch=term.epoch,
        problem=str(error),
    )
