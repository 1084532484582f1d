"""Long work on the event loop, in short slices.

Guarantee: between two slices every other task that is ready runs once, so pings of the lease and
probes wait for one slice and not for the whole. Slices are counted in items, not in time: the
simulator repeats them exactly.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def in_slices(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """Yield the items; let other tasks run after every `size` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)


async def finished(steps: Generator[None, None, T]) -> T:
    """The result of a generator; other tasks run whenever it yields."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)
