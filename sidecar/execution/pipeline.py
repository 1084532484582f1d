"""What happens to a run of any kind, in order:

    claim ─▶ admit ─▶ load ─▶ deliver ─▶ verdict ─▶ record ─▶ announce

A source claims: `scheduling/dispatcher.py` for ticks and triggers, `singletons.py` for singletons.
Everything after the claim is here, in this order.

Guarantees:
- the app gets the state and the checkpoints that were committed last, read after the claim; a
  failed read is retried and never replaced by the initial state;
- trust is checked once, right before delivery; nothing is sent under an authority that is over;
- an attempt ends at its timeout whatever the app does, counted from its delivery;
- an attempt is answered once, and its verdict is recorded at most once (`recorder.py`);
- when the authority ends, every open call is cancelled before `open` returns.

An attempt costs an entry in a dict. It has a task only while its state is being read, or where the
transport needs one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from sidecar import metrics
from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authority
from sidecar.execution.ports import App, Call, CompletionStore, StateLoader
from sidecar.execution.recorder import Recorder
from sidecar.execution.slots import Slots
from sidecar.model.breaker import Breaker
from sidecar.model.errors import SidecarError
from sidecar.model.overlap import Overlap
from sidecar.model.run import Answer, CallFailed, Run, RunRef, RunState, Stopped
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.verdict import app_works, verdict

log = structlog.get_logger()

UNRECORDED_MAX = 1000  # runs claimed and not yet recorded: answered ones need no slot
UNTRUSTED_SECONDS = 2.0
BREAKER_POLL_SECONDS = 0.25
ROOM_POLL_SECONDS = 5.0
_LOAD_RETRY_SECONDS = (0.1, 2.0)
_NOT_TRIED = CallFailed("UNAVAILABLE", "not called: the circuit breaker is open", delivered=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What all authorities of this runner share. `chance` gives numbers in [0, 1)."""

    app: App
    loader: StateLoader
    store: CompletionStore
    announcer: Announcer
    breaker: Breaker
    slots: Slots
    chance: Callable[[], float]
    connect_seconds: float = 0.0

    @asynccontextmanager
    async def open(self, authority: Authority) -> AsyncIterator["Executions"]:
        """Executes runs under this authority; every open call is cancelled on exit."""
        executions = Executions(self, authority)
        writer = asyncio.create_task(executions.recorder.run(), name="execution.record")
        try:
            yield executions
        finally:
            try:
                await executions.cancel_all()
            finally:  # this task may be cancelled again while it cancels the calls
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Admission:
    """How many runs may be claimed; if none, when to ask again."""

    count: int
    retry_seconds: float = 0.0
    probe: bool = False  # its answer opens or closes the circuit breaker


@dataclass(slots=True, eq=False)
class _Attempt:
    """A run in the table, from its claim until its verdict is recorded."""

    run: Run
    began: float
    recorded: "asyncio.Future[Recorded | None]"
    admitted: bool = False  # it holds one of the slots that `admit` reserved
    probe: bool = False
    call: Call | None = None
    loading: "asyncio.Task[None] | None" = None
    timer: asyncio.TimerHandle | None = None
    in_slot: bool = False  # counts towards the calls that are open
    answered: bool = False


