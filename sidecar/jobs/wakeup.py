"""Wakes workers after jobs were submitted: those of this pod at once, the others by a hint.

Guarantee: at most one hint is sent in `HINT_SECONDS`, because Postgres serializes commits that
notify; the last submission is always followed by one.
"""

import asyncio
from collections.abc import Callable

from sidecar.hints import Hints

TOPIC = "jobs"
CANCEL = "cancel"  # the detail of a hint
HINT_SECONDS = 0.005


class Wakeup:
    """`on_submit`: called for each submission, before the hint."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self.on_submit: list[Callable[[], None]] = []
        self._hinted_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def submitted(self) -> None:
        for wake in self.on_submit:
            wake()
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        due_at = self._hinted_at + HINT_SECONDS
        if loop.time() >= due_at:
            self._hint()
        else:
            self._timer = loop.call_at(due_at, self._hint)

    def cancelled(self) -> None:
        """Running jobs were asked to stop: their workers look at once."""
        self._hints.notify(TOPIC, CANCEL)

    def _hint(self) -> None:
        self._timer = None
        self._hinted_at = asyncio.get_running_loop().time()
        self._hints.notify(TOPIC)
