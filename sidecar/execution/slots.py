"""How many runs may be claimed, and how many calls into the app may be open, over all groups.

Guarantees: no more than `most` calls are open at once, and they begin in the order of `begin`. No
more runs are claimed than can be called at once, plus as many as the app answered in the last
AHEAD_SECONDS: those will be called while the next claim is in progress. Nothing is claimed ahead
for an app that is slow or fails.
"""

import asyncio
from collections import deque
from collections.abc import Callable

AHEAD_SECONDS = 0.1
AHEAD_MAX = 200
GATHER = 16
GATHER_SECONDS = 0.05
_STEPS = 10


class Slots:
    """`take` before claiming; `begin` and `end` around each call; `give_back` after it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0
        self._open = 0
        self._queue: deque[Callable[[], None]] = deque()
        self._starting = False
        self._answers: deque[float] = deque(maxlen=AHEAD_MAX)
        self._waiting: dict[asyncio.Event, None] = {}  # in the order in which they asked

    def resize(self, most: int) -> None:
        """From now on so many calls may be open; 0: none."""
        grown, self.most = most > self.most, most
        if grown:
            self._start_queued()
            self._wake()

    @property
    def free(self) -> int:
        """How many runs may be claimed now."""
        return self.most + self._ahead() - self._taken

    @property
    def crowded(self) -> bool:
        """Claimed runs wait for open calls to end: the app is quick, and there is a backlog."""
        return self._taken > self.most

    async def gathered(self) -> None:
        """During a backlog, wait up to GATHER_SECONDS until enough slots are free for a claim."""
        for _ in range(_STEPS):
            if self.free >= max(min(GATHER, self.most), self._ahead() // 2):
                return
            await asyncio.sleep(GATHER_SECONDS / _STEPS)

    def take(self, wanted: int, woken: asyncio.Event) -> int:
        """Take at most `wanted` slots; if none is free, `woken` is set when one is."""
        taken = max(0, min(wanted, self.free))
        self._taken += taken
        if wanted and not taken:
            self._waiting[woken] = None
        return taken

    def begin(self, call: Callable[[], None]) -> None:
        """Run `call` as soon as a call may be opened; the caller must `end` each."""
        self._queue.append(call)
        self._start_queued()

    def end(self) -> None:
        """A call is over."""
        self._open -= 1
        self._start_queued()

    def answered(self, *, works: bool) -> None:
        """Count an answer; one that shows a broken app stops claiming ahead."""
        if works:
            self._answers.append(_now())
        else:
            self._answers.clear()

    def give_back(self, count: int) -> None:
        self._taken -= count
        if count:
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for woken in waiting:
            woken.set()

    def _start_queued(self) -> None:
        if self._starting:
            return  # a call ended while it began: the loop below continues
        self._starting = True
        try:
            while self._queue and self._open < self.most:
                self._open += 1
                self._queue.popleft()()
        finally:
            self._starting = False

    def _ahead(self) -> int:
        horizon = _now() - AHEAD_SECONDS
        while self._answers and self._answers[0] < horizon:
            self._answers.popleft()
        return len(self._answers)


def _now() -> float:
    return asyncio.get_running_loop().time()
