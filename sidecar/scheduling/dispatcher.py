"""Runs on the leader only: claims the due runs of its group and passes them to the pipeline.

    take over ──► claim ──► execute (the pipeline) ──► claim …
                    ▲ woken by: a tick, a hint, a free slot, a run that is due, a slow poll

Guarantees:
- runs that a former leader left running are delivered again, with a higher attempt number and
  without using up a retry (G5);
- the oldest due run is claimed first, whether or not its schedule allows overlap;
- when the authority drains, calls may finish until its deadline; when it ends, they are cancelled;
- the term ends if a claim returns an attempt that is being executed: the database has lost a
  committed transaction.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from sidecar import metrics
from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authority, until_draining
from sidecar.execution.pipeline import Admission, Executions
from sidecar.hints import Hints
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.errors import AnswerLost, Fenced, StoreRefused, StoreUnavailable
from sidecar.model.run import RunRef, Stopped
from sidecar.model.run_records import Claim
from sidecar.model.term import LossReason
from sidecar.scheduling.overlap import admit
from sidecar.scheduling.ports import Backlogs, NoBacklogs, RunStore
from sidecar.scheduling.retention import prune

log = structlog.get_logger()

CLAIM_MAX = 500
POLL_SECONDS = 5.0
CANCEL_POLL_SECONDS = 2.0
RETRY_SECONDS = (0.1, 2.0)
# A claim that timed out may still be executed later, if the kernel, a pooler or a frozen server
# delayed it. Nothing would execute its runs, so they are requeued until the claim cannot arrive.
SETTLING_SECONDS = 15.0
CLEANUP_SECONDS = 60.0


@dataclass(slots=True)
class Dispatcher:
    """Claims and executes runs while `lead` runs; call `wake` after adding runs."""

    store: RunStore
    hints: Hints
    boottime: Callable[[], float]
    chance: Callable[[], float]
    keep_seconds: float = 7 * 86_400.0
    backlogs: Backlogs = field(default_factory=NoBacklogs)
    _workers: dict[str, "_TermWorker"] = field(default_factory=dict)

    def wake(self, group: str) -> None:
        """Claim the runs of this group now, if this sidecar leads it."""
        if worker := self._workers.get(group):
            worker.woken.set()

    async def lead(self, authority: Authority, executions: Executions) -> None:
        """Execute runs until cancelled; when draining, until all have ended or the deadline."""
        worker = _TermWorker(self, authority, executions)
        self._workers[authority.term.group] = worker
        try:
            await worker.work()
        finally:
            if self._workers.get(authority.term.group) is worker:
                del self._workers[authority.term.group]


@dataclass(slots=True, eq=False)
class _TermWorker:
    """Claims and executes the runs of one group during one term."""

    shared: Dispatcher
    authority: Authority
    executions: Executions
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    claim_lost: bool = False  # the answer to a claim was lost: it may have claimed runs
    settled_at: float = 0.0  # until this loop time, the lost claim may still be executed
    passed_over: bool = False  # runs that must not overlap may be due behind the backlog

    @property
    def woken(self) -> asyncio.Event:
        return self.executions.woken

    async def work(self) -> None:
        try:
            await until_draining(self.authority, self._lead())
            await self.executions.finish(self.authority.drain_deadline - self.shared.boottime())
        except* Fenced:
            metrics.FENCED_WRITES.labels("claim").inc()
            self.authority.revoke(LossReason.FENCED)

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatch(), name="dispatch.claim")
            tasks.create_task(self._watch_cancellations(), name="dispatch.cancel")
            tasks.create_task(self._clean_up(), name="dispatch.clean_up")

    # ── claiming ────────────────────────────────────────────────────────────────────────────────

    async def _dispatch(self) -> None:
        pause = RETRY_SECONDS[0]
        taken_over = False
        while True:
            self.woken.clear()
            try:
                if not taken_over or self.claim_lost:
                    await self._take_over()
                    taken_over = True
                idle_seconds = await self._claim_and_start()
                pause = RETRY_SECONDS[0]
            except (StoreUnavailable, StoreRefused) as error:
                if isinstance(error, AnswerLost):
                    self.claim_lost, self.settled_at = True, _now() + SETTLING_SECONDS
                group = self.authority.term.group
                log.warning("runs_wait_for_postgres", group=group, problem=str(error))
                idle_seconds, pause = pause, min(pause * 2, RETRY_SECONDS[1])
            with suppress(TimeoutError):
                async with asyncio.timeout(idle_seconds):
                    await self.woken.wait()

    async def _take_over(self) -> None:
        """Requeue runs that a former leader or a lost claim of this one left running."""
        group = self.authority.term.group
        while True:
            settled = _now() >= self.settled_at
            known = [run_id for run_id, _ in self.executions.attempts] if self.claim_lost else None
            redelivered = await self.shared.store.requeue(self.authority.term, known=known)
            self._announcer.ended(redelivered.ended)
            if not redelivered.count:
                break
            log.info("runs_redelivered", group=group, runs=redelivered.count)
        self.claim_lost = self.claim_lost and not settled
        await self._expire()

    async def _expire(self) -> None:
        while expired := await self.shared.store.expire(self.authority.term):
            self._announcer.ended(expired)

    async def _claim_and_start(self) -> float:
        """Claim due runs and start them; return how many seconds to wait before the next claim."""
        if self.executions.backlog:
            # One claim for every freed slot would cost more than the calls themselves.
            await self.executions.steps.slots.gathered()
        admission = self.executions.admit(CLAIM_MAX)
        if not admission.count:
            self.shared.backlogs.suspect(self.authority.term.group)
            return admission.retry_seconds
        left = admission.count
        try:
            admitted = await self._admitted() if self.passed_over else ()
            claim = await self._claim(admission.count, admitted)
            left -= self._start(claim, admission)
            self.passed_over = not left and (claim.contended or bool(admitted))
            if claim.contended and left:
                left -= await self._start_admitted(left, admission)
        finally:
            self.executions.give_back(admission, left)
        self.executions.backlog = not left
        if not left:
            self.shared.backlogs.suspect(self.authority.term.group)
        if claim.overdue:
            await self._expire()
            return 0.0
        return self._idle_seconds(claim) if left else 0.0

    async def _start_admitted(self, most: int, admission: Admission) -> int:
        admitted = await self._admitted()
        if not admitted:
            return 0
        return self._start(await self._claim(min(most, len(admitted)), admitted), admission)

    async def _admitted(self) -> tuple[int, ...]:
        """Return the due runs that must not overlap and may start now."""
        admitted = await admit(self.shared.store, self.authority.term, self._announcer)
        if admitted.replaced:
            await self._cancel_requested()
        if admitted.repeat:
            self.woken.set()
        return admitted.start

    def _idle_seconds(self, claim: Claim) -> float:
        if claim.next_due_at is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, self.clock.seconds_until(claim.next_due_at, _now()) + 0.001)

    async def _claim(self, limit: int, admitted: tuple[int, ...] = ()) -> Claim:
        asked = _now()
        claim = await self.shared.store.claim(self.authority.term, limit=limit, admitted=admitted)
        self.clock.learn(claim.now, asked=asked, answered=_now())
        return claim

    def _start(self, claim: Claim, admission: Admission) -> int:
        if any(self.executions.holds(run.ref) for run in claim.runs):
            # Postgres failed over to a replica that lacks the last commits.
            group = self.authority.term.group
            raise Fenced(f"group {group}: an attempt that is being executed was claimed again")
        self.executions.start(claim.runs, probe=admission.probe)
        self.shared.backlogs.started(self.authority.term.group, len(claim.runs))
        return len(claim.runs)

    # ── cancellation and cleanup ────────────────────────────────────────────────────────────────

    async def _watch_cancellations(self) -> None:
        hints = self.shared.hints.subscribe("runs")
        try:
            while True:
                if await hints.wait(CANCEL_POLL_SECONDS):
                    self.woken.set()
                if self.executions.attempts:
                    with suppress(StoreUnavailable, StoreRefused):
                        await self._cancel_requested()
        finally:
            self.shared.hints.unsubscribe("runs", hints)

    async def _cancel_requested(self) -> None:
        term = self.authority.term
        for request in await self.shared.store.cancellations(term):
            ref = RunRef(request.run_id, request.attempt, term.epoch)
            self.executions.stop(ref, Stopped(request.reason, request.note))

    async def _clean_up(self) -> None:
        while True:
            await asyncio.sleep(CLEANUP_SECONDS * (0.9 + 0.2 * self.shared.chance()))
            with suppress(StoreUnavailable, StoreRefused):
                await self._expire()
                keep = self.shared.keep_seconds
                await prune(self.shared.store, self.authority.term, keep_seconds=keep)
            self.claim_lost = True  # a pooler may hold a lost claim longer than SETTLING_SECONDS
            self.woken.set()

    @property
    def _announcer(self) -> Announcer:
        return self.executions.steps.announcer


def _now() -> float:
    return asyncio.get_running_loop().time()
