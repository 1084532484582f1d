"""Leader only: claims due runs of its group, executes them, records what became of them.

    take over ──► claim ──► execute (a task per run) ──► record ──► claim …
                    ▲ woken by: a tick, a hint, a free slot, a run that is due, a slow poll

Guarantees:
- runs left by a leader that is gone are delivered again, with a higher attempt and no retry used up
  (G5);
- at most `Slots` calls into the app are open at once, over all groups of this runner;
- when the term ends every call is cancelled; when it drains, calls may end until `work_until`;
- nothing is executed when the term cannot be trusted;
- the oldest due run comes first, whether its schedule lets its runs overlap or not;
- a term ends when a claim brings an attempt that still runs: the database lost what we committed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from sidecar import metrics
from sidecar.dispatch.admission import admit
from sidecar.dispatch.completions import Completions
from sidecar.dispatch.leftovers import prune
from sidecar.dispatch.ports import Callback, Hints, Listener, RunStore
from sidecar.dispatch.reporting import count_ended, count_recorded, count_start
from sidecar.dispatch.slots import Slots
from sidecar.model.breaker import Breaker
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.draining import until_draining
from sidecar.model.errors import AnswerLost, Fenced, StoreRefused, StoreUnavailable
from sidecar.model.ledger import Claim, Report
from sidecar.model.overlap import Overlap
from sidecar.model.run import (
    Answer,
    CallFailed,
    Delivery,
    RunState,
    Stopped,
    answers_for_app,
    verdict,
)
from sidecar.model.term import Tenure

log = structlog.get_logger()

CLAIM_MAX = 200
UNRECORDED_MAX = 1000  # runs claimed and not yet recorded: answered ones need no slot
POLL_SECONDS = 5.0
CANCEL_POLL_SECONDS = 2.0
BREAKER_POLL_SECONDS = 0.25
RETRY_SECONDS = (0.1, 2.0)
# A claim that was given up may still be on its way: in the kernel, in a pooler, in a server that
# stood still. Its runs would be nobody's, so whoever lost an answer looks again until it is over.
SETTLING_SECONDS = 15.0
TIDY_SECONDS = 60.0
_NOT_TRIED = CallFailed("UNAVAILABLE", "not tried: the app fails every call", delivered=False)


@dataclass(frozen=True, slots=True)
class Tools:
    """What every term of every group shares. `chance` gives numbers in [0, 1)."""

    store: RunStore
    callback: Callback
    hints: Hints
    breaker: Breaker
    slots: Slots
    chance: Callable[[], float]
    boottime: Callable[[], float]
    keep_seconds: float = 7 * 86_400.0
    recorded: Listener = lambda report, recorded: None


class Dispatcher:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._shifts: dict[str, _Shift] = {}

    def wake(self, group: str) -> None:
        """Runs of this group were added: look at once, if it is led here."""
        if shift := self._shifts.get(group):
            shift.woken.set()

    async def lead(self, tenure: Tenure) -> None:
        """Execute runs until cancelled; when the term drains, until they ended or `work_until`."""
        shift = _Shift(self._tools, tenure)
        self._shifts[tenure.term.group] = shift
        try:
            await shift.work()
        finally:
            if self._shifts.get(tenure.term.group) is shift:
                del self._shifts[tenure.term.group]


@dataclass(slots=True)
class _Call:
    """A run being executed; `stop` is why it was asked to end."""

    delivery: Delivery
    task: "asyncio.Task[None]"
    probe: bool = False  # the circuit breaker judges the app by it
    stop: Stopped | None = None
    answered: bool = False


@dataclass(slots=True)
class _Shift:
    """The work of one term."""

    tools: Tools
    tenure: Tenure
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    # By run and attempt: the next one may begin before the end of this one is known to be recorded.
    calls: dict[tuple[int, int], _Call] = field(default_factory=dict)
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    unknown: bool = False  # the answer to a claim was lost: some runs may be ours unknown to us,
    settled_at: float = 0.0  # and until then more of them, by a claim that nobody waits for
    backlog: bool = False  # the last claim took as many as it could: more are due
    passed_over: bool = False  # and some that must not overlap may be among them

    async def work(self) -> None:
        slots = self.tools.slots
        completions = Completions(
            self.tools.store, self.tenure, lambda: self.backlog or slots.crowded
        )
        writer = asyncio.create_task(completions.run(), name="dispatch.completions")
        try:
            await until_draining(self.tenure, self._lead(completions))
            await self._finish_calls()
        except* Fenced:
            metrics.FENCED_WRITES.labels("claim").inc()
            self.tenure.fenced()
        finally:
            try:
                await self._end_calls()
            finally:  # a term that was fenced is cancelled too, while its calls are being ended
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)

    async def _lead(self, completions: Completions) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatch(completions), name="dispatch.claim")
            tasks.create_task(self._watch_cancellations(), name="dispatch.cancel")
            tasks.create_task(self._tidy(), name="dispatch.tidy")

    async def _dispatch(self, completions: Completions) -> None:
        pause = RETRY_SECONDS[0]
        taken_over = False
        while True:
            self.woken.clear()
            try:
                if not taken_over or self.unknown:
                    await self._take_over()
                    taken_over = True
                nap = await self._turn(completions)
                pause = RETRY_SECONDS[0]
            except (StoreUnavailable, StoreRefused) as error:
                if isinstance(error, AnswerLost):
                    self.unknown, self.settled_at = True, _now() + SETTLING_SECONDS
                log.warning(
                    "runs_wait_for_postgres", group=self.tenure.term.group, problem=str(error)
                )
                nap, pause = pause, min(pause * 2, RETRY_SECONDS[1])
            with suppress(TimeoutError):
                async with asyncio.timeout(nap):
                    await self.woken.wait()

    async def _take_over(self) -> None:
        while True:
            settled = _now() >= self.settled_at
            known = [run_id for run_id, _ in self.calls] if self.unknown else None
            redelivered = await self.tools.store.requeue(self.tenure.term, known=known)
            count_ended(redelivered.ended)
            if not redelivered.count:
                break
            log.info("runs_redelivered", group=self.tenure.term.group, runs=redelivered.count)
        self.unknown = self.unknown and not settled
        await self._expire()

    async def _expire(self) -> None:
        while expired := await self.tools.store.expire(self.tenure.term):
            count_ended(expired)

    async def _turn(self, completions: Completions) -> float:
        """Claim what is due and begin it; how long there is nothing to do."""
        if self.backlog:
            # A claim for each slot that comes free would cost more than the calls themselves.
            await self.tools.slots.gathered()
        now = _now()
        if not self.tenure.trusted:
            return CANCEL_POLL_SECONDS
        room = self.tools.breaker.room(now)
        if room == 0:
            return min(
                POLL_SECONDS, max(BREAKER_POLL_SECONDS, self.tools.breaker.probe_at(now) - now)
            )
        wanted = int(min(room, CLAIM_MAX, UNRECORDED_MAX - len(self.calls)))
        taken = self.tools.slots.take(wanted, self.woken)
        if not taken:
            return POLL_SECONDS
        left, probe = taken, self.tools.breaker.began(now)
        try:
            admitted = await self._admitted() if self.passed_over else ()
            claim = await self._claim(taken, admitted)
            left -= self._begin(claim, completions, probe=probe)
            self.passed_over = not left and (claim.contended or bool(admitted))
            if claim.contended and left:
                left -= await self._begin_admitted(left, completions, probe=probe)
        finally:
            self.tools.slots.give_back(left)
            if left == taken:
                self.tools.breaker.abandoned(probe=probe)
        self.backlog = not left
        if claim.overdue:
            await self._expire()
            return 0.0
        return self._nap(claim) if left else 0.0

    async def _begin_admitted(self, most: int, completions: Completions, *, probe: bool) -> int:
        admitted = await self._admitted()
        if not admitted:
            return 0
        claim = await self._claim(min(most, len(admitted)), admitted)
        return self._begin(claim, completions, probe=probe)

    async def _admitted(self) -> tuple[int, ...]:
        """Of the due runs that must not overlap, those that may begin."""
        admitted = await admit(self.tools.store, self.tenure.term)
        if admitted.replaced:
            await self._cancel_asked()
        if admitted.look_again:
            self.woken.set()
        return admitted.start

    def _nap(self, claim: Claim) -> float:
        if claim.next_due_at is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, self.clock.seconds_until(claim.next_due_at, _now()) + 0.001)

    async def _claim(self, limit: int, admitted: tuple[int, ...] = ()) -> Claim:
        asked = _now()
        claim = await self.tools.store.claim(self.tenure.term, limit=limit, admitted=admitted)
        self.clock.learn(claim.now, asked=asked, answered=_now())
        return claim

    def _begin(self, claim: Claim, completions: Completions, *, probe: bool) -> int:
        """Start a task per run; each owns one slot from here on."""
        if any(_key(delivery) in self.calls for delivery in claim.deliveries):
            # Postgres fell back to a copy that lacks our last commits.
            raise Fenced(f"group {self.tenure.term.group}: an attempt that runs was claimed again")
        for delivery in claim.deliveries:
            count_start(delivery)
            work = self._execute(delivery, completions)
            task = asyncio.create_task(work, name=f"run.{delivery.ref.run_id}")
            self.calls[_key(delivery)] = _Call(delivery, task, probe)
            task.add_done_callback(partial(self._ended, delivery))
        return len(claim.deliveries)

    def _ended(self, delivery: Delivery, task: "asyncio.Task[None]") -> None:
        call = self.calls.pop(_key(delivery))
        if not call.answered:
            self._hang_up(call, None)
        if delivery.overlap != Overlap.ALLOW or len(self.calls) == UNRECORDED_MAX - 1:
            self.woken.set()  # another one may have waited for its end
        if not task.cancelled() and (error := task.exception()):
            # A bug of ours: the run stays live, and the next leader delivers it again.
            log.error("run_broke", run_id=delivery.ref.run_id, exc_info=error)

    async def _execute(self, delivery: Delivery, completions: Completions) -> None:
        began = _now()
        answer = await self._call(delivery)
        if answer is None:
            return
        report = Report(
            delivery,
            verdict(
                delivery,
                answer,
                age_seconds=delivery.queued_seconds + _now() - began,
                chance=self.tools.chance(),
            ),
        )
        recorded = await completions.record(report)
        if recorded is None:
            metrics.LATE_COMPLETIONS_REFUSED.inc()
            log.warning(
                "late_completion_refused", run_id=delivery.ref.run_id, attempt=delivery.ref.attempt
            )
            return
        if recorded.state is RunState.WAITING:
            self.woken.set()  # the nap does not know yet when it is due again
        if report.verdict.state is not None:
            self.tools.hints.notify("state")
        count_recorded(report, recorded)
        self.tools.recorded(report, recorded)

    async def _call(self, delivery: Delivery) -> Answer | None:
        """The app's answer, or why we ended the call; None if the term was over before it began."""
        call = self.calls[_key(delivery)]
        try:
            answer = await self._in_turn(call)
            if answer is None:
                return None
        except asyncio.CancelledError:
            if call.stop is None:
                raise
            call.task.uncancel()
            answer = call.stop
        except Exception as error:  # a bug of ours must not leave the run without an answer
            log.exception("callback_broke", run_id=delivery.ref.run_id)
            answer = CallFailed("INTERNAL", f"inside the sidecar: {type(error).__name__}")
        call.answered = True
        self._hang_up(call, None if answer is _NOT_TRIED else answers_for_app(answer))
        return answer

    async def _in_turn(self, call: _Call) -> Answer | None:
        """Those claimed ahead wait here until one of the calls before them has ended."""
        async with self.tools.slots.calls:
            if not self.tenure.trusted:
                return None
            if self.tools.breaker.is_open and not call.probe:
                return _NOT_TRIED
            return await self.tools.callback.execute(call.delivery)

    def _hang_up(self, call: _Call, works: bool | None) -> None:
        """The call is over: another may be claimed, while its answer is still to be recorded."""
        self._teach_breaker(works, probe=call.probe)
        if works is not None:
            self.tools.slots.answered(works=works)
        self.tools.slots.give_back(1)

    def _teach_breaker(self, works: bool | None, *, probe: bool) -> None:
        breaker = self.tools.breaker
        was_open = breaker.is_open
        if works is None:
            breaker.abandoned(probe=probe)
        elif works:
            breaker.succeeded()
        else:
            breaker.failed(_now(), probe=probe)
        if breaker.is_open != was_open:
            metrics.BREAKER_OPEN.set(breaker.is_open)

    async def _watch_cancellations(self) -> None:
        hints = self.tools.hints.subscribe("runs")
        try:
            while True:
                if await hints.wait(CANCEL_POLL_SECONDS):
                    self.woken.set()
                if self.calls:
                    with suppress(StoreUnavailable, StoreRefused):
                        await self._cancel_asked()
        finally:
            self.tools.hints.unsubscribe("runs", hints)

    async def _cancel_asked(self) -> None:
        for asked in await self.tools.store.cancellations(self.tenure.term):
            call = self.calls.get((asked.run_id, asked.attempt))
            if call and not call.answered:
                call.stop = Stopped(asked.reason, asked.note)
                call.task.cancel()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS * (0.9 + 0.2 * self.tools.chance()))
            with suppress(StoreUnavailable, StoreRefused):
                await self._expire()
                await prune(
                    self.tools.store, self.tenure.term, keep_seconds=self.tools.keep_seconds
                )
            self.unknown = True  # nobody knows for how long a pooler may keep a lost claim
            self.woken.set()

    async def _finish_calls(self) -> None:
        """Draining: let calls end by themselves while there is time."""
        left = self.tenure.work_until - self.tools.boottime()
        tasks = [call.task for call in self.calls.values()]
        if tasks and left > 0:
            await asyncio.wait(tasks, timeout=left)

    async def _end_calls(self) -> None:
        tasks = [call.task for call in self.calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _key(delivery: Delivery) -> tuple[int, int]:
    return delivery.ref.run_id, delivery.ref.attempt


def _now() -> float:
    return asyncio.get_running_loop().time()
