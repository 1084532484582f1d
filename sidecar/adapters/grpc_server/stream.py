"""The AppStream service: an app process attaches, and its work travels over one stream.

Guarantees:
- nothing that a process sends ends the sidecar or harms another process: a message that breaks the
  contract ends its own stream with INVALID_ARGUMENT;
- at most STORING_MAX checkpoints and heartbeats of a process are being stored; then it is not read;
- when the stream ends, for whatever reason, the process is detached at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol

import structlog

from sidecar._proto.baton.v1 import stream_pb2, stream_pb2_grpc
from sidecar.adapters.app.process import AttachedProcess
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.convert import duration, run_of
from sidecar.adapters.grpc_app import MESSAGE_BYTES_MAX
from sidecar.adapters.grpc_server.hello import hello_of
from sidecar.adapters.grpc_server.status import EXISTING_BYTES_MAX, code_of, message_of
from sidecar.model.errors import AlreadyExists, InvalidArgument, SidecarError
from sidecar.model.process import ProcessHello
from sidecar.model.run import RunRef

log = structlog.get_logger()

ENTRIES_MAX = 10_000
STORING_MAX = 1000


class Runs(Protocol):
    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None: ...
    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None: ...


class AppStreamService(stream_pb2_grpc.AppStreamServicer):
    def __init__(
        self,
        processes: AttachedProcesses,
        runs: Runs,
        declare: Callable[[ProcessHello], Awaitable[None]],
    ) -> None:
        """`declare` applies what a process declares, or raises InvalidArgument."""
        self._processes = processes
        self._runs = runs
        self._declare = declare

    async def Attach(
        self, requests: AsyncIterator[stream_pb2.AttachRequest], context: Any
    ) -> AsyncIterator[stream_pb2.AttachResponse]:
        first = await anext(aiter(requests), None)
        if first is None or not first.HasField("hello"):
            raise InvalidArgument("hello", "must be in the first message")
        hello = hello_of(first.hello)
        await self._declare(hello)
        process = self._processes.attach(hello)
        stream = _Stream(process, self._runs, self._processes)
        tasks = [
            asyncio.create_task(stream.read(first, requests), name="attach.read"),
            asyncio.create_task(self._processes.watch(process), name="attach.watch"),
        ]
        try:
            process.outbox.welcome(self._welcome())
            while frame := await process.outbox.frame():
                yield frame
            if process.problem:
                raise process.problem
        finally:
            self._processes.detach(process)
            for task in tasks:
                task.cancel()
            stream.cancel()

    def _welcome(self) -> stream_pb2.Welcome:
        messages = self._processes.messages
        return stream_pb2.Welcome(
            cluster=messages.cluster,
            runner_id=messages.runner_id,
            health_interval=duration(self._processes.interval),
            message_bytes_max=MESSAGE_BYTES_MAX,
            frame_entries_max=ENTRIES_MAX,
        )


class _Stream:
    """Reads the messages of one process."""

    def __init__(self, process: AttachedProcess, runs: Runs, processes: AttachedProcesses) -> None:
        self._process = process
        self._runs = runs
        self._processes = processes
        self._storing: set[asyncio.Task[None]] = set()

    def cancel(self) -> None:
        for task in self._storing:
            task.cancel()

    async def read(
        self, first: stream_pb2.AttachRequest, requests: AsyncIterator[stream_pb2.AttachRequest]
    ) -> None:
        """Handle messages until the stream ends; then close the process."""
        try:
            await self._handle(first)
            async for message in requests:
                _check_no_hello(message)
                await self._handle(message)
        except SidecarError as error:
            self._process.close(error)
        except asyncio.CancelledError:
            raise
        except Exception:  # a bug of ours must not leave the process attached
            log.exception("attach_read_failed", process=self._process.hello.process_id)
        finally:
            self._process.close()

    async def _handle(self, message: stream_pb2.AttachRequest) -> None:
        process = self._process
        entries = len(message.answers) + len(message.checkpoints) + len(message.heartbeats)
        if entries > ENTRIES_MAX:
            raise InvalidArgument("answers", f"a message holds at most {ENTRIES_MAX} entries")
        if message.HasField("capacity"):
            self._processes.set_capacity(process, min(message.capacity, process.hello.capacity))
        if message.HasField("pong"):
            process.pong(message.pong.number)
        for answer in message.leadership:
            process.leadership_answered(answer)
        for checkpoint in message.checkpoints:
            await self._store(checkpoint.number, self._checkpoint(checkpoint))
        for heartbeat in message.heartbeats:
            await self._store(heartbeat.number, self._heartbeat(heartbeat))
        if message.answers:
            process.answered(message.answers)

    async def _store(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        while len(self._storing) >= STORING_MAX:
            await asyncio.wait(self._storing, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(self._answer(number, work), name="attach.store")
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _answer(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        stored = stream_pb2.Stored(number=number)
        try:
            await work
        except SidecarError as error:
            stored.error.code = code_of(error).value[0]
            stored.error.message = message_of(error)
            existing = error.existing if isinstance(error, AlreadyExists) else None
            if existing is not None and len(existing) <= EXISTING_BYTES_MAX:
                stored.existing = existing
        except Exception:  # the log has the traceback, the app a short message
            log.exception("attach_store_failed", process=self._process.hello.process_id)
            stored.error.code, stored.error.message = 13, "internal error; see the sidecar's log"
        self._process.outbox.stored(stored)

    async def _checkpoint(self, message: stream_pb2.StreamCheckpoint) -> None:
        await self._runs.checkpoint(_run(message), message.step, message.value)

    async def _heartbeat(self, message: stream_pb2.StreamHeartbeat) -> None:
        progress = message.progress if message.HasField("progress") else None
        text = message.message if message.HasField("message") else None
        await self._runs.heartbeat(_run(message), progress, text)


def _check_no_hello(message: stream_pb2.AttachRequest) -> None:
    if message.HasField("hello"):
        raise InvalidArgument("hello", "must be in the first message only")


def _run(message: stream_pb2.StreamCheckpoint | stream_pb2.StreamHeartbeat) -> RunRef:
    if (run := run_of(message)) is None:
        raise InvalidArgument("run", "is missing")
    return run
