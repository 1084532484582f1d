"""The ticks of a schedule, and the decision to run or skip each tick.

A tick is a nominal instant; it identifies a run and never changes. Guarantees:

- `next_tick(after) > after`; every tick t has `start_at <= t < end_at`, so one schedule may end
  where the next begins. `every` ticks exactly at `start_at` (or the Unix epoch) + n × every.
- Jitter delays only the dispatch, always by the same time for the same tick, and never until the
  next tick.
- `plan` makes exactly one decision per due tick, in order of time. Its cost does not grow with the
  backlog: consecutive ticks skipped for one reason are one step with a computed count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, pairwise

from sidecar.model import cron, zones
from sidecar.model.cron import Cron
from sidecar.model.definitions import Schedule
from sidecar.model.errors import InvalidArgument

TICKS_MAX = 1_000  # runs per plan: as many as fit into one transaction
NONE_OLDER_THAN = timedelta(seconds=10)  # the delay that `catch_up: none` tolerates
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEIGHBOURS = 8  # ticks considered on each side: more than a week of weekdays
_LOOK_BACK = timedelta(days=3660)
_TIME_MIN = datetime.min.replace(tzinfo=UTC)
_TIME_MAX = datetime.max.replace(tzinfo=UTC)


class SkipReason(StrEnum):
    """Why a tick did not run; the list is complete."""

    MISFIRE = "misfire"
    COALESCED = "coalesced"
    OVERLAP = "overlap"
    PAUSED = "paused"
    OPERATOR = "operator"
    APP_DECLINED = "app_declined"
    EXPIRED = "expired"  # a job that was not started in time


class CatchUp(StrEnum):
    """Which of several missed ticks run."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Timing:
    """The ticks of one schedule: exactly one of `cron`, `every` and `at`."""

    cron: Cron | None = None
    every: timedelta | None = None
    at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_seconds: float = 0.0
    jitter_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if sum(timing is not None for timing in (self.cron, self.every, self.at)) != 1:
            raise InvalidArgument("schedule", "exactly one of cron, every and at is needed")
        if self.every is not None and self.every <= timedelta(0):
            raise InvalidArgument("every", "must be longer than nothing")
        if not 0 <= self.jitter_seconds <= 86_400:
            raise InvalidArgument("jitter", "must be between 0 and one day")
        self._check_window()

    def _check_window(self) -> None:
        for name in ("at", "start_at", "end_at"):
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is None:
                raise InvalidArgument(name, "needs a time zone or an offset")
        if self.start_at and self.end_at and self.start_at >= self.end_at:
            raise InvalidArgument("end_at", "must be after start_at")
        if self.at and self._within(self.at) is None:
            raise InvalidArgument("at", "must be between start_at and end_at")

    def next_tick(self, after: datetime) -> datetime | None:
        """The first tick strictly after `after`; None if there is none."""
        if self.start_at is not None:
            after = max(after, _just_before(self.start_at))
        if self.cron is not None:
            tick = self.cron.next(after)
        elif self.every is not None:
            tick = _next_multiple(self.start_at or _EPOCH, self.every, after)
        else:
            tick = self.at if self.at and self.at > after else None
        return self._within(tick)

    @property
    def never_ticks(self) -> bool:
        """Whether no tick lies between `start_at` and `end_at`, independent of the current time."""
        if self.at is not None or self.end_at is None:
            return False  # an `at` is inside its window; cron and every without an end always tick
        return self.next_tick(_EPOCH - _MICROSECOND) is None

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The ticks in (after, until], oldest first."""
        tick = self.next_tick(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.next_tick(tick)

    def count(self, after: datetime, until: datetime) -> int:
        """The number of ticks in (after, until], computed without visiting each one."""
        if self.start_at is not None:
            after = max(after, _just_before(self.start_at))
        if self.end_at is not None:
            until = min(until, _just_before(self.end_at))
        if until <= after:
            return 0
        if self.cron is not None:
            return self.cron.count(after, until)
        if self.every is not None:
            base = self.start_at or _EPOCH
            return (until - base) // self.every - (after - base) // self.every
        return int(self.at is not None and after < self.at <= until)

    def newest(self, count: int, after: datetime, until: datetime) -> list[datetime]:
        """The newest `count` ticks in (after, until], oldest first; fewer if there are fewer."""
        total, first = self.count(after, until), self.next_tick(after)
        if total <= count or first is None:
            return list(self.ticks(after, until))
        if self.every is not None:
            return list(self.ticks(first + (total - count) * self.every - _MICROSECOND, until))
        low, high = 0, (until - after) // _MICROSECOND
        # Invariant: more than `count` ticks lie after `low`, at most `count` after `high`.
        while high - low > 1:
            middle = (low + high) // 2
            if self.count(after + middle * _MICROSECOND, until) > count:
                low = middle
            else:
                high = middle
        return list(self.ticks(after + high * _MICROSECOND, until))

    def dispatch_at(self, tick: datetime) -> datetime:
        """The start time of the run of a tick: up to `jitter` later, but before the next tick."""
        room = timedelta(seconds=self.jitter_seconds)
        if not room:
            return tick
        following = self.next_tick(tick)
        if following is not None:
            room = min(room, following - tick)
        text = f"{self.jitter_key}/{(tick - _EPOCH) // _MICROSECOND}"
        fraction = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return tick + (room // _MICROSECOND * fraction >> 64) * _MICROSECOND

    def _within(self, tick: datetime | None) -> datetime | None:
        if tick is None or (self.end_at is not None and tick >= self.end_at):
            return None
        return None if self.start_at is not None and tick < self.start_at else tick


def _just_before(instant: datetime) -> datetime:
    """One microsecond earlier; `datetime.min`, which some callers send for no limit, is kept."""
    return max(instant, _TIME_MIN + _MICROSECOND) - _MICROSECOND


def _next_multiple(base: datetime, every: timedelta, after: datetime) -> datetime | None:
    try:
        return base + ((after - base) // every + 1) * every
    except OverflowError:  # past the year 9999
        return None


def timing_of(schedule: Schedule, cluster: str) -> Timing:
    """The timing of a schedule in that cluster; raise InvalidArgument with the invalid field."""
    key = f"{cluster}/{schedule.name}"
    return Timing(
        cron=_parsed(schedule, key),
        every=_interval(schedule.every_seconds),
        at=schedule.at,
        start_at=schedule.start_at,
        end_at=schedule.end_at,
        jitter_seconds=schedule.jitter_seconds,
        jitter_key=key,
    )


def _parsed(schedule: Schedule, hash_key: str) -> Cron | None:
    try:
        zones.load_zone(schedule.timezone)
    except zones.ZoneError as error:
        raise InvalidArgument("timezone", str(error)) from None
    if schedule.cron is None:
        return None
    try:
        return cron.parse(schedule.cron, timezone=schedule.timezone, hash_key=hash_key)
    except cron.CronError as error:
        raise InvalidArgument("cron", str(error)) from None


def _interval(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class CatchUpPolicy:
    """The policy for missed ticks."""

    skip_if_older_than: timedelta = timedelta(days=1)
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max: int = 100

    def __post_init__(self) -> None:
        if self.skip_if_older_than <= timedelta(0):
            raise InvalidArgument("skip_if_older_than", "must be positive")
        if self.catch_up_max < 1:
            raise InvalidArgument("catch_up_max", "must be at least 1")

    @property
    def age_max(self) -> timedelta:
        """An older tick is a misfire."""
        if self.catch_up is CatchUp.NONE:
            return min(self.skip_if_older_than, NONE_OLDER_THAN)
        return self.skip_if_older_than

    @property
    def runs_max(self) -> int | None:
        """How many ticks run, newest first, among those that are not misfires; None means all."""
        limits = {CatchUp.LATEST: 1, CatchUp.ALL: self.catch_up_max, CatchUp.NONE: None}
        return limits[self.catch_up]


@dataclass(frozen=True, slots=True)
class TickPlan:
    """One tick that runs, or consecutive ticks that are skipped for the same reason."""

    first: datetime
    last: datetime
    count: int
    reason: SkipReason | None  # None: the tick runs

    @property
    def runs(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions, oldest first; every tick up to `watermark` has exactly one."""

    steps: tuple[TickPlan, ...]
    watermark: datetime
    more: bool  # more ticks are due after `watermark`: plan again from there


