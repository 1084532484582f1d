"""Hints to the watches, few enough: NOTIFY serializes commits, so it must not follow each write."""

import asyncio

from sidecar.state.ports import Notifier

PAUSE_SECONDS = 0.05


class CoalescedHints:
    """The first change is told at once, those of the next 50 ms together at their end."""

    def __init__(self, notifier: Notifier, topic: str) -> None:
        self._notifier = notifier
        self._topic = topic
        self._pausing = False
        self._missed = False

    def notify(self) -> None:
        if self._pausing:
            self._missed = True
            return
        self._notifier.notify(self._topic)
        self._pausing = True
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._pausing = False
        if self._missed:
            self._missed = False
            self.notify()
