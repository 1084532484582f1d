"""Leader only: due ticks become runs, once each.

Guarantees:
- every tick of the group's schedules gets exactly one row, whatever dies and whoever else leads
  meanwhile (G4): the watermark moves in the statement that writes the rows, guarded by the epoch
  (G3);
- the database's clock decides what is due; ours only says when to ask, exactly at the next tick;
- hints and look-ups only save time: a lost hint delays a changed schedule by LOOK_SECONDS.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import inf

import structlog

from sidecar import metrics
from sidecar.config.work import Schedule
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.draining import until_draining
from sidecar.model.errors import Fenced, InvalidArgument, StoreRefused, StoreUnavailable
from sidecar.model.schedule import Timing, timing_of
from sidecar.model.stored_schedule import DueTicks, decide_ahead, due_ticks
from sidecar.model.term import Tenure
from sidecar.scheduling.ports import Hints, Stored, Subscription, TickStore

log = structlog.get_logger()

LOOK_SECONDS = 10.0
HORIZON_SECONDS = 15.0  # beyond the next look, so that no tick falls between two
BOOK_MAX = 1000  # schedules looked at ahead of time
# Per transaction, of many schedules: the first few are on their way while the others follow.
BATCH_TICKS = (64, 250)
RETRY_SECONDS = (0.1, 2.0)
_EARLY_SECONDS = 0.001
# What can be decided before it is due is; a little at a time, only if there is time, and not while
# the runs of the last ticks are on their way: those come first.
AHEAD_AT_ONCE = 20
AHEAD_SECONDS = 0.05
REST_SECONDS = 1.0  # or half of the time until the next tick


@dataclass(slots=True)
class _Entry:
    stored: Stored
    timing: Timing
    ahead: DueTicks[Schedule] | None = None


class _Book:
    """The schedules that are due soon: a heap of (next look, id) over what is known of them."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._entries: dict[int, _Entry] = {}
        self._heap: list[tuple[datetime, int]] = []
        self._undecided: list[_Entry] = []

    def replace_all(self, found: list[Stored]) -> None:
        known, self._entries = self._entries, {}
        for stored in found:
            before = known.get(stored.id)
            if before and before.stored == stored:
                self._entries[stored.id] = before
            elif timing := self._timing(stored, before):
                self._entries[stored.id] = _Entry(stored, timing)
            else:
                continue
            _show_next(stored)
        # The soonest comes last.
        self._undecided = [e for e in reversed(self._entries.values()) if e.ahead is None]
        self._heap = [
            (e.stored.next_due_at, i) for i, e in self._entries.items() if e.stored.next_due_at
        ]
        heapify(self._heap)

    def next_due_at(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    def due(self, now: datetime, ticks_max: int) -> list[DueTicks[Schedule]]:
        """Take out what is due, at most one transaction's worth."""
        found: list[DueTicks[Schedule]] = []
        steps = 0
        while self._heap and self._heap[0][0] <= now:
            entry = self._entries[self._heap[0][1]]
            ticks = due_ticks(entry.stored, entry.timing, now, entry.ahead)
            steps += len(ticks.steps) if ticks else 0
            if found and steps > ticks_max:
                break
            heappop(self._heap)
            if ticks:
                found.append(ticks)
        return found

    def decide_some(self) -> bool:
        """Decide for a few what their next tick will be; False if there was nothing to do."""
        some, self._undecided = self._undecided[-AHEAD_AT_ONCE:], self._undecided[:-AHEAD_AT_ONCE]
        for entry in some:
            entry.ahead = decide_ahead(entry.stored, entry.timing)
        return bool(some)

    def put_back(self, stored: Stored) -> None:
        entry = self._entries[stored.id] = _Entry(stored, self._entries[stored.id].timing)
        self._undecided.append(entry)
        _show_next(stored)
        if stored.next_due_at is not None:
            heappush(self._heap, (stored.next_due_at, stored.id))

    def _timing(self, stored: Stored, known: _Entry | None) -> Timing | None:
        if known and known.stored.version == stored.version:
            return known.timing
        try:
            return timing_of(stored.definition, self._cluster)
        except InvalidArgument as error:
            # For instance a zone that this machine's database lacks: the others go on.
            log.warning("schedule_unusable", schedule=stored.name, problem=str(error))
            return None


class Ticker:
    """`queued` is called when runs were added: the dispatcher wakes without a round trip.

    `changed` is called with the group when a hint says that schedules were.
    """

    def __init__(
        self,
        store: TickStore,
        hints: Hints,
        *,
        cluster: str,
        queued: Callable[[str], None],
        changed: Callable[[str], None] = lambda group: None,
    ) -> None:
        self._store = store
        self._hints = hints
        self._cluster = cluster
        self._queued = queued
        self._changed = changed

    async def lead(self, tenure: Tenure) -> None:
        """Turn ticks into runs until cancelled or draining."""
        subscription = self._hints.subscribe("schedules")
        try:
            await until_draining(tenure, self._tick_along(tenure, subscription))
        except Fenced:
            metrics.FENCED_WRITES.labels("tick").inc()
            tenure.fenced()
        finally:
            self._hints.unsubscribe("schedules", subscription)

    async def _tick_along(self, tenure: Tenure, changes: Subscription) -> None:
        turn = _Turn(self._store, tenure, _Book(self._cluster))
        pause = RETRY_SECONDS[0]
        while True:
            try:
                if await turn.take():
                    self._queued(tenure.term.group)
                pause = RETRY_SECONDS[0]
                nap = turn.seconds_idle()
                if nap > AHEAD_SECONDS:
                    nap = min(nap, turn.decide_some(nap))
            except (StoreUnavailable, StoreRefused) as error:
                log.warning("ticks_wait_for_postgres", group=tenure.term.group, problem=str(error))
                turn.look_again()
                nap, pause = pause, min(pause * 2, RETRY_SECONDS[1])
            if await changes.wait(nap):
                turn.look_again()
                self._changed(tenure.term.group)


class _Turn:
    """One look at the book: read it anew if it is old, claim what is due."""

    def __init__(self, store: TickStore, tenure: Tenure, book: _Book) -> None:
        self._store = store
        self._tenure = tenure
        self._book = book
        self._clock = DatabaseClock()
        self._loop = asyncio.get_running_loop()
        self._look_at = self._loop.time()
        self._batch = BATCH_TICKS[0]
        self._claimed_at = -inf

    def look_again(self) -> None:
        self._look_at = self._loop.time()

    def seconds_idle(self) -> float:
        """Until the next tick or the next look."""
        now = self._loop.time()
        if not self._tenure.trusted:
            return RETRY_SECONDS[0]
        until_look = max(0.0, self._look_at - now)
        due_at = self._book.next_due_at()
        if due_at is None:
            return until_look
        # A hair later than its time: asked too early, the database would claim nothing.
        return min(until_look, self._clock.seconds_until(due_at, now) + _EARLY_SECONDS)

    def decide_some(self, idle_seconds: float) -> float:
        """Decide a little ahead; how long until more can be decided."""
        since_claim = self._loop.time() - self._claimed_at
        rest = min(REST_SECONDS, (since_claim + idle_seconds) / 2) - since_claim
        if rest > _EARLY_SECONDS:  # less may be nothing but what a sum of floats leaves
            return rest
        return 0.0 if self._book.decide_some() else inf

    async def take(self) -> bool:
        """Whether runs were added. What is known to be due goes before a look, unless for long."""
        overdue = self._loop.time() - self._look_at
        if overdue < HORIZON_SECONDS - LOOK_SECONDS and (due := self._due()):
            return await self._claim(due)
        if overdue >= 0:
            await self._look()
        return False

    def _due(self) -> list[DueTicks[Schedule]]:
        if not self._tenure.trusted or self._book.next_due_at() is None:
            return []
        due = self._book.due(self._clock.time(self._loop.time()), self._batch)
        self._batch = BATCH_TICKS[1] if due else BATCH_TICKS[0]
        return due

    async def _look(self) -> None:
        asked = self._loop.time()
        now, found = await self._store.upcoming(
            self._tenure.term, horizon_seconds=HORIZON_SECONDS, limit=BOOK_MAX + 1
        )
        self._clock.learn(now, asked=asked, answered=self._loop.time())
        self._book.replace_all(found)
        self._look_at = self._loop.time() + LOOK_SECONDS
        if len(found) > BOOK_MAX and (last := found[-1].next_due_at):
            # There are more than the book holds: it is complete only up to here.
            self._look_at = self._loop.time() + self._clock.seconds_until(last, self._loop.time())

    async def _claim(self, due: list[DueTicks[Schedule]]) -> bool:
        asked = self._loop.time()
        try:
            claimed = await self._store.claim_ticks(self._tenure.term, due)
        except (StoreUnavailable, StoreRefused):
            self.look_again()  # what stands there now says whether it was committed
            raise
        self._claimed_at = self._loop.time()
        self._clock.learn(claimed.now, asked=asked, answered=self._claimed_at)
        for ticks in due:
            if ticks.before.id in claimed.moved:
                self._book.put_back(ticks.after)
            elif ticks.due_at > claimed.now:
                self._book.put_back(ticks.before)  # too early: our clock is ahead
            else:
                self.look_again()  # it was changed meanwhile
        for reason, count in claimed.skipped:
            metrics.TICKS.labels("skipped", reason.value).inc(count)
        return claimed.queued > 0


def _show_next(stored: Stored) -> None:
    """At once; what is not due soon, paused or over is shown by the dead man's switch."""
    if stored.next_tick and not stored.idle:
        metrics.ENTITIES(stored.name, "cron").next_run = stored.next_tick.timestamp()
