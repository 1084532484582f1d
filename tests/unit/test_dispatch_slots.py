"""Slots: taken before claiming, handed back, woken when free."""

import asyncio

from sidecar.execution.slots import AHEAD_SECONDS, Slots


async def test_no_more_than_there_are() -> None:
    slots, woken = Slots(3), asyncio.Event()
    assert (slots.take(2, woken), slots.take(2, woken), slots.take(2, woken)) == (2, 1, 0)
    assert slots.free == 0


async def test_only_who_got_none_is_woken() -> None:
    """Otherwise a group that gives unused slots back would wake itself for ever."""
    slots, lucky, hungry = Slots(1), asyncio.Event(), asyncio.Event()
    slots.take(1, lucky)
    slots.take(1, hungry)
    slots.give_back(1)
    assert (lucky.is_set(), hungry.is_set()) == (False, True)
    hungry.clear()
    slots.give_back(1)
    assert not hungry.is_set()


async def test_as_many_are_claimed_ahead_as_the_app_has_just_answered() -> None:
    slots, woken = Slots(2), asyncio.Event()
    assert slots.take(10, woken) == 2
    slots.give_back(1)
    slots.answered(works=True)
    assert slots.take(10, woken) == 2  # one in place of it, one ahead
    assert slots.take(10, woken) == 0
    slots.answered(works=False)
    slots.give_back(1)
    assert slots.take(10, woken) == 0, "nothing is claimed ahead of an app in trouble"


async def test_a_slow_app_has_nothing_claimed_ahead() -> None:
    slots, woken = Slots(1), asyncio.Event()
    slots.take(1, woken)
    slots.answered(works=True)
    await asyncio.sleep(AHEAD_SECONDS * 1.5)
    slots.give_back(1)
    assert slots.take(10, woken) == 1


async def test_a_claim_waits_until_it_is_worth_it_but_not_for_long() -> None:
    slots, woken = Slots(64), asyncio.Event()
    slots.take(64, woken)
    gathered = asyncio.create_task(slots.gathered())
    slots.give_back(1)
    await asyncio.sleep(0)
    assert not gathered.done()
    slots.give_back(63)
    await gathered
    slots.take(64, woken)
    await slots.gathered()  # ends by itself
