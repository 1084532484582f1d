"""The work stream of the fake: several processes may attach, the first one leads."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio

from baton.testing._apps import CALLBACK_SECONDS, Pending, StreamedRun, rpc_error, status_code
from baton.testing._common import Call, Refused, Terms
from baton.testing._runs import RunBook
from baton.v1 import callback_pb2, runs_pb2
from baton.v1 import stream_pb2 as pb
from baton.v1.stream_pb2_grpc import AppStreamServicer

HEALTH_SECONDS = 1.0
_Change = tuple[pb.LeadershipEvent, str, int]


class AttachedProcess:
    """One stream: what was said over it, and what is awaited from it."""

    def __init__(self, hello: pb.Hello, terms: Terms, book: RunBook) -> None:
        self.hello, self.capacity = hello, hello.capacity
        self.running = 0
        self.pongs: list[int] = []
        self.frames: list[pb.AttachRequest] = []  # as they came, `hello` excepted
        self._terms, self._book = terms, book
        self._out: asyncio.Queue[pb.AttachResponse | None] = asyncio.Queue()
        self._gathered: pb.AttachResponse | None = None
        self._runs: dict[tuple[int, int], StreamedRun] = {}
        self._changes: dict[_Change, asyncio.Future[None]] = {}
        self._pings = itertools.count(1)

    def can_execute(self, name: str) -> bool:
        """Whether it has the handler of a job, and room for it."""
        return name in self.hello.jobs and self.running < self.capacity

    async def become(self, request: callback_pb2.OnBecomeLeaderRequest) -> None:
        change = pb.LeadershipChange(become=request)
        await self._changed(pb.LEADERSHIP_EVENT_BECOME, request.context, change)

    async def lose(self, request: callback_pb2.OnLoseLeadershipRequest) -> None:
        change = pb.LeadershipChange(lose=request)
        await self._changed(pb.LEADERSHIP_EVENT_LOSE, request.context, change)

    def execute(self, request: callback_pb2.ExecuteRequest, timeout: float | None) -> Pending:
        """Sends a run; the app stops it at the deadline, and so does the fake."""
        sent = callback_pb2.ExecuteRequest()
        sent.CopyFrom(request)
        sent.context.cluster = sent.context.runner_id = ""
        key = (request.run_id, request.attempt)
        run = self._runs[key] = StreamedRun(lambda reason: self._withdraw(key, reason))
        run.answer.add_done_callback(lambda _: self._runs.pop(key, None))
        if timeout is not None:
            late = rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline has passed")
            asyncio.get_running_loop().call_later(timeout + 0.5, _fail, run.answer, late)
        self._send_run(sent)
        return run

    def send(self, message: pb.AttachResponse) -> None:
        """Puts a message on the stream, whatever it says."""
        self._out.put_nowait(message)

    def _send_run(self, run: callback_pb2.ExecuteRequest) -> None:
        """Sends a run together with those that come before the writer does."""
        if self._gathered is None:
            self._gathered = pb.AttachResponse()
            self.send(self._gathered)
        self._gathered.runs.append(run)

    def close(self) -> None:
        """Ends the stream from this side, as a sidecar does that stops."""
        self._out.put_nowait(None)

    async def outgoing(self) -> AsyncIterator[pb.AttachResponse]:
        """What the app is sent: messages, and health checks and trust in their time."""
        keeper = asyncio.create_task(self._keep())
        try:
            while (message := await self._out.get()) is not None:
                if message is self._gathered:
                    self._gathered = None
                yield message
        finally:
            keeper.cancel()

    def receive(self, message: pb.AttachRequest) -> None:
        """Takes in a message of the app, in the order of the contract."""
        self.frames.append(message)
        if message.HasField("capacity"):
            self.capacity = message.capacity
        if message.HasField("pong"):
            self.pongs.append(message.pong.number)
        for answer in message.leadership:
            self._settle_change(answer)
        stored = [self._store_step(point) for point in message.checkpoints]
        stored += [self._store_beat(beat) for beat in message.heartbeats]
        if stored:
            self.send(pb.AttachResponse(stored=stored))
        for run in message.answers:
            self._settle_run(run)

    def broke(self) -> None:
        """The stream is gone: whoever waits for this process waits in vain."""
        gone = rpc_error(grpc.StatusCode.UNAVAILABLE, "the stream broke")
        for change in [*self._changes.values()]:
            _fail(change, gone)
        for run in [*self._runs.values()]:
            _fail(run.answer, gone)

    async def _changed(
        self,
        event: pb.LeadershipEvent,
        context: callback_pb2.ClusterContext,
        change: pb.LeadershipChange,
    ) -> None:
        key = (event, context.group, context.epoch)
        answered = self._changes.setdefault(key, asyncio.Future())
        self.send(pb.AttachResponse(leadership=[change]))
        try:
            async with asyncio.timeout(CALLBACK_SECONDS):
                await asyncio.shield(answered)
        except TimeoutError:
            raise rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer") from None
        finally:
            self._changes.pop(key, None)  # the loss of a term may be told by two

    def _settle_change(self, answer: pb.LeadershipAnswer) -> None:
        answered = self._changes.get((answer.event, answer.group, answer.epoch))
        if answered is None or answered.done():
            return
        if answer.HasField("error"):
            code = status_code(answer.error.code)
            answered.set_exception(rpc_error(code, answer.error.message))
        else:
            answered.set_result(None)

    def _settle_run(self, answer: pb.RunAnswer) -> None:
        run = self._runs.get((answer.run_id, answer.attempt))
        if run is None or run.answer.done():
            return
        if answer.HasField("status"):
            code = status_code(answer.status.code)
            run.answer.set_exception(rpc_error(code, answer.status.message))
        else:
            run.answer.set_result(answer.response)

    def _store_step(self, point: pb.StreamCheckpoint) -> pb.Stored:
        store = self._book.checkpoint
        return _stored(point.number, lambda: store(point.run, point.step, point.value))

    def _store_beat(self, beat: pb.StreamHeartbeat) -> pb.Stored:
        request = runs_pb2.RunsHeartbeatRequest(run=beat.run)
        if beat.HasField("progress"):
            request.progress = beat.progress
        if beat.HasField("message"):
            request.message = beat.message
        return _stored(beat.number, lambda: self._book.heartbeat(request))

    def _withdraw(self, key: tuple[int, int], reason: str) -> None:
        cancel = pb.RunCancel(run_id=key[0], attempt=key[1], reason=reason)
        self.send(pb.AttachResponse(cancels=[cancel]))

    async def _keep(self) -> None:
        """Health checks and renewals, about once a second, unless the fake is frozen."""
        while True:
            if self._terms.renewing:
                led = [group for group, term in self._terms.groups.items() if term.leads]
                trust = [self._terms.leader(group) for group in led]
                ping = pb.Ping(number=next(self._pings))
                self.send(pb.AttachResponse(trust=trust, ping=ping))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_SECONDS), self._terms.changed:
                    await self._terms.changed.wait()


class FakeAppStream(AppStreamServicer):
    """Accepts processes; `left` is called with each one whose stream has ended."""

    def __init__(
        self,
        terms: Terms,
        book: RunBook,
        joined: Callable[[AttachedProcess], None],
        left: Callable[[AttachedProcess], None],
    ) -> None:
        self._terms, self._book = terms, book
        self._joined, self._left = joined, left

    async def Attach(
        self, request: AsyncIterator[pb.AttachRequest], call: Call
    ) -> AsyncIterator[pb.AttachResponse]:
        first = await anext(aiter(request), None)
        if first is None or not first.HasField("hello"):
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, "hello: the first message needs it")
        process = AttachedProcess(first.hello, self._terms, self._book)
        reader = asyncio.create_task(self._read(request, process))
        try:
            yield pb.AttachResponse(welcome=_WELCOME)
            self._joined(process)
            async for message in process.outgoing():
                yield message
        finally:
            reader.cancel()
            process.broke()
            self._left(process)

    async def _read(
        self, request: AsyncIterator[pb.AttachRequest], process: AttachedProcess
    ) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for message in request:
                process.receive(message)
        process.close()


_WELCOME = pb.Welcome(
    cluster="test",
    runner_id="fake-runner",
    health_interval=timedelta(seconds=HEALTH_SECONDS),
    message_bytes_max=4 << 20,
    frame_entries_max=2048,
)


def _stored(number: int, store: Callable[[], None]) -> pb.Stored:
    try:
        store()
    except Refused as refused:
        error = pb.CallStatus(code=refused.code.value[0], message=str(refused))
        return pb.Stored(number=number, error=error, existing=refused.existing)
    return pb.Stored(number=number)


def _fail(pending: asyncio.Future[Any], error: Exception) -> None:
    if not pending.done():
        pending.set_exception(error)
        pending.exception()  # it may be that nobody waits any more
