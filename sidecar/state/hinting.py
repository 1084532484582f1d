"""Fewer hints than writes: NOTIFY serializes commits, so it must not follow each write."""

import asyncio

from sidecar.hints import Hints

PAUSE_SECONDS = 0.05


class CoalescedHints:
    """Sends a hint for the first change at once, and one for all changes of the next 50 ms."""

    def __init__(self, hints: Hints, topic: str) -> None:
        self._hints = hints
        self._topic = topic
        self._pausing = False
        self._missed = False

    def notify(self) -> None:
        if self._pausing:
            self._missed = True
            return
        self._hints.notify(self._topic)
        self._pausing = True
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._pausing = False
        if self._missed:
            self._missed = False
            self.notify()
