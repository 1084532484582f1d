"""The toy app on the work stream: attaches, and hands what comes to the servicer of the callback.

So every test of the lab can run over both transports. It speaks the contract with stubs alone. When
the stream breaks, the app no longer leads: that is written down as a `lose` of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc, leadership_pb2, stream_pb2_grpc
from sidecar._proto.baton.v1 import stream_pb2 as pb

_AGAIN_SECONDS = 0.1
_STOP_SECONDS = 1.0
BECOME, LOSE = pb.LEADERSHIP_EVENT_BECOME, pb.LEADERSHIP_EVENT_LOSE


class _Aborted(Exception):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.status = pb.CallStatus(code=code.value[0], message=details)


class _Context:
    """What the servicer asks of a call."""

    def __init__(self, traceparent: str = "") -> None:
        self._metadata = (("traceparent", traceparent),) if traceparent else ()

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata

    async def abort(self, code: grpc.StatusCode, details: str = "") -> None:
        raise _Aborted(code, details)


class ToyStream:
    """Attaches again and again until it is cancelled."""

    def __init__(
        self,
        app: callback_pb2_grpc.AppCallbackServicer,
        hello: pb.Hello,
        *,
        renewed: Callable[[leadership_pb2.Leader], None],
        broken: Callable[[str], None],
        healthy: Callable[[], bool],
    ) -> None:
        self._app: Any = app
        self._hello = hello
        self._renewed, self._broken, self._healthy = renewed, broken, healthy
        self._outgoing: asyncio.Queue[pb.AttachRequest] = asyncio.Queue()
        self._tasks: dict[tuple[Any, ...], asyncio.Task[None]] = {}
        self._welcome = pb.Welcome()

    async def run(self, channel: grpc.aio.Channel) -> None:
        stub = stream_pb2_grpc.AppStreamStub(channel)
        while True:
            self._outgoing = asyncio.Queue()
            self._outgoing.put_nowait(pb.AttachRequest(hello=self._hello))
            try:
                async for message in stub.Attach(self._requests()):
                    self._handle(message)
                self._broken("ended")
            except grpc.aio.AioRpcError as error:
                self._broken(f"{error.code().name}: {error.details()}")
            finally:
                await self._cancel_all()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _requests(self) -> AsyncIterator[pb.AttachRequest]:
        while True:
            yield await self._outgoing.get()

    def _send(self, **fields: Any) -> None:
        self._outgoing.put_nowait(pb.AttachRequest(**fields))

    def _handle(self, message: pb.AttachResponse) -> None:
        if message.HasField("welcome"):
            self._welcome = message.welcome
        for change in message.leadership:
            self._change(change)
        for leader in message.trust:
            self._renewed(leader)
        for cancel in message.cancels:
            if task := self._tasks.get((cancel.run_id, cancel.attempt)):
                task.cancel()
        for run in message.runs:
            run.context.cluster = self._welcome.cluster
            run.context.runner_id = self._welcome.runner_id
            self._spawn((run.run_id, run.attempt), self._execute(run))
        if message.HasField("ping") and self._healthy():
            self._send(pong=pb.Pong(number=message.ping.number))

    def _change(self, change: pb.LeadershipChange) -> None:
        become = change.WhichOneof("change") == "become"
        call = self._app.OnBecomeLeader if become else self._app.OnLoseLeadership
        event, about = (BECOME, change.become) if become else (LOSE, change.lose)
        key = (event, about.context.group, about.context.epoch, id(change))
        self._spawn(key, self._answer_change(call, event, about))

    async def _answer_change(
        self,
        call: Callable[..., Awaitable[object]],
        event: Any,
        about: callback_pb2.OnBecomeLeaderRequest | callback_pb2.OnLoseLeadershipRequest,
    ) -> None:
        answer = pb.LeadershipAnswer(
            event=event, group=about.context.group, epoch=about.context.epoch
        )
        try:
            await call(about, _Context())
        except _Aborted as aborted:
            answer.error.CopyFrom(aborted.status)
        self._send(leadership=[answer])

    async def _execute(self, run: callback_pb2.ExecuteRequest) -> None:
        answer = pb.RunAnswer(run_id=run.run_id, attempt=run.attempt)
        try:
            answer.response.CopyFrom(await self._app.Execute(run, _Context(run.traceparent)))
        except _Aborted as aborted:
            answer.status.CopyFrom(aborted.status)
        self._send(answers=[answer])

    def _spawn(self, key: tuple[Any, ...], work: Any) -> None:
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _cancel_all(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)


def hello(handlers: list[str], capacity: int = 1500) -> pb.Hello:
    """The toy app executes whatever it is given: every name is a singleton and a schedule."""
    return pb.Hello(
        client="toy/1",
        process_id=str(os.getpid()),
        capacity=capacity,
        singletons=handlers,
        schedules=handlers,
    )
