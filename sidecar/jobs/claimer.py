"""Claims due jobs for the free slots of this pod and passes them to the pipeline.

    claim ──► execute (the pipeline) ──► claim …
      ▲ woken by: a submission, a free slot, a job that is due, a changed app, a slow poll

Guarantees:
- jobs are claimed only for handlers that the app has, and never more than there are free slots;
- starts follow the weights of the priorities, and the slots reserved for critical jobs are left to
  them (G15);
- a claim whose answer was lost is taken back: its jobs are due again, with no retry used;
- when the authority drains, no more is claimed, and jobs may finish until its deadline (G18).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority, until_draining
from sidecar.execution.pipeline import Admission, Executions
from sidecar.hints import Hints
from sidecar.jobs.ports import JobApp, JobStore
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.errors import AnswerLost, Fenced, StoreRefused, StoreUnavailable
from sidecar.model.job import Priority
from sidecar.model.job_records import ClaimRequest, JobClaim
from sidecar.model.run import Run, RunRef, Stopped
from sidecar.model.term import LossReason
from sidecar.model.weights import WEIGHTS, Shares, reserved_slots

log = structlog.get_logger()

TOPIC = "jobs"
CLAIM_MAX = 500
POLL_SECONDS = 5.0
CANCEL_POLL_SECONDS = 2.0
RETRY_SECONDS = (0.1, 2.0)
SETTLING_SECONDS = 15.0  # a claim that timed out may still be executed later
# Commits that find another one notifying do not notify: what they stored is found shortly after.
LOOK_AGAIN_SECONDS = 0.02
# A priority without a job is asked for again after this time, while others have a backlog.
EMPTY_SECONDS = 0.02
# Jobs that became visible later than this after they were due are found by full claims.
LATE = timedelta(seconds=10)
# Full claims take at most one part in this many of the time, and come every POLL_SECONDS at least.
FULL_SHARE = 20
GATHER_PART = 4  # of the slots
GATHER_SECONDS = 0.006
GATHER_STEPS = 3


@dataclass(frozen=True, slots=True)
class JobSettings:
    """`max_running` 0: what the app takes."""

    max_running: int = 0
    reserve: float = 0.1
    weights: Sequence[int] = WEIGHTS


@dataclass(slots=True)
class Claimer:
    """Claims and executes jobs while `work` runs."""

    store: JobStore
    app: JobApp
    hints: Hints
    boottime: Callable[[], float]
    settings: JobSettings = field(default_factory=JobSettings)

    async def work(self, authority: Authority, executions: Executions) -> None:
        """Execute jobs until cancelled; when draining, until all have ended or the deadline."""
        worker = _LeaseWorker(self, authority, executions, Shares(self.settings.weights))
        self.app.on_change.append(worker.woken.set)
        try:
            await worker.work()
        finally:
            self.app.on_change.remove(worker.woken.set)


@dataclass(slots=True, eq=False)
class _LeaseWorker:
    """Claims and executes jobs during one lease."""

    shared: Claimer
    authority: Authority
    executions: Executions
    shares: Shares
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    queues: tuple[str, ...] = ()
    newest_due_at: datetime | None = None  # of all claimed jobs
    next_due_at: datetime | None = None
    empty: frozenset[int] = frozenset()  # priorities that had no more due jobs
    empty_until: float = 0.0
    full_after: float = 0.0  # no full claim before this loop time
    look_again_at: float = 0.0
    claim_lost: bool = False
    settled_at: float = 0.0

    @property
    def woken(self) -> asyncio.Event:
        return self.executions.woken

    async def work(self) -> None:
        try:
            await until_draining(self.authority, self._work())
            await self.executions.finish(self.authority.drain_deadline - self.shared.boottime())
        except* Fenced:
            metrics.FENCED_WRITES.labels("claim").inc()
            self.authority.revoke(LossReason.FENCED)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._claim_jobs(), name="jobs.claim")
            tasks.create_task(self._follow_hints(), name="jobs.hints")
            tasks.create_task(self._watch_cancellations(), name="jobs.cancel")

    # ── claiming ────────────────────────────────────────────────────────────────────────────────

    async def _claim_jobs(self) -> None:
        pause = RETRY_SECONDS[0]
        while True:
            self.woken.clear()
            try:
                if self.claim_lost:
                    await self._take_back()
                idle_seconds = await self._claim_and_start()
                pause = RETRY_SECONDS[0]
            except (StoreUnavailable, StoreRefused) as error:
                if isinstance(error, AnswerLost):
                    self.claim_lost, self.settled_at = True, _now() + SETTLING_SECONDS
                log.warning("jobs_wait_for_postgres", problem=str(error))
                idle_seconds, pause = pause, min(pause * 2, RETRY_SECONDS[1])
            with suppress(TimeoutError):
                async with asyncio.timeout(idle_seconds):
                    await self.woken.wait()

    async def _take_back(self) -> None:
        settled = _now() >= self.settled_at
        known = [run_id for run_id, _ in self.executions.attempts]
        if count := await self.shared.store.take_back(self.authority.lease, known):
            log.info("claims_taken_back", jobs=count)
        self.claim_lost = not settled

    async def _claim_and_start(self) -> float:
        """Claim due jobs and start them; return how many seconds to wait before the next claim."""
        names = self.shared.app.names
        if self.executions.backlog:
            await self._gathered()
        running = self.executions.unanswered
        room = self._capacity() - len(running) if names else 0
        self.executions.full = room <= 0
        if room <= 0:
            return POLL_SECONDS
        admission = self.executions.admit(min(CLAIM_MAX, room))
        if not admission.count:
            return admission.retry_seconds
        started = 0
        try:
            quotas = self._quotas(admission.count, running)
            started = await self._claim(quotas, names, running, admission)
        finally:
            self.executions.give_back(admission, admission.count - started)
        self.executions.backlog = started == admission.count
        return self._idle_seconds(quotas)

    async def _gathered(self) -> None:
        """During a backlog wait a little for more free slots: a claim for each costs too much."""
        for _ in range(GATHER_STEPS):
            capacity = self._capacity()
            if capacity - len(self.executions.unanswered) >= capacity // GATHER_PART:
                return
            await asyncio.sleep(GATHER_SECONDS / GATHER_STEPS)

    def _capacity(self) -> int:
        most, capacity = self.shared.settings.max_running, self.shared.app.capacity
        return min(most, capacity) if most else capacity

    def _quotas(self, free: int, running: Sequence[Run]) -> list[int]:
        if _now() >= self.empty_until:
            self.empty, self.empty_until = frozenset(), _now() + EMPTY_SECONDS
        capacity = self._capacity()
        ordinary = sum(run.job is not None and run.job.priority > 1 for run in running)
        reserved = reserved_slots(capacity, self.shared.settings.reserve)
        ordinary_room = max(0, capacity - reserved - ordinary)
        return self.shares.divided(
            free, critical_only=max(0, free - ordinary_room), empty=self.empty
        )

    async def _claim(
        self,
        quotas: Sequence[int],
        names: frozenset[str],
        running: Sequence[Run],
        admission: Admission,
    ) -> int:
        """Claim and start; return how many were started."""
        if not any(quotas):
            return 0
        asked = _now()
        full = asked >= self.full_after
        since = self.newest_due_at - LATE if self.newest_due_at and not full else None
        by_queue = Counter(run.job.queue for run in running if run.job)
        request = ClaimRequest(names, quotas, self.queues, by_queue, since, full)
        claim = await self.shared.store.claim(self.authority.lease, request)
        self._learn(claim, quotas, asked, full=full)
        if any(self.executions.holds(run.ref) for run in claim.runs):
            # Postgres failed over to a replica that lacks the last commits.
            raise Fenced("an attempt that is being executed was claimed again")
        self.executions.start(claim.runs, probe=admission.probe)
        return len(claim.runs)

    def _learn(self, claim: JobClaim, quotas: Sequence[int], asked: float, *, full: bool) -> None:
        answered = _now()
        self.clock.learn(claim.now, asked=asked, answered=answered)
        if claim.newest_due_at:
            self.newest_due_at = max(claim.newest_due_at, self.newest_due_at or claim.newest_due_at)
        if full:
            self.queues, self.next_due_at = claim.queues, claim.next_due_at
            self.full_after = answered + min(POLL_SECONDS, FULL_SHARE * (answered - asked))
        found = Counter(run.job.priority for run in claim.runs if run.job)
        self.empty |= self.shares.claimed(quotas, [found[priority] for priority in Priority])

    def _idle_seconds(self, quotas: Sequence[int]) -> float:
        """At once while a priority may have more jobs; else until the next one may be due."""
        now = _now()
        if any(quotas) and len(self.empty) < len(Priority):
            return 0.0
        self.empty_until = now
        times = [POLL_SECONDS, self.look_again_at - now, self.full_after - now]
        if self.next_due_at:
            times.append(self.clock.seconds_until(self.next_due_at, now) + 0.001)
        return min(POLL_SECONDS, *(seconds for seconds in times if seconds > 0))

    # ── hints and cancellation ──────────────────────────────────────────────────────────────────

    async def _follow_hints(self) -> None:
        hints = self.shared.hints.subscribe(TOPIC)
        try:
            while True:
                await hints.wait()
                self.look_again_at, self.empty_until = _now() + LOOK_AGAIN_SECONDS, 0.0
                self.woken.set()
                if "cancel" in hints.details():
                    await self._cancel_requested()
        finally:
            self.shared.hints.unsubscribe(TOPIC, hints)

    async def _watch_cancellations(self) -> None:
        while True:
            await asyncio.sleep(CANCEL_POLL_SECONDS)
            if self.executions.attempts:
                await self._cancel_requested()

    async def _cancel_requested(self) -> None:
        lease = self.authority.lease
        with suppress(StoreUnavailable, StoreRefused):
            for request in await self.shared.store.cancellations(lease):
                ref = RunRef(request.run_id, request.attempt, lease.worker_id)
                self.executions.stop(ref, Stopped(request.reason, request.note))


def _now() -> float:
    return asyncio.get_running_loop().time()
