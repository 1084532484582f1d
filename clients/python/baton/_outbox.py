"""What goes to the sidecar over the stream, sent by one writer.

An entry is sent at once while the writer is idle. What comes while a write is under way is gathered
into frames of at most 512 entries and about 1 MiB, and leaves as one message. Health checks,
leadership and capacity are urgent: they overtake every frame.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque

import grpc
import grpc.aio

from baton._outcomes import too_large
from baton.errors import LimitExceeded, Unavailable, status_error
from baton.v1 import callback_pb2, runs_pb2
from baton.v1 import stream_pb2 as pb

Call = grpc.aio.StreamStreamCall[pb.AttachRequest, pb.AttachResponse]

FRAME_BYTES_MAX = 1 << 20
FRAME_ENTRIES_MAX = 512
MESSAGE_BYTES_MAX = 4 << 20  # what gRPC reads unless it is told otherwise
_ENTRY_BYTES = 40  # an entry without its body: two numbers, tags and lengths


class Outbox:
    """Everything that waits to be sent over one stream."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._urgent: pb.AttachRequest | None = None
        self._frames: deque[pb.AttachRequest] = deque()
        self._entries = self._bytes = 0  # of the last frame
        self._frame_bytes_max, self._frame_entries_max = FRAME_BYTES_MAX, FRAME_ENTRIES_MAX
        self._message_bytes_max = MESSAGE_BYTES_MAX
        self._numbers = itertools.count(1)
        self._stored: dict[int, asyncio.Future[None]] = {}
        self._wake: asyncio.Future[None] | None = None
        self._empty: asyncio.Future[None] | None = None
        self.closed = False

    def limit(self, welcome: pb.Welcome) -> None:
        """Takes over what the sidecar reads."""
        self._message_bytes_max = welcome.message_bytes_max or MESSAGE_BYTES_MAX
        self._frame_bytes_max = min(FRAME_BYTES_MAX, self._message_bytes_max)
        self._frame_entries_max = min(
            FRAME_ENTRIES_MAX, welcome.frame_entries_max or FRAME_ENTRIES_MAX
        )

    def hello(self, hello: pb.Hello) -> None:
        """The first message."""
        self._at_once().hello.CopyFrom(hello)

    def capacity(self, capacity: int) -> None:
        """How many runs this process takes from now on."""
        self._at_once().capacity = capacity

    def pong(self, number: int) -> None:
        """Answers a health check."""
        self._at_once().pong.number = number

    def leadership(self, answer: pb.LeadershipAnswer) -> None:
        """Answers become or lose."""
        self._at_once().leadership.append(answer)

    def answer(
        self, run_id: int, attempt: int, response: callback_pb2.ExecuteResponse | None
    ) -> None:
        """How an attempt ended; None: succeeded, with nothing to say about it."""
        if response is None:
            self._frame(_ENTRY_BYTES).answers.add(run_id=run_id, attempt=attempt)
            return
        size = response.ByteSize() + _ENTRY_BYTES
        if size > self._message_bytes_max:
            response = too_large(size, self._message_bytes_max)
            size = response.ByteSize() + _ENTRY_BYTES
        self._frame(size).answers.add(run_id=run_id, attempt=attempt, response=response)

    def refuse(self, run_id: int, attempt: int, code: grpc.StatusCode, message: str) -> None:
        """Ends an attempt with a status instead of a response."""
        status = pb.CallStatus(code=code.value[0], message=message)
        frame = self._frame(_ENTRY_BYTES + len(message))
        frame.answers.add(run_id=run_id, attempt=attempt, status=status)

    def checkpoint(self, run: runs_pb2.RunRef, step: str, value: bytes) -> asyncio.Future[None]:
        """Stores a step; the future ends with the sidecar's answer."""
        size = 2 * _ENTRY_BYTES + 4 * len(step) + len(value)
        if size > self._message_bytes_max:
            limit = self._message_bytes_max
            raise LimitExceeded(f"step {step!r} has {size} bytes; the sidecar reads {limit}")
        number, future = self._expect()
        self._frame(size).checkpoints.add(number=number, run=run, step=step, value=value)
        return future

    def heartbeat(
        self, run: runs_pb2.RunRef, progress: float | None, message: str | None
    ) -> asyncio.Future[None]:
        """A sign of life; the future ends with the sidecar's answer."""
        number, future = self._expect()
        size = 2 * _ENTRY_BYTES + 4 * len(message or "")
        frame = self._frame(size)
        frame.heartbeats.add(number=number, run=run, progress=progress, message=message)
        return future

    def stored(self, answer: pb.Stored) -> None:
        """Ends the future of a checkpoint or heartbeat."""
        future = self._stored.pop(answer.number, None)
        if future is None or future.done():
            return
        if answer.HasField("error"):
            existing = answer.existing if answer.HasField("existing") else None
            future.set_exception(
                status_error(answer.error.code, answer.error.message, existing=existing)
            )
        else:
            future.set_result(None)

    async def send(self, call: Call) -> None:
        """Writes what is there, for as long as the stream is open."""
        while True:
            message = self._next()
            if message is not None:
                await call.write(message)
                continue
            if self._empty is not None and not self._empty.done():
                self._empty.set_result(None)
            self._wake = self._loop.create_future()
            await self._wake

    async def flush(self) -> None:
        """Returns when everything was handed to gRPC."""
        if self.closed or (self._wake is not None and not self._wake.done()):
            return  # the writer is gone, or idle
        self._empty = self._loop.create_future()
        await self._empty

    def close(self) -> None:
        """The stream is gone: nothing more is sent, and what waits for an answer fails."""
        self.closed = True
        self._urgent = None
        self._frames.clear()
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        for future in self._stored.values():
            if not future.done():
                away = grpc.StatusCode.UNAVAILABLE
                future.set_exception(Unavailable("the stream to the sidecar broke", code=away))
                future.exception()  # a caller that was cancelled does not ask for it
        self._stored.clear()

    def _expect(self) -> tuple[int, asyncio.Future[None]]:
        if self.closed:
            away = grpc.StatusCode.UNAVAILABLE
            raise Unavailable("the stream to the sidecar broke", code=away)
        number, future = next(self._numbers), self._loop.create_future()
        self._stored[number] = future
        return number, future

    def _at_once(self) -> pb.AttachRequest:
        self._stir()
        if self._urgent is None or self.closed:
            self._urgent = pb.AttachRequest()
        return self._urgent

    def _frame(self, size: int) -> pb.AttachRequest:
        """The frame with room for an entry of this size."""
        frames = self._frames
        if (
            not frames
            or self._entries >= self._frame_entries_max
            or self._bytes + size > self._frame_bytes_max
        ):
            frame = pb.AttachRequest()
            if self.closed:
                return frame
            frames.append(frame)
            self._entries = self._bytes = 0
            self._stir()
        self._entries += 1
        self._bytes += size
        return frames[-1]

    def _stir(self) -> None:
        if (wake := self._wake) is not None and not wake.done():
            wake.set_result(None)

    def _next(self) -> pb.AttachRequest | None:
        if self._urgent is not None:
            message, self._urgent = self._urgent, None
            return message
        return self._frames.popleft() if self._frames else None
