"""Streams each key's latest change from any pod, deletions and expiries included, none skipped.

Commits do not become visible in the order of their versions: a slow transaction may appear with a
version below one that was sent already. So a watch remembers what was visible at its last read
(a snapshot of Postgres, not a number) and reads what became visible since. Hints make it fast;
without them it reads every two seconds.

A watch that resumes knows only a version. It repeats changes that may have been in flight when that
version was written; clients ignore versions that are not above their own.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TypeVar

import structlog

from sidecar.hints import Hints
from sidecar.model.errors import LimitExceeded, StoreUnavailable
from sidecar.model.state import TOMBSTONE_SECONDS, check_after_version, check_prefix
from sidecar.model.state_types import ChangeQuery, DatabaseSnapshot, HistoryGone, Record
from sidecar.state.failures import Failures
from sidecar.state.ports import StateTable
from sidecar.state.store import TOPIC

log = structlog.get_logger()
T = TypeVar("T")

WATCHES_MAX = 200
POLL_SECONDS = 2.0
PAUSE_SECONDS = 0.02  # between two reads, however many hints arrive
RETRY_SECONDS = 0.5
# Far longer than any transaction of ours: the server ends those after seconds.
_IN_FLIGHT_MICROSECONDS = 60_000_000
_MICROSECONDS = 1_000_000


class _Position:
    """Where a watch continues: after what was visible at `seen`, or after a version."""

    def __init__(self, seen: DatabaseSnapshot | None, version: int, looked: float) -> None:
        self.seen = seen
        self.version = version
        self.looked = looked  # our clock when `seen` was requested
        # Every change still to be sent has a version above this; it keeps the scan short.
        self.low = (version if seen is None else seen.at) - _IN_FLIGHT_MICROSECONDS


class StateWatch:
    """Streams of changes; each reads the table by itself."""

    def __init__(self, table: StateTable, hints: Hints, *, monotonic: Callable[[], float]) -> None:
        self._table = table
        self._hints = hints
        self._monotonic = monotonic
        self._failures = Failures(monotonic)
        self._watches = 0

    async def changes(
        self, prefix: str, after_version: int | None = None
    ) -> AsyncGenerator[Record | None, None]:
        """Yields None once the watch is established, then a record per change."""
        check_prefix(prefix)
        check_after_version(after_version)
        if self._watches >= WATCHES_MAX:
            raise LimitExceeded(f"{WATCHES_MAX} watches are open on this pod")
        self._watches += 1
        subscription = self._hints.subscribe(TOPIC)
        try:
            position = await self._begin(after_version)
            yield None
            while True:
                async with aclosing(self._read_changes(prefix, position)) as found:
                    async for record in found:
                        yield record
                await asyncio.sleep(PAUSE_SECONDS)
                await subscription.wait(POLL_SECONDS)
        finally:
            self._watches -= 1
            self._hints.unsubscribe(TOPIC, subscription)

    async def _begin(self, after_version: int | None) -> _Position:
        looked = self._monotonic()
        try:
            snapshot = await self._table.snapshot()
        except StoreUnavailable as error:
            raise self._failures.load(error) from error
        if after_version is None:
            return _Position(snapshot, 0, looked)
        oldest = snapshot.at - TOMBSTONE_SECONDS * _MICROSECONDS
        if 0 < after_version < oldest:
            raise HistoryGone("after_version is older than the recorded deletions: list again")
        position = _Position(None, after_version, looked)
        if after_version > snapshot.at:
            position.low = 0  # the clock was set back since: versions may be arbitrarily low
        return position

    async def _read_changes(self, prefix: str, position: _Position) -> AsyncGenerator[Record, None]:
        """Yields all that became visible since `position`, then advances `position`."""
        looked = self._monotonic()
        now = await _retry_until_available(self._table.snapshot)
        _handle_jumps(position, now, looked)
        since = position.seen.snapshot if position.seen else None
        after = (-1, "")
        while since != now.snapshot:
            query = ChangeQuery(prefix, since, position.version, position.low, after, now.snapshot)
            found = await _retry_until_available(partial(self._table.changes, query))
            if not found:
                break
            for record in found:
                yield record
            after = (found[-1].version, found[-1].key)
        position.seen, position.low, position.looked = now, now.at - _IN_FLIGHT_MICROSECONDS, looked


def _handle_jumps(position: _Position, now: DatabaseSnapshot, looked: float) -> None:
    """Rewind after the database's clock was set back, or after a failover that lost commits."""
    if position.seen is None:
        return
    elapsed = round((looked - position.looked) * _MICROSECONDS)
    position.low = min(position.low, now.at - elapsed - _IN_FLIGHT_MICROSECONDS)
    another = now.server_started != position.seen.server_started
    if another or _next_transaction(now) < _next_transaction(position.seen):
        # Transaction ids repeat after a failover: the snapshot is useless, versions are not.
        position.seen, position.version = None, position.low


def _next_transaction(seen: DatabaseSnapshot) -> int:
    return int(seen.snapshot.split(":")[1])


async def _retry_until_available(ask: Callable[[], Awaitable[T]]) -> T:
    """Repeat the read until Postgres answers: an outage does not end a watch."""
    while True:
        try:
            return await ask()
        except StoreUnavailable as error:
            log.info("state_watch_retrying", problem=str(error))
            await asyncio.sleep(RETRY_SECONDS)
