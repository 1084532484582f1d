"""What waits to be sent to an attached process, and the frames in which it leaves.

Guarantees:
- pings, cancels and changes of leadership never wait behind runs: they are in the next frame;
- a frame holds at most FRAME_RUNS runs and about FRAME_BYTES; what comes while a frame is being
  written gathers in the next one, and a lone message leaves at once;
- the memory is bounded even if the process never reads: one ping, one renewal of trust per group,
  one change per group and epoch, and no more runs than its capacity;
- no run is sent while the process has as many as it takes (`room`), except those of singletons.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from sidecar._proto.baton.v1 import callback_pb2, leadership_pb2, stream_pb2
from sidecar.adapters.app.messages import fill_execute
from sidecar.model.run import Run, RunKind

FRAME_RUNS = 512
FRAME_BYTES = 1024 * 1024
_RUN_BYTES = 256  # what a run costs besides payload, state and checkpoints


class Delivery:
    """A run that waits to be sent, or was sent; `traceparent` is for the app's spans."""

    __slots__ = ("cancelled", "run", "sent", "traceparent")

    def __init__(self, run: Run, traceparent: str = "") -> None:
        self.run = run
        self.traceparent = traceparent
        self.sent = False
        self.cancelled = False


class Outbox:
    def __init__(self, room: Callable[[], int] = lambda: FRAME_RUNS) -> None:
        """`room`: how many more runs the process takes now; `wake` when it grew."""
        self._room = room
        self._runs: deque[Delivery] = deque()
        self._singletons: deque[Delivery] = deque()
        self.unsent = 0  # runs that wait here, without those of singletons
        self._welcome: stream_pb2.Welcome | None = None
        self._leadership: dict[tuple[bool, str, int], stream_pb2.LeadershipChange] = {}
        self._trust: dict[str, leadership_pb2.Leader] = {}
        self._cancels: deque[stream_pb2.RunCancel] = deque()
        self._stored: deque[stream_pb2.Stored] = deque()
        self._ping = 0
        self._waiting = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """`frame` returns None from now on."""
        self._closed = True
        self._waiting.set()

    # ── what is sent ────────────────────────────────────────────────────────────────────────────

    def welcome(self, message: stream_pb2.Welcome) -> None:
        self._welcome = message
        self._waiting.set()

    def run(self, delivery: Delivery) -> None:
        singleton = delivery.run.kind is RunKind.SINGLETON
        (self._singletons if singleton else self._runs).append(delivery)
        self.unsent += not singleton
        self._waiting.set()

    def withdraw(self, delivery: Delivery) -> None:
        """Do not send a run that waits here."""
        if not delivery.cancelled:
            delivery.cancelled = True
            self.unsent -= delivery.run.kind is not RunKind.SINGLETON

    def wake(self) -> None:
        """The process may take more runs."""
        if self._runs:
            self._waiting.set()

    def become(self, request: callback_pb2.OnBecomeLeaderRequest) -> None:
        key = True, request.context.group, request.context.epoch
        self._leadership[key] = stream_pb2.LeadershipChange(become=request)
        self._waiting.set()

    def lose(self, request: callback_pb2.OnLoseLeadershipRequest) -> None:
        self._trust.pop(request.context.group, None)  # no renewal after the loss
        key = False, request.context.group, request.context.epoch
        self._leadership[key] = stream_pb2.LeadershipChange(lose=request)
        self._waiting.set()

    def trust(self, leader: leadership_pb2.Leader) -> None:
        self._trust[leader.group] = leader
        self._waiting.set()

    def cancel(self, run_id: int, attempt: int, reason: str) -> None:
        self._cancels.append(stream_pb2.RunCancel(run_id=run_id, attempt=attempt, reason=reason))
        self._waiting.set()

    def stored(self, message: stream_pb2.Stored) -> None:
        self._stored.append(message)
        self._waiting.set()

    def ping(self, number: int) -> None:
        self._ping = number
        self._waiting.set()

    # ── frames ──────────────────────────────────────────────────────────────────────────────────

    async def frame(self) -> stream_pb2.AttachResponse | None:
        """The next frame, as soon as there is something to send; None: the outbox is closed."""
        while not self._closed:
            self._waiting.clear()
            if frame := self._gathered():
                return frame
            await self._waiting.wait()
        return None

    def _gathered(self) -> stream_pb2.AttachResponse | None:
        frame = stream_pb2.AttachResponse()
        size = self._add_urgent(frame)
        size += self._add_runs(frame, self._singletons, FRAME_RUNS, size)
        size += self._add_runs(frame, self._runs, self._room(), size)
        return frame if size else None

    def _add_runs(
        self, frame: stream_pb2.AttachResponse, waiting: deque[Delivery], most: int, size: int
    ) -> int:
        """Add runs up to the limits of the frame; returns how many bytes they add."""
        before, runs = size, frame.runs
        while waiting and most > 0 and len(runs) < FRAME_RUNS and size < FRAME_BYTES:
            delivery = waiting.popleft()
            if delivery.cancelled:
                continue
            delivery.sent, most = True, most - 1
            self.unsent -= waiting is self._runs
            fill_execute(request := runs.add(), delivery.run)
            if delivery.traceparent:
                request.traceparent = delivery.traceparent
            size += _bytes_of(delivery.run)
        return size - before

    def _add_urgent(self, frame: stream_pb2.AttachResponse) -> int:
        """Add everything but the runs; the size is exact where it may be large."""
        size = 0
        if self._welcome:
            frame.welcome.CopyFrom(self._welcome)
            self._welcome, size = None, size + 1
        if self._leadership:
            frame.leadership.extend(self._leadership.values())
            size += len(self._leadership)
            self._leadership.clear()
        if self._trust:
            frame.trust.extend(self._trust.values())
            size += len(self._trust)
            self._trust.clear()
        if self._ping:
            frame.ping.number, self._ping = self._ping, 0
            size += 1
        while self._cancels and len(frame.cancels) < FRAME_RUNS:
            frame.cancels.append(self._cancels.popleft())
            size += 32
        while self._stored and len(frame.stored) < FRAME_RUNS:
            frame.stored.append(self._stored.popleft())
            size += 32
        return size


def _bytes_of(run: Run) -> int:
    size = _RUN_BYTES + len(run.payload) + len(run.state)
    if run.checkpoints:
        size += sum(len(each.value) for each in run.checkpoints)
    return size
