"""Hints to the watches: the first at once, those that follow together."""

import asyncio

from sidecar.state.hinting import PAUSE_SECONDS, CoalescedHints
from tests.state_lab import NoHints


class SentHints(NoHints):
    def __init__(self) -> None:
        self.told: list[str] = []

    def notify(self, topic: str, detail: str = "") -> None:
        self.told.append(topic)


async def test_many_changes_are_few_hints_and_the_last_is_told() -> None:
    sent = SentHints()
    hints = CoalescedHints(sent, "state")
    for _ in range(100):
        hints.notify()
    assert sent.told == ["state"]
    await asyncio.sleep(PAUSE_SECONDS * 1.5)
    assert sent.told == ["state", "state"]
    await asyncio.sleep(PAUSE_SECONDS * 2)
    assert len(sent.told) == 2
    hints.notify()
    assert len(sent.told) == 3
