"""One attached process of the app: the runs it executes, its terms, and whether it answers.

Guarantees:
- an attempt is answered at most once; answers for attempts that are not open are ignored;
- the process never has more open runs than its capacity, and none without a handler of that name;
- a process that does not answer `failures_max` pings in a row is closed: it can attach again;
- when it closes, every open run is answered UNAVAILABLE, and everything that waits fails at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import Context, copy_context

import grpc

from sidecar import metrics
from sidecar._proto.baton.v1 import leadership_pb2, stream_pb2
from sidecar.adapters.app.messages import Messages, answer_of
from sidecar.adapters.app.outbox import Delivery, Outbox
from sidecar.adapters.clock import boottime
from sidecar.model.errors import AppUnavailable, LeaderHandoffFailed, SidecarError
from sidecar.model.process import ProcessHello
from sidecar.model.run import Answer, CallFailed, Run, RunKind, Succeeded
from sidecar.model.term import LossReason, Term
from sidecar.tracing import NoTracer, Span, Tracer, end_span, execution_of

BECOME, LOSE = stream_pb2.LEADERSHIP_EVENT_BECOME, stream_pb2.LEADERSHIP_EVENT_LOSE
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_DETAILS_MAX = 4096
_SUCCEEDED = Succeeded()

Answered = Callable[[Answer], None]


class _Trace:
    """The span of a run, entered in a context of its own: no task carries it."""

    def __init__(self, tracer: Tracer, run: Run) -> None:
        self._context: Context = copy_context()
        self._manager: AbstractContextManager[Span] = tracer.callback_span(execution_of(run))
        self.span: Span = self._context.run(self._manager.__enter__)

    @property
    def traceparent(self) -> str:
        return dict(self.span.metadata).get("traceparent", "")

    def end(self, answer: Answer | None) -> None:
        error = asyncio.CancelledError() if answer is None else None
        if answer is not None:
            end_span(self.span, answer)
        try:
            self._context.run(self._manager.__exit__, type(error) if error else None, error, None)
        except asyncio.CancelledError:
            return


class _Open:
    """A run that the process has not answered; the pipeline's `Call`."""

    __slots__ = ("_process", "answered", "delivery", "since", "trace")

    def __init__(self, process: "AttachedProcess", delivery: Delivery, answered: Answered) -> None:
        self._process = process
        self.delivery = delivery
        self.answered = answered
        self.since = boottime()
        self.trace: _Trace | None = None

    def cancel(self) -> Awaitable[object]:
        self._process.cancel(self)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class AttachedProcess:
    def __init__(
        self,
        hello: ProcessHello,
        messages: Messages,
        tracer: Tracer,
        *,
        number: int,
        failures_max: int,
    ) -> None:
        self.hello = hello
        self.number = number  # in the order of attaching
        self.capacity = hello.capacity
        self.outbox = Outbox(self._room)
        self.is_primary = False
        self.ready = False  # it acknowledged that every earlier term is over
        self.missed_pings = 0
        self.latency_seconds = 0.0
        self.problem: SidecarError | None = None  # why the sidecar closed it
        self.closed = asyncio.Event()
        self._messages = messages
        self._tracer = None if isinstance(tracer, NoTracer) else tracer
        self._failures_max = failures_max
        self._open: dict[tuple[int, int], _Open] = {}
        self._singletons = 0  # of the open runs
        self._leadership: dict[tuple[int, str, int], asyncio.Future[None]] = {}
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._last_ping = 0
        self._answered_seconds = metrics.CALLBACK_SECONDS.labels("Execute", "OK")

    @property
    def connected(self) -> bool:
        return not self.closed.is_set()

    @property
    def healthy(self) -> bool:
        return self.ready and self.connected and not self.missed_pings

    @property
    def open_runs(self) -> int:
        return len(self._open)

    @property
    def free(self) -> int:
        """How many more runs it takes, those that wait for it included."""
        return self.capacity - self.open_runs

    def _room(self) -> int:
        return self.capacity - (len(self._open) - self.outbox.unsent - self._singletons)

    def close(self, problem: SidecarError | None = None) -> None:
        """End the stream; `problem` is the status that the process gets."""
        if self.closed.is_set():
            return
        self.problem = problem
        self.closed.set()
        self.outbox.close()
        gone = AppUnavailable(f"process {self.hello.process_id}: the stream is closed")
        for waiting in (*self._leadership.values(), *self._pings.values()):
            if not waiting.done():
                waiting.set_exception(gone)
        failed = CallFailed("UNAVAILABLE", "the stream of the app's process broke")
        for key in list(self._open):
            self._answer(key, failed)

    # ── health ──────────────────────────────────────────────────────────────────────────────────

    async def check(self, timeout: float) -> None:
        """Raise AppUnavailable unless the process answers a ping in time."""
        self._last_ping += 1
        number, sent_at = self._last_ping, boottime()
        pong = self._pings[number] = asyncio.get_running_loop().create_future()
        self.outbox.ping(number)
        try:
            async with asyncio.timeout(timeout):
                await pong
        except TimeoutError:
            self.missed_pings += 1
            missed = f"process {self.hello.process_id} does not answer pings"
            if self.missed_pings >= self._failures_max:
                self.close(AppUnavailable(f"{missed}: {self.missed_pings} in a row"))
            raise AppUnavailable(missed) from None
        finally:
            del self._pings[number]
        self.missed_pings = 0
        self.latency_seconds = boottime() - sent_at

    def pong(self, number: int) -> None:
        if (waiting := self._pings.get(number)) and not waiting.done():
            waiting.set_result(None)

    # ── leadership ──────────────────────────────────────────────────────────────────────────────

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        self.outbox.become(self._messages.become(term, trusted_until))
        await self._acknowledged(BECOME, "OnBecomeLeader", term, timeout)

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        self.outbox.lose(self._messages.lose(term, reason, timeout))
        await self._acknowledged(LOSE, "OnLoseLeadership", term, timeout)

    async def _acknowledged(self, event: int, method: str, term: Term, timeout: float) -> None:
        if self.closed.is_set():
            raise AppUnavailable(f"process {self.hello.process_id}: the stream is closed")
        key = event, term.group, term.epoch
        if (answer := self._leadership.get(key)) is None:
            answer = self._leadership[key] = asyncio.get_running_loop().create_future()
        sent_at, code = boottime(), "OK"
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(answer)
        except TimeoutError:
            code = "DEADLINE_EXCEEDED"
            raise AppUnavailable(f"{method}: no answer within {timeout:g} s") from None
        except SidecarError:
            code = "UNAVAILABLE"
            raise
        finally:
            if self._leadership.get(key) is answer:
                del self._leadership[key]
            if not answer.done():
                answer.cancel()
            metrics.CALLBACK_SECONDS.labels(method, code).observe(boottime() - sent_at)

    def leadership_answered(self, answer: stream_pb2.LeadershipAnswer) -> None:
        waiting = self._leadership.get((answer.event, answer.group, answer.epoch))
        if waiting is None or waiting.done():
            return
        if answer.HasField("error"):
            failed = call_failed(answer.error)
            waiting.set_exception(LeaderHandoffFailed(f"{failed.code}: {failed.message}"))
        else:
            waiting.set_result(None)

    def renew(self, leader: leadership_pb2.Leader) -> None:
        self.outbox.trust(leader)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────

    def deliver(self, run: Run, answered: Answered) -> _Open:
        delivery = Delivery(run)
        entry = _Open(self, delivery, answered)
        key = run.ref.run_id, run.ref.attempt
        self._open[key] = entry
        self._singletons += run.kind is RunKind.SINGLETON
        metrics.RUNS_IN_FLIGHT.inc()
        if refused := self._refusal(run):
            asyncio.get_running_loop().call_soon(self._answer, key, refused)
            delivery.sent = True  # it never waits in the outbox
            return entry
        if self._tracer:
            entry.trace = _Trace(self._tracer, run)
            delivery.traceparent = entry.trace.traceparent
        self.outbox.run(delivery)
        return entry

    def _refusal(self, run: Run) -> CallFailed | None:
        if not self.connected:
            return CallFailed("UNAVAILABLE", "the stream is closed", delivered=False)
        if run.name not in self.hello.handles(run.kind):
            problem = f"the attached process has no handler for {run.kind.entity_type}"
            return CallFailed("NOT_FOUND", f"{problem} {run.name!r}", delivered=False)
        return None

    def answered(self, answers: Iterable[stream_pb2.RunAnswer]) -> None:
        for message in answers:
            key = message.run_id, message.attempt
            if key not in self._open:
                continue  # cancelled meanwhile, answered before, or never sent
            match message.WhichOneof("answer"):
                case "response":
                    self._answer(key, answer_of(message.response))
                case "status":
                    self._answer(key, call_failed(message.status))
                case _:
                    self._answer(key, _SUCCEEDED)

    def cancel(self, entry: _Open) -> None:
        ref = entry.delivery.run.ref
        if self._open.get((ref.run_id, ref.attempt)) is not entry:
            return
        self._close_run((ref.run_id, ref.attempt), None)
        if entry.delivery.sent:
            self.outbox.cancel(ref.run_id, ref.attempt, "cancelled")

    def _answer(self, key: tuple[int, int], answer: Answer) -> None:
        if entry := self._close_run(key, answer):
            entry.answered(answer)

    def _close_run(self, key: tuple[int, int], answer: Answer | None) -> _Open | None:
        entry = self._open.pop(key, None)
        if entry is None:
            return None
        self._singletons -= entry.delivery.run.kind is RunKind.SINGLETON
        if not entry.delivery.sent:
            self.outbox.withdraw(entry.delivery)
        self.outbox.wake()
        metrics.RUNS_IN_FLIGHT.dec()
        self._observe(answer, boottime() - entry.since)
        if entry.trace:
            entry.trace.end(answer)
        return entry

    def _observe(self, answer: Answer | None, seconds: float) -> None:
        if answer is None:
            metrics.CALLBACK_SECONDS.labels("Execute", "CANCELLED").observe(seconds)
        elif isinstance(answer, CallFailed):
            metrics.CALLBACK_SECONDS.labels("Execute", answer.code).observe(seconds)
        else:
            self._answered_seconds.observe(seconds)


def call_failed(status: stream_pb2.CallStatus) -> CallFailed:
    """A status in the stream, as the end of a call: unknown codes and OK become UNKNOWN."""
    code = _CODES.get(status.code, "UNKNOWN")
    message = " ".join(status.message.split())[:_DETAILS_MAX]
    return CallFailed("UNKNOWN" if code == "OK" else code, message)
