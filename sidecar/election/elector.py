"""Carries out the decisions of `model/election.py`: talks to Postgres and the app, runs the work.

Guarantees:
- the clock is read before a statement is sent and after its result arrived, so that a slow
  response never extends a term;
- each deadline has its own timer: a statement, app or connection that hangs does not delay it;
- the app receives OnBecomeLeader, then Execute, then OnLoseLeadership after all work is cancelled.

    try-lock ─▶ takeover ─▶ grace ─▶ OnBecomeLeader ─▶ while_leading(authority) ─▶ drain
        ─▶ OnLoseLeadership
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authorities, Authority
from sidecar.model.election import Election
from sidecar.model.election_types import (
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
from sidecar.model.term import LossReason, Term

log = structlog.get_logger()

LeaderWork = Callable[[Authority], Coroutine[Any, Any, None]]

# OnLoseLeadership waits this long for cancelled work: its calls end at once, only cleanup remains.
_CANCEL_SECONDS = 0.05


class LockSession(Protocol):
    """The lock session. After `execute` fails, only `open` or `close` may follow."""

    async def open(self) -> None: ...
    async def execute(self, statement: Statement) -> Result: ...
    def hang_up(self) -> None: ...
    async def close(self) -> None: ...


class App(Protocol):
    """The leadership callbacks. Each raises SidecarError if the app did not return OK."""

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


class Elector:
    """Runs the election of one runner for all groups of its cluster."""

    def __init__(
        self,
        election: Election,
        session: LockSession,
        app: App,
        clock: Callable[[], float],
        *,
        takeover_sla: float,
    ) -> None:
        self.election = election
        self.authorities = Authorities()  # of the current terms
        self._session = session
        self._app = app
        self._clock = clock
        self._takeover_sla = takeover_sla
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._work_tasks: dict[Term, asyncio.Task[None]] = {}
        self._become_tasks: dict[Term, asyncio.Task[None]] = {}
        self._generation = 0

    # ── for the other steps ─────────────────────────────────────────────────────────────────────

    def view(self, group: str) -> LeaderView:
        return self.election.view(group)

    @property
    def others_ready(self) -> bool:
        """Whether another runner campaigned when the registry was last read."""
        return self.election.has_campaigning_peers

    async def changed(self) -> None:
        """Wait for the next change of leadership, or the next renewal of its lease."""
        async with self._changed:
            await self._changed.wait()

    def handle(self, event: Callable[[float], None]) -> None:
        """Pass an event to the election, after the deadlines that expired before it."""
        now = self._clock()
        self.election.tick(now)
        event(now)
        self._wake.set()

    def resign(self, group: str, reason: LossReason) -> None:
        """Hand the group over if this runner leads it."""
        for g in self.election.groups.values():
            if g.name == group:
                self.handle(partial(self.election.resign, g.id, reason))

    async def stopped(self) -> None:
        """Wait until no lock is held and neither a callback nor a release is pending."""
        while not self.election.idle:
            await self.changed()

    # ── the loop ────────────────────────────────────────────────────────────────────────────────

    async def run(self, while_leading: LeaderWork) -> None:
        """Campaign, and run `while_leading` in each term. Cancel it after `stopped` returned."""
        try:
            while True:
                await self._step(while_leading)
        finally:
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._session.close()

    async def _step(self, while_leading: LeaderWork) -> None:
        self._wake.clear()
        self.election.tick(self._clock())
        self._perform(self.election.effects(), while_leading)
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

    def _perform(self, effects: list[Effect], while_leading: LeaderWork) -> None:
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
                    _cancel(self._become_tasks.get(effect.term))
                case StartWork():
                    self._start_work(effect.term, while_leading)
                case DrainWork():
                    self._drain_work(effect)
                case CancelWork():
                    _cancel(self._work_tasks.get(effect.term))
                case Lose():
                    self._spawn(self._lose(effect), "election.lose")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, SidecarError):
            log.error("election_task_failed", task=task.get_name(), exc_info=error)

    # ── Postgres ────────────────────────────────────────────────────────────────────────────────

    async def _connect(self) -> None:
        try:
            await self._session.open()
        except Exception as error:  # any failure: the next attempt may succeed
            log.warning("lock_session_refused", **_error_fields(error))
            self.handle(self.election.connect_failed)
        else:
            log.info("lock_session_opened")
            self.handle(self.election.connect_succeeded)

    async def _run_statement(self, statement: Statement, generation: int) -> None:
        sent_at = self._clock()
        try:
            result = await self._session.execute(statement)
        except Exception as error:  # any failure: the server may or may not hold our locks now
            if generation == self._generation:
                log.warning("lock_session_lost", **_error_fields(error))
                self.handle(self.election.disconnected)
            return
        received_at = self._clock()
        if isinstance(statement, Ping):
            metrics.PING_SECONDS.observe(received_at - sent_at)
        if isinstance(statement, Takeover) and isinstance(result, Blocked):
            group = self.election.groups[statement.group_id]
            if group.blocked_at is None:  # log the first attempt only, not each retry
                log.warning("takeover_blocked", group=group.name)
        self.handle(
            lambda _: self.election.result_received(
                statement, result, sent_at=sent_at, now=received_at
            )
        )

    # ── the app ─────────────────────────────────────────────────────────────────────────────────

    def _start_becoming(self, effect: Become) -> None:
        term = effect.term
        log.info("becoming_leader", group=term.group, epoch=term.epoch)
        task = self._become_tasks[term] = self._spawn(self._become(effect), "election.become")
        # A done callback: a task that is cancelled before its first step runs no `finally`.
        task.add_done_callback(lambda done: self._become_done(term, done))

    async def _become(self, effect: Become) -> None:
        trusted_until = self.election.groups[effect.term.group_id].trusted_until
        await self._app.become_leader(effect.term, trusted_until, effect.timeout)

    def _become_done(self, term: Term, task: asyncio.Task[None]) -> None:
        del self._become_tasks[term]
        ok = not task.cancelled() and task.exception() is None
        self.handle(lambda now: self.election.become_finished(term, ok, now))
        if ok:
            self._observe_takeover(term, self.election.groups[term.group_id].predecessor_seen_at)
        elif not task.cancelled():
            _handoff_failed("OnBecomeLeader", term, task.exception())

    def _observe_takeover(self, term: Term, since: float) -> None:
        seconds, sla = self._clock() - since, self._takeover_sla
        metrics.TAKEOVER_SECONDS.observe(seconds)
        if seconds > sla:
            metrics.MIGRATION_SLA_EXCEEDED.inc()
            log.warning(
                "takeover_sla_exceeded",
                group=term.group,
                epoch=term.epoch,
                seconds=round(seconds, 3),
                sla=sla,
            )

    async def _lose(self, effect: Lose) -> None:
        term, acknowledged = effect.term, False
        if work := self._work_tasks.get(term):
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
            self.handle(lambda now: self.election.lose_finished(term, acknowledged, now))

    # ── leader work ────────────────────────────────────────────────────────────────────────────

    def _start_work(self, term: Term, work: LeaderWork) -> None:
        authority = self._authority(term)
        self.authorities.add(authority)
        task = self._work_tasks[term] = self._spawn(
            _work_until_drained(work, authority), "election.work"
        )
        task.add_done_callback(lambda done: self._work_done(term, done))
        metrics.IS_LEADER.labels(term.group).set(1)
        metrics.EPOCH.labels(term.group).set(term.epoch)
        log.info("leading", group=term.group, epoch=term.epoch)

    def _authority(self, term: Term) -> Authority:
        group = self.election.groups[term.group_id]

        def trusted_seconds() -> float:
            alive = group.locked and group.epoch == term.epoch
            return max(0.0, group.trusted_until - self._clock()) if alive else 0.0

        def revoke(reason: LossReason) -> None:
            if reason is LossReason.FENCED:
                self.handle(partial(self.election.fenced, term))
            else:
                self.handle(partial(self.election.resign, term.group_id, reason))

        def verify() -> None:
            self.handle(partial(self.election.write_refused, term.epoch))

        return Authority(term, trusted_seconds, revoke, verify)

    def _drain_work(self, effect: DrainWork) -> None:
        if authority := self.authorities.get(effect.term):
            authority.drain_deadline = effect.until
            authority.draining.set()
        else:
            self.handle(partial(self.election.work_finished, effect.term))

    def _work_done(self, term: Term, task: asyncio.Task[None]) -> None:
        self.authorities.remove(term)
        del self._work_tasks[term]
        metrics.IS_LEADER.labels(term.group).set(0)
        self.handle(partial(self.election.work_finished, term))
        if not task.cancelled() and task.exception():
            # A leader whose work failed must let another runner lead.
            self.handle(partial(self.election.resign, term.group_id, LossReason.RESIGNED))


async def _work_until_drained(work: LeaderWork, authority: Authority) -> None:
    await work(authority)
    # Work may return early, with nothing left to do; the term still lasts until it is drained.
    await authority.draining.wait()


def _cancel(task: asyncio.Task[None] | None) -> None:
    """Cancel the task, unless it has just finished and is gone."""
    if task:
        task.cancel()


def _error_fields(error: Exception) -> dict[str, Any]:
    """Fields for the log; a traceback only for errors that are not ours."""
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
