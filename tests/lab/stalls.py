"""When this machine stood still: how long a thread that only sleeps was kept waiting.

What is measured in seconds of a clock is measured here on a machine that others use too. A bound
holds for the time in which the machine ran; a term may end where it did not.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from tests.lab.processes import boottime

_NAP_SECONDS = 0.02
_LATE_SECONDS = 0.05  # less is how a thread wakes up
# A tenth of the lease: beyond, the machine may be why a term was lost.
STALL_SECONDS_MAX = 0.3


class Stalls:
    """Watches for as long as the `with` block lasts."""

    def __init__(self) -> None:
        self._gaps: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)

    @property
    def seconds(self) -> float:
        """The longest so far."""
        return max((end - start for start, end in list(self._gaps)), default=0.0)

    def between(self, since: float, until: float) -> float:
        """Seconds in which the machine stood still, of those between two readings of `boottime`."""
        gaps = ((max(start, since), min(end, until)) for start, end in list(self._gaps))
        return sum(end - start for start, end in gaps if end > start)

    def _watch(self) -> None:
        asleep, over = boottime(), False
        while not over:  # the last nap counts too: it may be the end of a stall that ends it
            over = self._over.wait(_NAP_SECONDS)
            awake = boottime()
            if awake - asleep - _NAP_SECONDS > _LATE_SECONDS:
                self._gaps.append((asleep + _NAP_SECONDS, awake))
            asleep = awake

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
