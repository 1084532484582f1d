"""How many runs may be claimed, and how many calls into the app be open, over all groups here.

Guarantees: no more than `most` calls are open at once. No more runs are claimed than can be called
at once, plus as many as the app has just answered in AHEAD_SECONDS: they will be called while the
next claim is on its way. An app that takes its time, or fails, has nothing claimed ahead of it.
"""

import asyncio
from collections import deque

AHEAD_SECONDS = 0.1
AHEAD_MAX = 200
GATHER = 16
GATHER_SECONDS = 0.05
_STEPS = 10


class Slots:
    """Taken before runs are claimed; each call holds one of `calls`; given back when it is over."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.calls = asyncio.Semaphore(most)
        self._taken = 0
        self._answers: deque[float] = deque(maxlen=AHEAD_MAX)
        self._hungry: dict[asyncio.Event, None] = {}  # who asked first is woken first

    @property
    def free(self) -> int:
        """How many runs may be claimed now."""
        return self.most + self._ahead() - self._taken

    @property
    def crowded(self) -> bool:
        """Runs wait for the calls before them: the app is quick, and there is a lot to do."""
        return self._taken > self.most

    async def gathered(self) -> None:
        """While many wait, claim many at once: wait until it is worth it, but not for long."""
        for _ in range(_STEPS):
            if self.free >= max(min(GATHER, self.most), self._ahead() // 2):
                return
            await asyncio.sleep(GATHER_SECONDS / _STEPS)

    def take(self, wanted: int, woken: asyncio.Event) -> int:
        """At most `wanted`; if there is none, `woken` is set as soon as there is one."""
        taken = max(0, min(wanted, self.free))
        self._taken += taken
        if wanted and not taken:
            self._hungry[woken] = None
        return taken

    def answered(self, *, works: bool) -> None:
        """A call ended: the app keeps its pace, or is in trouble."""
        if works:
            self._answers.append(_now())
        else:
            self._answers.clear()

    def give_back(self, count: int) -> None:
        self._taken -= count
        if count:
            hungry, self._hungry = self._hungry, {}
            for woken in hungry:
                woken.set()

    def _ahead(self) -> int:
        horizon = _now() - AHEAD_SECONDS
        while self._answers and self._answers[0] < horizon:
            self._answers.popleft()
        return len(self._answers)


def _now() -> float:
    return asyncio.get_running_loop().time()
