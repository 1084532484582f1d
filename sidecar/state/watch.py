"""Watch: each key's latest change, from any pod, deletions and expiries included, none skipped.

Commits do not become visible in the order of their versions: a slow transaction may show up with a
version below one that was told already. So a watch remembers what was visible when it last looked
(a snapshot of Postgres, not a number) and asks for what became visible since. Hints make it quick;
without them it looks every two seconds.

A watch that resumes knows only a version. It is told again what may have been under way when that
version was written; clients ignore versions that are not above what they hold.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Generic, TypeVar

import structlog

from sidecar.model.errors import LimitExceeded, StoreUnavailable
from sidecar.model.state import TOMBSTONE_SECONDS, check_after_version, check_prefix
from sidecar.model.state_words import ChangeQuery, HistoryGone, Moment, Record
from sidecar.state.failures import Failures
from sidecar.state.ports import Hints, S, Truth
from sidecar.state.store import TOPIC

log = structlog.get_logger()
T = TypeVar("T")

WATCHES_MAX = 200
POLL_SECONDS = 2.0
PAUSE_SECONDS = 0.02  # between two looks, however many hints come
RETRY_SECONDS = 0.5
# Far longer than a transaction of ours may take: the server ends it after seconds.
_IN_FLIGHT_MICROSECONDS = 60_000_000
_MICROSECONDS = 1_000_000


class _Place:
    """How far a watch has come: up to what was visible at `seen`, or after a version."""

    def __init__(self, seen: Moment | None, version: int, looked: float) -> None:
        self.seen = seen
        self.version = version
        self.looked = looked  # our clock when `seen` was asked for
        # Nothing that is still to be told has a version as low as this; it keeps the scan short.
        self.low = (version if seen is None else seen.at) - _IN_FLIGHT_MICROSECONDS


class StateWatch(Generic[S]):
    """Streams of changes; each looks for itself."""

    def __init__(self, truth: Truth, hints: Hints[S], *, monotonic: Callable[[], float]) -> None:
        self._truth = truth
        self._hints = hints
        self._monotonic = monotonic
        self._failures = Failures(monotonic)
        self._watches = 0

    async def changes(
        self, prefix: str, after_version: int | None = None
    ) -> AsyncGenerator[Record | None, None]:
        """None once the watch is in place, then a record per change, for as long as it is read."""
        check_prefix(prefix)
        check_after_version(after_version)
        if self._watches >= WATCHES_MAX:
            raise LimitExceeded(f"{WATCHES_MAX} watches are open on this pod")
        self._watches += 1
        subscription = self._hints.subscribe(TOPIC)
        try:
            place = await self._begin(after_version)
            yield None
            while True:
                async with aclosing(self._look(prefix, place)) as found:
                    async for record in found:
                        yield record
                await asyncio.sleep(PAUSE_SECONDS)
                await subscription.wait(POLL_SECONDS)
        finally:
            self._watches -= 1
            self._hints.unsubscribe(TOPIC, subscription)

    async def _begin(self, after_version: int | None) -> _Place:
        looked = self._monotonic()
        try:
            moment = await self._truth.moment()
        except StoreUnavailable as error:
            raise self._failures.load(error) from error
        if after_version is None:
            return _Place(moment, 0, looked)
        oldest = moment.at - TOMBSTONE_SECONDS * _MICROSECONDS
        if 0 < after_version < oldest:
            raise HistoryGone("after_version is older than what is known of deletions: list again")
        place = _Place(None, after_version, looked)
        if after_version > moment.at:
            place.low = 0  # the clock was set back since: nobody knows how low versions have become
        return place

    async def _look(self, prefix: str, place: _Place) -> AsyncGenerator[Record, None]:
        """All that became visible since `place`, in pages; then `place` is moved."""
        looked = self._monotonic()
        now = await _patiently(self._truth.moment)
        _notice_jumps(place, now, looked)
        since = place.seen.snapshot if place.seen else None
        after = (-1, "")
        while since != now.snapshot:
            query = ChangeQuery(prefix, since, place.version, place.low, after, now.snapshot)
            found = await _patiently(partial(self._truth.changes, query))
            if not found:
                break
            for record in found:
                yield record
            after = (found[-1].version, found[-1].key)
        place.seen, place.low, place.looked = now, now.at - _IN_FLIGHT_MICROSECONDS, looked


def _notice_jumps(place: _Place, now: Moment, looked: float) -> None:
    """The database may have set its clock back, or be another that lost the last commits."""
    if place.seen is None:
        return
    elapsed = round((looked - place.looked) * _MICROSECONDS)
    place.low = min(place.low, now.at - elapsed - _IN_FLIGHT_MICROSECONDS)
    another = now.server_started != place.seen.server_started
    if another or _next_transaction(now) < _next_transaction(place.seen):
        # Numbers of transactions come again: what was visible says nothing any more, versions do.
        place.seen, place.version = None, place.low


def _next_transaction(moment: Moment) -> int:
    return int(moment.snapshot.split(":")[1])


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, whenever Postgres gives one: a watch outlives its absence."""
    while True:
        try:
            return await ask()
        except StoreUnavailable as error:
            log.info("state_watch_waits", problem=str(error))
            await asyncio.sleep(RETRY_SECONDS)
