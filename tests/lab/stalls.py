"""When this machine stood still: how long a thread that only sleeps was kept waiting, and how long
a process that wanted to run was not let.

What is measured in seconds of a clock is measured here on a machine that others use too. A bound
holds for the time in which the machine ran; a term may end where it did not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.processes import boottime

_NAP_SECONDS = 0.02
_LATE_SECONDS = 0.05  # less is how a thread wakes up
# A tenth of the lease: beyond, the machine may be why a term was lost.
STALL_SECONDS_MAX = 0.3
# Half of the lease, in any three seconds: less was left to a process than it needs to keep a term.
LEASE_SECONDS, STARVED_SECONDS_MAX = 3.0, 1.5

Gap = tuple[float, float]


def within(gaps: Iterable[Gap], since: float, until: float) -> float:
    """Seconds of these gaps that lie between two readings of `boottime`."""
    cut = ((max(start, since), min(end, until)) for start, end in gaps)
    return sum(end - start for start, end in cut if end > start)


def run_delay(pid: int) -> float:
    """Seconds for which its main thread, the event loop, was ready to run and had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except OSError:  # it has just ended
        return 0.0


class Stalls:
    """Watches for as long as the `with` block lasts; also `pid`, if one is given."""

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid
        self._delays: deque[tuple[float, float]] = deque()
        self.starved_seconds = (
            0.0  # the most in any LEASE_SECONDS that `pid` wanted and did not get
        )
        self._gaps: list[Gap] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)

    @property
    def gaps(self) -> list[Gap]:
        """Begin and end of each so far, of `boottime`."""
        return list(self._gaps)

    @property
    def seconds(self) -> float:
        """The longest so far."""
        return max((end - start for start, end in self.gaps), default=0.0)

    @property
    def cost_a_term(self) -> str:
        """Why the machine may be the cause of a lost term, in words; empty if it is not."""
        if self.seconds > STALL_SECONDS_MAX:
            return f"the machine stood still for {self.seconds:.2f} s"
        if self.starved_seconds > STARVED_SECONDS_MAX:
            return f"the sidecar had no core for {self.starved_seconds:.2f} s"
        return ""

    def between(self, since: float, until: float) -> float:
        """Seconds in which the machine stood still, of those between two readings of `boottime`."""
        return within(self.gaps, since, until)

    def _watch(self) -> None:
        asleep, over = boottime(), False
        while not over:  # the last nap counts too: it may be the end of a stall that ends it
            over = self._over.wait(_NAP_SECONDS)
            awake = boottime()
            if awake - asleep - _NAP_SECONDS > _LATE_SECONDS:
                self._gaps.append((asleep + _NAP_SECONDS, awake))
            self._look_at_process(awake)
            asleep = awake

    def _look_at_process(self, now: float) -> None:
        if self._pid is None:
            return
        self._delays.append((now, run_delay(self._pid)))
        while self._delays[0][0] < now - LEASE_SECONDS:
            self._delays.popleft()
        starved = self._delays[-1][1] - self._delays[0][1]
        self.starved_seconds = max(self.starved_seconds, starved)

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
