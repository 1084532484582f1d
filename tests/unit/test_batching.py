"""Callers that come at once share a trip: who shares one, and who does not."""

import asyncio
from collections.abc import Sequence

from sidecar.batching import Batcher
from sidecar.model.errors import InvalidArgument, LimitExceeded, NotStorable


async def test_one_alone_goes_at_once() -> None:
    batches: list[list[str]] = []

    async def run(items: Sequence[str]) -> list[str]:
        batches.append(list(items))
        await asyncio.sleep(0)
        return [item.upper() for item in items]

    batcher = Batcher(run, name_of=str, lanes=1)
    assert await batcher("a") == "A"
    answers = await asyncio.gather(*(batcher(name) for name in "bcdebb"))
    assert answers == list("BCDEBB")
    # The first went alone; the others together, but never two of a name.
    assert batches == [["a"], ["b", "c", "d", "e"], ["b"], ["b"]]


async def test_what_has_no_name_may_come_twice() -> None:
    batches: list[list[str]] = []

    async def run(items: Sequence[str]) -> Sequence[str]:
        batches.append(list(items))
        await asyncio.sleep(0)
        return items

    batcher = Batcher(run, lanes=1)
    assert await asyncio.gather(*(batcher(item) for item in "aab")) == list("aab")
    assert batches == [["a", "a", "b"]]


async def test_only_items_of_one_kind_share_a_batch() -> None:
    batches: list[list[int]] = []

    async def run(items: Sequence[int]) -> Sequence[int]:
        batches.append(list(items))
        await asyncio.sleep(0)
        return items

    batcher = Batcher(run, name_of=str, kind_of=lambda item: item // 10, lanes=1)
    items = (11, 21, 12, 11, 22, 31)
    assert await asyncio.gather(*(batcher(item) for item in items)) == list(items)
    assert batches == [[11, 12], [21, 22], [11], [31]]


async def test_batches_are_bounded() -> None:
    sizes: list[int] = []

    async def run(items: Sequence[int]) -> Sequence[int]:
        sizes.append(len(items))
        await asyncio.sleep(0)
        return items

    batcher = Batcher(run, name_of=str, bytes_of=lambda item: 40, bytes_max=100, lanes=1)
    await asyncio.gather(*(batcher(number) for number in range(10)))
    assert max(sizes) == 3


async def test_a_failure_reaches_all_of_the_batch_and_no_more() -> None:
    async def run(items: Sequence[str]) -> Sequence[str]:
        await asyncio.sleep(0)
        if "bad" in items:
            raise InvalidArgument("key", "bad")
        return items

    batcher = Batcher(run, name_of=str, lanes=1)
    first = asyncio.create_task(batcher("good"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(batcher(name)) for name in ("bad", "unlucky")]
    await asyncio.wait({first, *others})
    assert first.result() == "good"
    assert all(isinstance(task.exception(), InvalidArgument) for task in others)
    assert await batcher("later") == "later"


async def test_what_waits_is_bounded() -> None:
    """G11: refused with a clear error, not suffered."""
    gate = asyncio.Event()

    async def run(items: Sequence[int]) -> Sequence[int]:
        await gate.wait()
        return items

    batcher = Batcher(run, name_of=str, bytes_of=lambda _: 2**20, bytes_max=2**22, lanes=1)
    for _ in range(2):  # what was answered makes room
        gate.clear()
        tasks = [asyncio.create_task(batcher(number)) for number in range(40)]
        await asyncio.sleep(0)
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, LimitExceeded)]
        assert len(refused) == 8


async def test_one_that_gives_up_takes_nobody_along() -> None:
    gate = asyncio.Event()

    async def run(items: Sequence[str]) -> Sequence[str]:
        await gate.wait()
        return items

    batcher = Batcher(run, name_of=str, lanes=1)
    tasks = [asyncio.create_task(batcher(name)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    gate.set()
    assert await tasks[2] == "c"


async def test_a_value_that_cannot_be_stored_takes_no_other_with_it() -> None:
    async def run(items: Sequence[str]) -> Sequence[str]:
        await asyncio.sleep(0)
        if "bad" in items:
            raise NotStorable("not a value")
        return items

    batcher = Batcher(run, lanes=1)
    items = ("alone", "a", "bad", "b")
    answers = await asyncio.gather(*(batcher(item) for item in items), return_exceptions=True)
    assert [isinstance(answer, NotStorable) for answer in answers] == [False, False, True, False]
    assert answers[1::2] == ["a", "b"]
