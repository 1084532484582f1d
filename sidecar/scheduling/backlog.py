"""Knows how much due work of the groups led here has not started.

Guarantees:
- it costs nothing while all that is due starts at once: Postgres is asked only after the
  dispatcher found no free slot, or the ticker was late;
- at most about RUNS_MAX runs wait in the table. Beyond, due ticks wait with their schedules, where
  `catch_up` decides about those that were missed meanwhile. So the backlog of an overloaded group
  stays bounded, and is over seconds after the load is.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from sidecar import metrics
from sidecar.execution.authority import Authority, until_draining
from sidecar.model.backlog import Backlog
from sidecar.model.errors import StoreRefused, StoreUnavailable
from sidecar.model.term import Term

RUNS_MAX = 2_000
COUNTED_MAX = 10_000
READ_SECONDS = 1.0


class BacklogStore(Protocol):
    async def backlog(self, term: Term, *, limit: int) -> Backlog: ...


@dataclass(slots=True)
class _Group:
    known: Backlog = field(default_factory=Backlog)
    suspected: bool = False

    @property
    def full(self) -> bool:
        return self.known.runs >= RUNS_MAX


class Backlogs:
    """The backlog of each group led here."""

    def __init__(self, store: BacklogStore) -> None:
        self._store = store
        self._groups: dict[str, _Group] = {}

    def suspect(self, group: str) -> None:
        """Something due may have to wait: ask Postgres soon."""
        if found := self._groups.get(group):
            found.suspected = True

    def queued(self, group: str, count: int) -> None:
        """The ticker added runs."""
        self._count(group, count)

    def started(self, group: str, count: int) -> None:
        """The dispatcher claimed runs."""
        self._count(group, -count)

    def is_full(self, group: str) -> bool:
        """Whether so many runs wait that ticks should wait with their schedules."""
        found = self._groups.get(group)
        return found is not None and found.full

    def now(self, group: str) -> Backlog:
        found = self._groups.get(group)
        return found.known if found and found.known.visible else Backlog()

    def all(self) -> Iterator[tuple[str, Backlog]]:
        """The groups led here."""
        for group in list(self._groups):
            yield group, self.now(group)

    def warnings(self) -> Iterator[str]:
        return (known.warning(group) for group, known in self.all() if known.size)

    async def watch(self, authority: Authority) -> None:
        """Read the backlog while something may wait, until the term drains."""
        group = authority.term.group
        mine = self._groups[group] = _Group()
        try:
            await until_draining(authority, self._read(authority.term, mine))
        finally:
            if self._groups.get(group) is mine:
                del self._groups[group]
                _publish(group, Backlog())

    async def _read(self, term: Term, mine: _Group) -> None:
        while True:
            if mine.suspected or mine.full or (mine.known.visible and mine.known.runs):
                mine.suspected = False
                with suppress(StoreUnavailable, StoreRefused):  # what was read last holds on
                    mine.known = await self._store.backlog(term, limit=COUNTED_MAX)
            elif mine.known.visible:  # the ticker is not late: what is due is unusable
                mine.known = Backlog()
            _publish(term.group, self.now(term.group))
            await asyncio.sleep(READ_SECONDS)

    def _count(self, group: str, change: int) -> None:
        """Between two readings; what is skipped or expires is counted by the next reading."""
        if found := self._groups.get(group):
            found.known = replace(found.known, runs=max(0, found.known.runs + change))


def _publish(group: str, backlog: Backlog) -> None:
    metrics.RUN_BACKLOG.labels(group).set(backlog.size)
    metrics.RUN_BACKLOG_SECONDS.labels(group).set(backlog.seconds)
