"""Runs on the leader only: turns due ticks into runs, once each.

Guarantees:
- every tick of the group's schedules gets exactly one row, whichever process crashes and whichever
  other leader writes at the same time (G4): one statement moves the watermark and writes the rows,
  and it is guarded by the epoch (G3);
- the database clock decides what is due; the local clock only decides when to ask: exactly at the
  next tick;
- hints and polls only reduce latency: a lost hint delays a changed schedule by POLL_SECONDS.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import inf

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority, until_draining
from sidecar.hints import Hints, Subscription
from sidecar.model.backlog import VISIBLE_SECONDS
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.errors import Fenced, InvalidArgument, StoreRefused, StoreUnavailable
from sidecar.model.schedule import Timing, timing_of
from sidecar.model.stored_schedule import DueTicks, StoredSchedule, decide_ahead, due_ticks
from sidecar.model.term import LossReason
from sidecar.scheduling.ports import Backlogs, NoBacklogs, TickStore
from sidecar.slices import in_slices

log = structlog.get_logger()

POLL_SECONDS = 10.0
HORIZON_SECONDS = 15.0  # longer than POLL_SECONDS, so that no tick falls between two polls
UPCOMING_MAX = 1000  # schedules kept in memory
# Ticks per transaction, across schedules. The first transaction is small, so that its runs start
# while the others are written.
BATCH_TICKS = (64, 250)
RETRY_SECONDS = (0.1, 2.0)
_WAKE_MARGIN_SECONDS = 0.001
# The next tick of a schedule is decided before it is due: in small batches, only when there is
# enough idle time, and not right after a claim, because the runs just claimed come first.
AHEAD_BATCH = 20
# Schedules that are read or decided at once, without letting other tasks run.
SLICE = 100
LATE_SLICE = 20
# While so many runs wait that due ticks wait with their schedules.
FULL_SECONDS = 0.05
AHEAD_MIN_IDLE_SECONDS = 0.05
AHEAD_DELAY_SECONDS = 1.0  # after a claim; at most half of the time from it to the next tick


@dataclass(slots=True)
class _Entry:
    stored: StoredSchedule
    timing: Timing
    ahead: DueTicks | None = None


class _UpcomingSchedules:
    """The schedules that are due soon, and a heap of their (next_due_at, id)."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._entries: dict[int, _Entry] = {}
        self._heap: list[tuple[datetime, int]] = []
        self._undecided: list[_Entry] = []

    async def replace_all(self, found: list[StoredSchedule]) -> None:
        known, self._entries = self._entries, {}
        async for stored in in_slices(found, SLICE):
            before = known.get(stored.id)
            if before and before.stored == stored:
                self._entries[stored.id] = before
            elif timing := self._timing(stored, before):
                self._entries[stored.id] = _Entry(stored, timing)
            else:
                continue
            _show_next(stored)
        # Entries are taken from the end, so the soonest is last.
        self._undecided = [e for e in reversed(self._entries.values()) if e.ahead is None]
        self._heap = [
            (e.stored.next_due_at, i) for i, e in self._entries.items() if e.stored.next_due_at
        ]
        heapify(self._heap)

    def next_due_at(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    async def pop_due(self, now: datetime, ticks_max: int) -> list[DueTicks]:
        """Remove and return what is due, up to `ticks_max` ticks but at least one schedule."""
        found: list[DueTicks] = []
        steps = searched = 0
        while self._heap and self._heap[0][0] <= now:
            entry = self._entries[self._heap[0][1]]
            ticks = due_ticks(entry.stored, entry.timing, now, entry.ahead)
            steps += len(ticks.steps) if ticks else 0
            if found and steps > ticks_max:
                break
            heappop(self._heap)
            if ticks:
                found.append(ticks)
            # A decision made ahead is found at once; any other is a search for missed ticks.
            searched += ticks is not entry.ahead
            if searched >= LATE_SLICE:
                searched = 0
                await asyncio.sleep(0)
        return found

    def decide_batch_ahead(self) -> bool:
        """Decide the next tick of up to AHEAD_BATCH schedules; False if none was undecided."""
        batch, self._undecided = self._undecided[-AHEAD_BATCH:], self._undecided[:-AHEAD_BATCH]
        for entry in batch:
            entry.ahead = decide_ahead(entry.stored, entry.timing)
        return bool(batch)

    def push(self, stored: StoredSchedule) -> None:
        """Add a schedule again that `pop_due` removed."""
        entry = self._entries[stored.id] = _Entry(stored, self._entries[stored.id].timing)
        self._undecided.append(entry)
        _show_next(stored)
        if stored.next_due_at is not None:
            heappush(self._heap, (stored.next_due_at, stored.id))

    def _timing(self, stored: StoredSchedule, known: _Entry | None) -> Timing | None:
        if known and known.stored.version == stored.version:
            return known.timing
        try:
            return timing_of(stored.definition, self._cluster)
        except InvalidArgument as error:
            # For example, the time zone database of this machine lacks the zone. One unusable
            # schedule must not stop the others.
            log.warning("schedule_unusable", schedule=stored.name, problem=str(error))
            return None


class Ticker:
    """Turns the due ticks of a group into runs.

    `queued` is called with the group after runs were added, so that the dispatcher wakes without a
    round trip. `changed` is called with the group when a hint reports changed schedules.
    """

    def __init__(
        self,
        store: TickStore,
        hints: Hints,
        *,
        cluster: str,
        queued: Callable[[str], None],
        changed: Callable[[str], None] = lambda group: None,
        backlogs: Backlogs | None = None,
    ) -> None:
        self._store = store
        self._backlogs = backlogs or NoBacklogs()
        self._hints = hints
        self._cluster = cluster
        self._queued = queued
        self._changed = changed

    async def lead(self, authority: Authority) -> None:
        """Turn ticks into runs until cancelled or draining."""
        subscription = self._hints.subscribe("schedules")
        try:
            await until_draining(authority, self._claim_ticks(authority, subscription))
        except Fenced:
            metrics.FENCED_WRITES.labels("tick").inc()
            authority.revoke(LossReason.FENCED)
        finally:
            self._hints.unsubscribe("schedules", subscription)

    async def _claim_ticks(self, authority: Authority, changes: Subscription) -> None:
        upcoming = _UpcomingSchedules(self._cluster)
        claimer = _TickClaimer(self._store, authority, upcoming, self._backlogs)
        pause = RETRY_SECONDS[0]
        while True:
            try:
                if await claimer.claim_or_poll():
                    self._queued(authority.term.group)
                pause = RETRY_SECONDS[0]
                idle_seconds = claimer.idle_seconds()
                if idle_seconds > AHEAD_MIN_IDLE_SECONDS:
                    idle_seconds = min(idle_seconds, claimer.decide_ahead(idle_seconds))
            except (StoreUnavailable, StoreRefused) as error:
                log.warning(
                    "ticks_wait_for_postgres", group=authority.term.group, problem=str(error)
                )
                claimer.request_poll()
                idle_seconds, pause = pause, min(pause * 2, RETRY_SECONDS[1])
            if await changes.wait(idle_seconds):
                claimer.request_poll()
                self._changed(authority.term.group)


class _TickClaimer:
    """Claims the due ticks of one term, and polls the store for the upcoming schedules."""

    def __init__(
        self,
        store: TickStore,
        authority: Authority,
        upcoming: _UpcomingSchedules,
        backlogs: Backlogs,
    ) -> None:
        self._store = store
        self._authority = authority
        self._upcoming = upcoming
        self._backlogs = backlogs
        self._clock = DatabaseClock()
        self._loop = asyncio.get_running_loop()
        self._poll_at = self._loop.time()
        self._batch = BATCH_TICKS[0]
        self._claimed_at = -inf

    def request_poll(self) -> None:
        self._poll_at = self._loop.time()

    def idle_seconds(self) -> float:
        """Return the time until the next tick or the next poll."""
        now = self._loop.time()
        if not self._authority.trusted:
            return RETRY_SECONDS[0]
        until_poll = max(0.0, self._poll_at - now)
        due_at = self._upcoming.next_due_at()
        if due_at is None:
            return until_poll
        # The margin avoids asking too early, when the database would claim nothing.
        until_due = self._clock.seconds_until(due_at, now) + _WAKE_MARGIN_SECONDS
        if self._backlogs.is_full(self._authority.term.group):
            until_due = max(FULL_SECONDS, until_due)
        return min(until_poll, until_due)

    def decide_ahead(self, idle_seconds: float) -> float:
        """Decide a batch ahead of time; return the time until the next batch may be decided."""
        since_claim = self._loop.time() - self._claimed_at
        delay = min(AHEAD_DELAY_SECONDS, (since_claim + idle_seconds) / 2) - since_claim
        if delay > _WAKE_MARGIN_SECONDS:  # a shorter delay may only be a rounding error
            return delay
        return 0.0 if self._upcoming.decide_batch_ahead() else inf

    async def claim_or_poll(self) -> bool:
        """Claim due ticks, or poll; True if runs were added.

        Due ticks come before a poll, unless the poll is so late that schedules may be missing.
        """
        late = self._loop.time() - self._poll_at
        if late < HORIZON_SECONDS - POLL_SECONDS and (due := await self._pop_due()):
            return await self._claim(due)
        if late >= 0:
            await self._poll()
        return False

    async def _pop_due(self) -> list[DueTicks]:
        group, due_at = self._authority.term.group, self._upcoming.next_due_at()
        if not self._authority.trusted or due_at is None:
            return []
        now = self._clock.time(self._loop.time())
        if (now - due_at).total_seconds() > VISIBLE_SECONDS:
            self._backlogs.suspect(group)
        if self._backlogs.is_full(group):
            return []
        due = await self._upcoming.pop_due(now, self._batch)
        self._batch = BATCH_TICKS[1] if due else BATCH_TICKS[0]
        return due

    async def _poll(self) -> None:
        asked = self._loop.time()
        now, found = await self._store.upcoming(
            self._authority.term, horizon_seconds=HORIZON_SECONDS, limit=UPCOMING_MAX + 1
        )
        self._clock.learn(now, asked=asked, answered=self._loop.time())
        await self._upcoming.replace_all(found)
        self._poll_at = self._loop.time() + POLL_SECONDS
        if len(found) > UPCOMING_MAX and (last := found[-1].next_due_at):
            # There are more schedules than were read: the list is complete only up to this one.
            self._poll_at = self._loop.time() + self._clock.seconds_until(last, self._loop.time())

    async def _claim(self, due: list[DueTicks]) -> bool:
        asked = self._loop.time()
        try:
            claimed = await self._store.claim_ticks(self._authority.term, due)
        except (StoreUnavailable, StoreRefused):
            self.request_poll()  # the stored watermark shows whether the claim was committed
            raise
        self._claimed_at = self._loop.time()
        self._clock.learn(claimed.now, asked=asked, answered=self._claimed_at)
        async for ticks in in_slices(due, SLICE):
            if ticks.before.id in claimed.moved:
                self._upcoming.push(ticks.after)
            elif ticks.due_at > claimed.now:
                self._upcoming.push(ticks.before)  # too early: the local clock is ahead
            else:
                self.request_poll()  # the schedule was changed since the last poll
        for reason, count in claimed.skipped:
            metrics.TICKS.labels("skipped", reason.value).inc(count)
        self._backlogs.queued(self._authority.term.group, claimed.queued)
        return claimed.queued > 0


def _show_next(stored: StoredSchedule) -> None:
    """Set the metric of the next run at once.

    The dead man's switch sets it for schedules that are not due soon, paused or ended.
    """
    if stored.next_tick and not stored.idle:
        metrics.ENTITIES(stored.name, "cron").next_run = stored.next_tick.timestamp()
