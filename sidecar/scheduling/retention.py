"""Deletes old runs, and ends the open singleton runs of abandoned groups.

The leader of a group deletes its old runs. A group that no config file names any more has no leader
and may never have one again, so any pod cleans it up. Runs of its schedules need nothing else: they
move with a schedule that changes its group, or end with one that is retired (`requeue`).

Guarantees: a group is cleaned up only if no live runner names it, including runners with an older
file; the group's last epoch guards every write that ends a run (G3); batches are small and skip
locked rows.
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
    async def abandoned_groups(self) -> Sequence[Term]:
        """Return the last term of each group that no live runner names."""

    async def end_abandoned_singletons(self, term: Term, *, limit: int) -> int: ...


class AbandonedGroups:
    def __init__(self, store: Store, *, keep_seconds: float) -> None:
        self._store = store
        self._keep_seconds = keep_seconds

    async def clean_up(self) -> None:
        """Clean up once; safe on any pod at any time."""
        for term in await self._store.abandoned_groups():
            try:
                await self._end_singletons(term)
            except Fenced:
                continue  # the group has a leader again, which does this itself
            await prune(self._store, term, keep_seconds=self._keep_seconds)

    async def _end_singletons(self, term: Term) -> None:
        ended = BATCH_MAX
        while ended == BATCH_MAX:
            ended = await self._store.end_abandoned_singletons(term, limit=BATCH_MAX)
            if ended:
                log.info("abandoned_singletons_ended", group=term.group, runs=ended)


async def prune(store: History, term: Term, *, keep_seconds: float) -> None:
    """Delete the runs of a group that ended more than `keep_seconds` ago."""
    pruned = BATCH_MAX
    while pruned == BATCH_MAX:
        pruned = await store.prune(term, keep_seconds=keep_seconds, limit=BATCH_MAX)
        await asyncio.sleep(PAUSE_SECONDS)  # leave time for other queries
