"""One stream to the sidecar, from `hello` to its end: proto/baton/v1/stream.proto in Python.

Runs, leadership and health checks come in, answers go out. When the stream ends, everything that
came over it is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import grpc
import grpc.aio

from baton._callbacks import loss_reason
from baton._cluster import ClusterContext, HookScope, enter_scope
from baton._connection import repeated
from baton._context import Context
from baton._handlers import Handlers
from baton._leading import Leading, TermOver
from baton._link import Link
from baton._outbox import Call, Outbox
from baton._sidecar import Sidecar
from baton._terms import trust_end
from baton.errors import BatonError, DeadlineExceeded, Unavailable, error_of
from baton.v1 import callback_pb2, runs_pb2
from baton.v1 import stream_pb2 as pb

log = logging.getLogger("baton")
_JOB = runs_pb2.RUN_KIND_JOB
_SINGLETON = runs_pb2.RUN_KIND_SINGLETON
_DEADLINE = "DEADLINE"
_EOF: object = grpc.aio.EOF  # type: ignore[attr-defined]
_SHARED_BYTES_MAX = 1 << 18  # a run keeps the frame that it came in; a larger one is taken apart
_SILENT_INTERVALS = 5  # health checks that fail to come before the sidecar counts as frozen
_SILENT_SECONDS_MIN = 5.0


class Stream(Link):
    """One connection of this process; what runs on it."""

    def __init__(self, sidecar: Sidecar, leading: Leading, handlers: Handlers, call: Call) -> None:
        super().__init__(sidecar)
        self.welcomed = False
        self._leading, self._handlers, self._call = leading, handlers, call
        self._outbox = Outbox()
        self._open: dict[tuple[int, int], Context] = {}
        self._withdrawn: set[Context] = set()  # cancelled by the sidecar: no answer is accepted
        self._changes: set[asyncio.Task[None]] = set()
        self._silent_seconds = 0.0
        self._heard_at = self.loop.time()
        self._new_task = _task_maker(self.loop)

    async def run(self, hello: pb.Hello) -> None:
        """Works until the stream breaks, which is a `BatonError`."""
        self._outbox.hello(hello)
        helpers = [
            asyncio.create_task(self._write(), name="baton-stream-writer"),
            asyncio.create_task(self._notice_silence(), name="baton-stream-silence"),
        ]
        try:
            await self._read()
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from None
        except grpc.aio.UsageError as error:  # the channel was closed meanwhile
            raise BatonError("the connection to the sidecar was closed") from error
        except asyncio.CancelledError:  # of this task, or of the call by one of the helpers
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            raise _broken("the stream broke") from None
        finally:
            for helper in helpers:
                helper.cancel()
            self._call.cancel()
            self._break()

    def leave(self) -> None:
        """Says that this process takes no more runs and no term."""
        self.draining.set()
        self._outbox.capacity(0)

    async def quiet(self) -> None:
        """Returns when no run is open."""
        while tasks := {attempt.task for attempt in self._open.values() if attempt.task}:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # what follows from the end of a task comes in the next turn

    async def finish(self) -> None:
        """Sends what is left to say and closes the stream in order."""
        for attempt in [*self._open.values()]:
            attempt.cancel("SHUTDOWN")
        await self.quiet()
        await self._outbox.flush()
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()

    async def checkpoint(self, run: runs_pb2.RunRef, step: str, value: bytes) -> None:
        await self._stored(lambda: self._outbox.checkpoint(run, step, value))

    async def heartbeat(
        self, run: runs_pb2.RunRef, progress: float | None, message: str | None
    ) -> None:
        await self._stored(lambda: self._outbox.heartbeat(run, progress, message))

    def cancelled(self, attempt: Context) -> None:
        if attempt.task is not None:
            attempt.task.add_done_callback(partial(self._stopped, attempt))

    async def _read(self) -> None:
        read: Callable[[], Awaitable[Any]] = self._call.read
        while True:
            frame = await read()
            if frame is _EOF:
                raise _broken("the sidecar ended the stream")
            self._heard_at = self.loop.time()
            self._handle(frame)

    def _handle(self, frame: pb.AttachResponse) -> None:
        if frame.HasField("welcome"):
            self._welcome(frame.welcome)
        for change in frame.leadership:
            self._change(change)
        for leader in frame.trust:
            self._leading.hear(leader)
        for cancel in frame.cancels:
            self._withdraw(cancel)
        for stored in frame.stored:
            self._outbox.stored(stored)
        if runs := frame.runs:
            is_large = len(runs) > 1 and frame.ByteSize() > _SHARED_BYTES_MAX
            for request in runs:
                self._start(_copied(request) if is_large else request)
        if frame.HasField("ping"):
            self._outbox.pong(frame.ping.number)

    def _welcome(self, welcome: pb.Welcome) -> None:
        self.cluster, self.runner_id = welcome.cluster, welcome.runner_id
        self.welcomed = True
        self._outbox.limit(welcome)
        interval = welcome.health_interval.ToTimedelta().total_seconds()
        if interval > 0:
            self._silent_seconds = max(_SILENT_INTERVALS * interval, _SILENT_SECONDS_MIN)
        log.info("attached to %s of cluster %s", self.runner_id, self.cluster)

    def _start(self, request: callback_pb2.ExecuteRequest) -> None:
        """Starts a run in a task of its own, or says why not."""
        kind, term = request.kind, None
        if kind != _JOB:
            context = request.context
            term = self._leading.term(context.group or "default", context.epoch)
            if term is None:
                self._refuse(request, grpc.StatusCode.UNAVAILABLE, f"not in term {context.epoch}")
                return
        name = request.name
        handler = self._handlers.find(kind, name)
        if handler is None:
            no_handler = f"no handler for {name!r}"
            self._refuse(request, grpc.StatusCode.NOT_FOUND, no_handler)
            return
        attempt = Context(request, self, term)
        key = (attempt.run_id, attempt.attempt)
        if key in self._open:
            return
        self._open[key] = attempt
        work = self._handlers.run(handler, attempt, self._settle)
        attempt.task = self._new_task(work, name=name)
        if term is not None:
            self._leading.enter(term, attempt)
        if request.HasField("deadline"):
            seconds = request.deadline.ToNanoseconds() / 1e9 - time.time()
            attempt.timer = self.loop.call_later(max(seconds, 0), attempt.cancel, _DEADLINE)

    def _settle(self, attempt: Context, response: callback_pb2.ExecuteResponse | None) -> None:
        if not attempt.cancelled:  # else `_stopped` answers
            self._forget(attempt)
            self._outbox.answer(attempt.run_id, attempt.attempt, response)

    def _stopped(self, attempt: Context, task: asyncio.Task[Any]) -> None:
        """Answers for an attempt that was cancelled, possibly before it began."""
        self._forget(attempt)
        if attempt in self._withdrawn:
            self._withdrawn.discard(attempt)
        elif not task.cancelled():
            self._outbox.answer(attempt.run_id, attempt.attempt, task.result())
        elif attempt.cancel_reason == _DEADLINE:
            late = grpc.StatusCode.DEADLINE_EXCEEDED
            self._outbox.refuse(attempt.run_id, attempt.attempt, late, "the deadline has passed")
        else:
            away = grpc.StatusCode.UNAVAILABLE
            self._outbox.refuse(attempt.run_id, attempt.attempt, away, attempt.cancel_reason)

    def _forget(self, attempt: Context) -> None:
        self._open.pop((attempt.run_id, attempt.attempt), None)
        if attempt.term is not None:
            self._leading.leave(attempt.term, attempt)
        if attempt.timer is not None:
            attempt.timer.cancel()

    def _refuse(
        self, request: callback_pb2.ExecuteRequest, code: grpc.StatusCode, message: str
    ) -> None:
        self._outbox.refuse(request.run_id, request.attempt, code, message)

    def _withdraw(self, cancel: pb.RunCancel) -> None:
        attempt = self._open.get((cancel.run_id, cancel.attempt))
        if attempt is not None and not attempt.cancelled:
            self._withdrawn.add(attempt)
            attempt.cancel("HANDOVER" if attempt.draining else "CALL_CANCELLED")

    def _change(self, change: pb.LeadershipChange) -> None:
        """Begins or ends a term beside the reader: hooks may take their time."""
        if change.WhichOneof("change") == "become":
            trusted_until = trust_end(change.become, read_at=self._leading.terms.clock())
            work: Coroutine[Any, Any, None] = self._become(change.become, trusted_until)
        elif change.WhichOneof("change") == "lose":
            work = self._lose(change.lose)
        else:
            return
        task = asyncio.create_task(work)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _become(
        self, request: callback_pb2.OnBecomeLeaderRequest, trusted_until: float | None
    ) -> None:
        context, error = self._entered(request.context), None
        try:
            if self._leading.stopping:
                error = _status(grpc.StatusCode.UNAVAILABLE, "the app is stopping")
            else:
                await self._leading.become(context, trusted_until)
        except TermOver as over:
            error = _status(grpc.StatusCode.CANCELLED, str(over))
        except Exception as failed:
            log.exception("the hook for becoming leader of %s failed", context.group)
            error = _status(grpc.StatusCode.INTERNAL, f"hook failed: {type(failed).__name__}")
        self._answer_change(pb.LEADERSHIP_EVENT_BECOME, request.context, error)

    async def _lose(self, request: callback_pb2.OnLoseLeadershipRequest) -> None:
        context, error = self._entered(request.context), None
        if not await self._leading.lose(context, loss_reason(request), epoch=context.epoch):
            error = _status(grpc.StatusCode.INTERNAL, "hook failed")
        self._answer_change(pb.LEADERSHIP_EVENT_LOSE, request.context, error)

    def _answer_change(
        self,
        event: pb.LeadershipEvent,
        context: callback_pb2.ClusterContext,
        error: pb.CallStatus | None,
    ) -> None:
        answer = pb.LeadershipAnswer(
            event=event, group=context.group, epoch=context.epoch, error=error
        )
        self._outbox.leadership(answer)

    def _entered(self, message: callback_pb2.ClusterContext) -> ClusterContext:
        context = ClusterContext.of(message, cluster=self.cluster, runner_id=self.runner_id)
        enter_scope(HookScope(context, self.sidecar))
        return context

    async def _stored(self, send: Callable[[], asyncio.Future[None]]) -> None:
        """Sends a checkpoint or heartbeat until the sidecar has it, as a call would."""

        async def once(seconds: float) -> None:
            try:
                async with asyncio.timeout(seconds):
                    await send()
            except TimeoutError:
                late = grpc.StatusCode.DEADLINE_EXCEEDED
                raise DeadlineExceeded("no answer of the sidecar", code=late) from None

        await repeated(once, repeatable=lambda: not self._outbox.closed)

    async def _write(self) -> None:
        try:
            await self._outbox.send(self._call)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            self._call.cancel()  # the reader learns why

    async def _notice_silence(self) -> None:
        """Ends the stream of a sidecar that is frozen: other pods take its runs over by then."""
        while True:
            await asyncio.sleep(1.0)
            limit = self._silent_seconds
            if limit and self.loop.time() - self._heard_at > limit:
                await asyncio.sleep(0.1)  # a loop that was blocked finds its messages now
                if self.loop.time() - self._heard_at > limit:
                    log.warning("no health check for %s s: the sidecar is frozen or cut off", limit)
                    self._call.cancel()

    def _break(self) -> None:
        """Ends everything that came over this stream."""
        self._outbox.close()
        self._leading.disconnected()
        for attempt in [*self._open.values()]:
            attempt.cancel("CALL_CANCELLED")
        for task in self._changes:
            task.cancel()


def _broken(message: str) -> Unavailable:
    return Unavailable(message, code=grpc.StatusCode.UNAVAILABLE)


def _task_maker(loop: asyncio.AbstractEventLoop) -> Callable[..., asyncio.Task[Any]]:
    """The loop's `create_task`, without its cost where that does no more than make a task."""
    if loop.get_task_factory() is not None or loop.get_debug():
        return loop.create_task
    return partial(asyncio.Task, loop=loop)


def _copied(request: callback_pb2.ExecuteRequest) -> callback_pb2.ExecuteRequest:
    return callback_pb2.ExecuteRequest.FromString(request.SerializeToString())


def _status(code: grpc.StatusCode, message: str) -> pb.CallStatus:
    return pb.CallStatus(code=code.value[0], message=message)
