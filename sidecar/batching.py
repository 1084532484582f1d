"""Concurrent callers share one round trip to the server, like a group commit.

Guarantees:
- a single call is sent at once; calls gather only while all lanes are busy;
- a batch is sent after every call in it began: a read sees everything acknowledged before its call;
- no two items of a batch have the same name, and all are of one kind; items without a name may
  repeat;
- a caller that is cancelled does not affect the others of its batch;
- a value that Postgres cannot store fails only its own caller: each item is then sent by itself.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from sidecar.model.errors import NotStorable, Overloaded

In = TypeVar("In")
Out = TypeVar("Out")
WAITING_MAX = 10_000
WAITING_BYTES_MAX = 32 * 1024 * 1024


class Batcher(Generic[In, Out]):
    """Hands items to `run` in batches of at most `size` items and about `bytes_max` bytes."""

    def __init__(
        self,
        run: Callable[[Sequence[In]], Awaitable[Sequence[Out]]],
        *,
        name_of: Callable[[In], Hashable] = lambda _: None,
        kind_of: Callable[[In], Hashable] = lambda _: None,
        bytes_of: Callable[[In], int] = lambda _: 0,
        size: int = 128,
        bytes_max: int = 4 * 1024 * 1024,
        lanes: int = 2,
    ) -> None:
        self._run = run
        self._name_of = name_of
        self._kind_of = kind_of
        self._bytes_of = bytes_of
        self._size = size
        self._bytes_max = bytes_max
        self._lanes = lanes
        self._waiting: deque[tuple[In, asyncio.Future[Out]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = 0
        self._waiting_bytes = 0

    async def __call__(self, item: In) -> Out:
        if len(self._waiting) >= WAITING_MAX or self._waiting_bytes >= WAITING_BYTES_MAX:
            raise Overloaded(
                f"more than {WAITING_MAX} calls or {WAITING_BYTES_MAX} bytes are waiting"
            )
        answer: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        self._waiting_bytes += self._bytes_of(item)
        if self._busy < self._lanes:
            self._busy += 1
            task = asyncio.create_task(self._drain(), name="batch")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _drain(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # No await since the queue was found empty, so the next call starts a new lane.
            self._busy -= 1

    async def _answer(self, batch: list[tuple[In, asyncio.Future[Out]]]) -> None:
        try:
            answers = await self._run([item for item, _ in batch])
            answered = list(zip(batch, answers, strict=True))
        except NotStorable as error:
            if len(batch) == 1:
                return _fail(batch, error)
            for each in batch:
                await self._answer([each])
        except Exception as error:
            _fail(batch, error)
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        else:
            for (_, future), answer in answered:
                if not future.done():
                    future.set_result(answer)

    def _next(self) -> list[tuple[In, asyncio.Future[Out]]]:
        batch: list[tuple[In, asyncio.Future[Out]]] = []
        left: deque[tuple[In, asyncio.Future[Out]]] = deque()
        names: set[Hashable] = set()
        room = self._bytes_max
        # The limit on `left` keeps a hot name or kind from making each batch walk the whole queue.
        while self._waiting and len(batch) + len(left) < 2 * self._size and len(batch) < self._size:
            if batch and room <= 0:
                break
            item, answer = self._waiting.popleft()
            name, item_bytes = self._name_of(item), self._bytes_of(item)
            other = name in names or (batch and self._kind_of(item) != self._kind_of(batch[0][0]))
            if other and not answer.done():
                left.append((item, answer))
                continue
            self._waiting_bytes -= item_bytes
            if answer.done():
                continue
            if name is not None:
                names.add(name)
            batch.append((item, answer))
            room -= item_bytes
        self._waiting.extendleft(reversed(left))
        return batch


def _fail(batch: list[tuple[In, asyncio.Future[Out]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