def plan(
    timing: Timing,
    policy: CatchUpPolicy,
    *,
    watermark: datetime,
    now: datetime,
    paused: bool = False,
) -> Plan:
    """Decide the ticks in (watermark, now], with at most TICKS_MAX runs.

    With `paused`, for a schedule that is paused or disabled, all due ticks are skipped as `paused`.
    Call it with `paused` during the pause and once at the resume, so that every tick of the pause
    gets its decision.
    """
    if paused:
        return _plan_of([*_skipped(timing, watermark, now, SkipReason.PAUSED)], watermark)
    live = max(watermark, now - policy.age_max - _MICROSECOND)
    kept = _kept(timing, policy.runs_max, live, now)
    oldest_kept = kept[0] - _MICROSECOND if kept else now
    steps = [
        *_skipped(timing, watermark, live, SkipReason.MISFIRE),
        *_skipped(timing, live, oldest_kept, SkipReason.COALESCED),
        *(TickPlan(tick, tick, 1, None) for tick in kept[:TICKS_MAX]),
    ]
    return _plan_of(steps, watermark, more=len(kept) > TICKS_MAX)


def _kept(timing: Timing, runs_max: int | None, after: datetime, now: datetime) -> list[datetime]:
    """The ticks in (after, now] that run; a result above TICKS_MAX means that more are due."""
    if runs_max is None:
        return list(islice(timing.ticks(after, now), TICKS_MAX + 1))
    return timing.newest(runs_max, after, now)