@dataclass(slots=True, eq=False)
class Executions:
    """The runs that are executed under one authority."""

    steps: Pipeline
    authority: Authority
    recorder: Recorder = field(init=False)
    backlog: bool = False  # the source knows of more runs that are due
    full: bool = False  # the source has no room of its own until a run is answered
    woken: asyncio.Event = field(default_factory=asyncio.Event)  # the source should claim again
    # By run and attempt: the next one may begin before the end of this one is known to be recorded.
    attempts: dict[tuple[int, int], _Attempt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        slots = self.steps.slots
        self.recorder = Recorder(
            self.steps.store, self.authority, lambda: self.backlog or slots.crowded
        )

    # ── admit ───────────────────────────────────────────────────────────────────────────────────

    def admit(self, most: int) -> Admission:
        """Reserve slots for a claim; if there is none, `woken` is set when there is room."""
        now, breaker = _now(), self.steps.breaker
        if not self.authority.trusted:
            return Admission(0, UNTRUSTED_SECONDS)
        room = breaker.room(now)
        if room == 0:
            wait = max(BREAKER_POLL_SECONDS, breaker.probe_at(now) - now)
            return Admission(0, min(ROOM_POLL_SECONDS, wait))
        wanted = int(min(room, most, UNRECORDED_MAX - len(self.attempts)))
        taken = self.steps.slots.take(wanted, self.woken)
        if not taken:
            return Admission(0, ROOM_POLL_SECONDS)
        return Admission(taken, probe=breaker.began(now))

    def give_back(self, admission: Admission, unused: int) -> None:
        """The claim brought fewer runs than were admitted."""
        self.steps.slots.give_back(unused)
        if unused == admission.count:
            self.steps.breaker.abandoned(probe=admission.probe)

    def start(self, runs: Sequence[Run], *, probe: bool = False) -> None:
        """Execute admitted runs; each holds one slot until it is answered."""
        for run in runs:
            attempt = self._enter(run, admitted=True, probe=probe)
            self.steps.announcer.claimed(run)
            self.steps.slots.begin(partial(self._begin, attempt))

    def execute(self, run: Run) -> "asyncio.Future[Recorded | None]":
        """Execute a run that needs no slot; returns what was recorded, None if it was refused."""
        attempt = self._enter(run)
        self._load(attempt)
        return attempt.recorded

    @property
    def unanswered(self) -> list[Run]:
        """The runs that wait for a slot or for the app's answer."""
        return [attempt.run for attempt in self.attempts.values() if not attempt.answered]

    def holds(self, ref: RunRef) -> bool:
        """Whether this attempt is being executed."""
        return (ref.run_id, ref.attempt) in self.attempts

    def _enter(self, run: Run, *, admitted: bool = False, probe: bool = False) -> _Attempt:
        done: asyncio.Future[Recorded | None] = asyncio.get_running_loop().create_future()
        attempt = _Attempt(run, _now(), done, admitted, probe)
        self.attempts[run.ref.run_id, run.ref.attempt] = attempt
        return attempt

    def _begin(self, attempt: _Attempt) -> None:
        attempt.in_slot = True
        if attempt.answered:  # stopped while it waited for a slot
            self._leave_slot(attempt)
        elif self.steps.breaker.is_open and not attempt.probe:
            self._answer(attempt, _NOT_TRIED)
        else:
            self._load(attempt)

    # ── load ────────────────────────────────────────────────────────────────────────────────────

    def _load(self, attempt: _Attempt) -> None:
        run = attempt.run
        if run.problem:
            self._answer(attempt, CallFailed("DATA_LOSS", run.problem, delivered=False))
            return
        initial = self.steps.loader.initial(run) if run.ref.attempt == 1 else None
        if initial is not None and self.steps.app.connected:
            attempt.run = replace(run, state=initial)
            self._deliver(attempt)
            return
        name = f"execution.load.{run.ref.run_id}"
        attempt.loading = asyncio.create_task(self._load_and_deliver(attempt), name=name)

    async def _load_and_deliver(self, attempt: _Attempt) -> None:
        try:
            attempt.run = await self._loaded(attempt.run)
            connected = self.steps.app.connected or await self.steps.app.wait_connected(
                self.steps.connect_seconds
            )
        except Exception as error:  # a bug of ours must not leave the run without an answer
            log.exception("load_failed", run_id=attempt.run.ref.run_id)
            answer = CallFailed("INTERNAL", f"error in the sidecar: {type(error).__name__}")
            self._answer(attempt, answer)
            return
        if connected:
            self._deliver(attempt)
        else:
            failed = CallFailed("UNAVAILABLE", "no connection to the app", delivered=False)
            self._answer(attempt, failed)

    async def _loaded(self, run: Run) -> Run:
        pause = _LOAD_RETRY_SECONDS[0]
        while True:
            try:
                return await self._read(run)
            except SidecarError as error:
                if not error.retryable:
                    raise
                log.warning("run_waits_for_state", run_id=run.ref.run_id, problem=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LOAD_RETRY_SECONDS[1])

    async def _read(self, run: Run) -> Run:
        state = await self.steps.loader.load(run)
        if run.ref.attempt == 1:
            return replace(run, state=state)
        found = await self.steps.loader.checkpoints([run.ref.run_id])
        return replace(run, state=state, checkpoints=found.get(run.ref.run_id, ()))

    # ── deliver ─────────────────────────────────────────────────────────────────────────────────

    def _deliver(self, attempt: _Attempt) -> None:
        if attempt.answered:
            return
        if not self.authority.trusted:
            # This process was frozen, or Postgres was slow: the next leader delivers the run.
            self._drop(attempt)
            return
        run = attempt.run
        self.steps.announcer.delivered(run)
        attempt.call = self.steps.app.deliver(run, partial(self._answer, attempt))
        if seconds := run.limits.timeout_seconds:
            loop = asyncio.get_running_loop()
            attempt.timer = loop.call_later(seconds, self._time_out, attempt, seconds)

    def _time_out(self, attempt: _Attempt, seconds: float) -> None:
        if not attempt.answered and attempt.call:
            attempt.call.cancel()
            self._answer(
                attempt, CallFailed("DEADLINE_EXCEEDED", f"no answer within {seconds:g} s")
            )

    def stop(self, ref: RunRef, why: Stopped) -> None:
        """Cancel the attempt, if it is not answered yet, and record why."""
        attempt = self.attempts.get((ref.run_id, ref.attempt))
        if attempt and not attempt.answered:
            _cancel(attempt)
            self._answer(attempt, why)

    # ── verdict ─────────────────────────────────────────────────────────────────────────────────

    def _answer(self, attempt: _Attempt, answer: Answer) -> None:
        if attempt.answered:
            return
        attempt.answered = True
        run, seconds = attempt.run, _now() - attempt.began
        self.steps.announcer.answered(run, answer)
        self._release(attempt, None if answer is _NOT_TRIED else app_works(answer))
        if self.full:
            self.woken.set()
        decided = verdict(
            run,
            answer,
            age_seconds=run.queued_seconds + seconds,
            chance=self.steps.chance(),
        )
        # ── record ──
        completion = Completion(run, decided)
        self.recorder.add(completion, partial(self._recorded, attempt, completion))

    def _release(self, attempt: _Attempt, works: bool | None) -> None:
        """The call is over: another may begin before this answer is recorded."""
        if attempt.timer:
            attempt.timer.cancel()
        if not attempt.admitted:
            return
        self._teach_breaker(works, probe=attempt.probe)
        if works is not None:
            self.steps.slots.answered(works=works)
        if attempt.in_slot:
            self._leave_slot(attempt)
        self.steps.slots.give_back(1)

    def _leave_slot(self, attempt: _Attempt) -> None:
        attempt.in_slot = False
        self.steps.slots.end()

    def _teach_breaker(self, works: bool | None, *, probe: bool) -> None:
        breaker = self.steps.breaker
        was_open = breaker.is_open
        if works is None:
            breaker.abandoned(probe=probe)
        elif works:
            breaker.succeeded()
        else:
            breaker.failed(_now(), probe=probe)
        if breaker.is_open != was_open:
            metrics.BREAKER_OPEN.set(breaker.is_open)

    # ── announce ────────────────────────────────────────────────────────────────────────────────

    def _recorded(
        self, attempt: _Attempt, completion: Completion, recorded: Recorded | None
    ) -> None:
        self._leave(attempt, recorded)
        try:
            if recorded is None:
                self.steps.announcer.too_late(completion.run)
            else:
                self.steps.announcer.recorded(completion, recorded)
        except Exception:  # a bug of ours must not end the recorder
            log.exception("announce_failed", run_id=completion.run.ref.run_id)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _leave(self, attempt: _Attempt, recorded: Recorded | None) -> None:
        run, full = attempt.run, len(self.attempts) == UNRECORDED_MAX
        del self.attempts[run.ref.run_id, run.ref.attempt]
        due_again = recorded is not None and recorded.state is RunState.WAITING
        if due_again or run.overlap != Overlap.ALLOW or full:
            self.woken.set()  # the source may claim what it could not claim before
        if not attempt.recorded.done():
            attempt.recorded.set_result(recorded)

    def _drop(self, attempt: _Attempt) -> None:
        """Forget an attempt that was not answered: nothing is recorded for it."""
        attempt.answered = True
        self._release(attempt, None)
        self._leave(attempt, None)

    async def finish(self, seconds: float) -> None:
        """Wait until all attempts are recorded, at most `seconds`."""
        pending = [attempt.recorded for attempt in self.attempts.values()]
        if pending and seconds > 0:
            await asyncio.wait(pending, timeout=seconds)

    async def cancel_all(self) -> None:
        """Cancel the attempts that are not answered yet; nothing is recorded for them."""
        cancelled: list[Awaitable[object]] = []
        for attempt in [each for each in self.attempts.values() if not each.answered]:
            cancelled += _cancel(attempt)
            self._drop(attempt)
        for ended in cancelled:
            await ended


def _cancel(attempt: _Attempt) -> list[Awaitable[object]]:
    """Cancel the call or the load; await the result to wait for the cancellation."""
    if attempt.call:
        return [attempt.call.cancel()]
    if attempt.loading:
        attempt.loading.cancel()
        return [asyncio.gather(attempt.loading, return_exceptions=True)]
    return []


def _now() -> float:
    return asyncio.get_running_loop().time()
