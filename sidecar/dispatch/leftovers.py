"""What groups leave behind: history that is old enough to forget, lives that nobody will end.

The leader of a group forgets its old runs. A group that left every file has no leader, and never
may have one again: then any pod does it. Runs of its schedules need no more than that: they come
along with a schedule that changes its group, or end with one that is retired (`requeue`).

Guarantees: a group is touched only if no living runner names it, a pod of an older file included;
what is ended is guarded by the group's last epoch (G3); small batches, which wait for nobody.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from sidecar.model.errors import Fenced
from sidecar.model.term import Term

log = structlog.get_logger()

BATCH_MAX = 500
PAUSE_SECONDS = 0.05


class History(Protocol):
    async def prune(self, term: Term, *, keep_seconds: float, limit: int) -> int: ...


class Store(History, Protocol):
    async def vanished(self) -> Sequence[Term]:
        """The last term of each group that no living runner names."""

    async def end_lives(self, term: Term, *, limit: int) -> int: ...


class Leftovers:
    def __init__(self, store: Store, *, keep_seconds: float) -> None:
        self._store = store
        self._keep_seconds = keep_seconds

    async def tidy(self) -> None:
        """Once; any pod may do it at any time."""
        for term in await self._store.vanished():
            try:
                await self._end_lives(term)
            except Fenced:
                continue  # Somebody leads it after all: then it is theirs.
            await prune(self._store, term, keep_seconds=self._keep_seconds)

    async def _end_lives(self, term: Term) -> None:
        ended = BATCH_MAX
        while ended == BATCH_MAX:
            ended = await self._store.end_lives(term, limit=BATCH_MAX)
            if ended:
                log.info("lives_ended", group=term.group, lives=ended, problem="no runner names it")


async def prune(store: History, term: Term, *, keep_seconds: float) -> None:
    """Forget the runs of a group that ended too long ago."""
    pruned = BATCH_MAX
    while pruned == BATCH_MAX:
        pruned = await store.prune(term, keep_seconds=keep_seconds, limit=BATCH_MAX)
        await asyncio.sleep(PAUSE_SECONDS)  # others come first