def _skipped(
    timing: Timing, after: datetime, until: datetime, reason: SkipReason
) -> Iterator[TickPlan]:
    """One step for all ticks in (after, until]; none if there are no ticks."""
    count = timing.count(after, until)
    first = timing.next_tick(after)
    if count and first:
        last = first if count == 1 else timing.newest(1, after, until)[0]
        yield TickPlan(first, last, count, reason)


def _plan_of(steps: list[TickPlan], watermark: datetime, *, more: bool = False) -> Plan:
    return Plan(tuple(steps), steps[-1].last if steps else watermark, more)


def expected_interval(timing: Timing, around: datetime) -> timedelta | None:
    """The longest normal time between two ticks; the dead man's switch waits twice that.

    It is the longest interval between adjacent ticks among the eight before and the eight after
    `around` (at most ten years back). So a schedule on weekdays at nine expects a tick within three
    days on every day of the week, and clock changes are included. Two healthy successes are at most
    the current interval plus the previous one apart, and both are considered, so there is no false
    alarm. None if no tick follows, or if there is no second tick to measure an interval.
    """
    following = timing.next_tick(around)
    if following is None or timing.every is not None:
        return timing.every if following else None
    later = [following, *islice(timing.ticks(following, _TIME_MAX), _NEIGHBOURS - 1)]
    look_back = timedelta(minutes=1)
    while look_back < _LOOK_BACK and timing.count(around - look_back, around) < _NEIGHBOURS:
        look_back *= 2
    ticks = timing.newest(_NEIGHBOURS, around - look_back, around) + later
    return max((b - a for a, b in pairwise(ticks)), default=None)


def skips_missed_ticks(catch_up: str, overlap: str) -> str:
    """A warning if `overlap` skips most of the ticks that `catch_up` keeps; else empty."""
    if catch_up != "all" or overlap == "allow":
        return ""
    kept = {"queue": "one waits at most", "skip": "none waits", "replace": "each ends the last"}
    return (
        f"overlap: {overlap} skips most of several missed ticks ({kept[overlap]}),"
        " although catch_up is all; use overlap: allow if each must run"
    )
