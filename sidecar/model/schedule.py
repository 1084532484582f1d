"""When a schedule ticks, and what becomes of each tick.

A tick is a nominal instant; it is the identity of a run and never moves. Guarantees:

- `next_tick(after) > after`; ticks t satisfy `start_at <= t < end_at`, so that one schedule may end
  where the next begins. `every` ticks at `start_at` (else the Unix epoch) + n × every, exactly.
- Jitter delays the dispatch only, always by the same time for the same tick, and never as far as
  the next tick.
- `plan` gives every due tick exactly one decision, in the order of time, and is cheap whatever the
  backlog: a stretch skipped for one reason is one step with a count that was computed, not walked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, pairwise
from typing import Protocol

from sidecar.model import cron, zones
from sidecar.model.cron import Cron
from sidecar.model.errors import InvalidArgument

TICKS_MAX = 1_000  # runs planned at once: one transaction's worth
NONE_OLDER_THAN = timedelta(seconds=10)  # `catch_up: none` forgives this much
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEIGHBOURS = 8  # ticks looked at on each side: more than a week of weekdays
_LOOK_BACK = timedelta(days=3660)
_BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class SkipReason(StrEnum):
    """Why a tick did not run: the closed list."""

    MISFIRE = "misfire"
    COALESCED = "coalesced"
    OVERLAP = "overlap"
    PAUSED = "paused"
    OPERATOR = "operator"
    APP_DECLINED = "app_declined"


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
            raise InvalidArgument("jitter", "must lie between nothing and one day")
        self._check_window()

    def _check_window(self) -> None:
        for name in ("at", "start_at", "end_at"):
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is None:
                raise InvalidArgument(name, "needs a time zone or an offset")
        if self.start_at and self.end_at and self.start_at >= self.end_at:
            raise InvalidArgument("end_at", "must be after start_at")
        if self.at and self._within(self.at) is None:
            raise InvalidArgument("at", "lies outside of start_at and end_at")

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
        """No tick lies in its window, whatever the time is now."""
        if self.at is not None or self.end_at is None:
            return False  # an `at` outside of its window is none, and a cron without an end fires
        return self.next_tick(_EPOCH - _MICROSECOND) is None

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The ticks in (after, until], oldest first."""
        tick = self.next_tick(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.next_tick(tick)

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks lie in (after, until], by arithmetic."""
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
        low, high = 0, (until - after) // _MICROSECOND
        if self.count(after, until) <= count:
            return list(self.ticks(after, until))
        while high - low > 1:  # more than `count` ticks after `low`, at most `count` after `high`
            middle = (low + high) // 2
            if self.count(after + middle * _MICROSECOND, until) > count:
                low = middle
            else:
                high = middle
        return list(self.ticks(after + high * _MICROSECOND, until))

    def dispatch_at(self, tick: datetime) -> datetime:
        """When to start the run of a tick: up to `jitter` later, but before the next tick."""
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
    """A microsecond earlier; the beginning of time, which is what some write for none, stays."""
    return max(instant, _BEGINNING_OF_TIME + _MICROSECOND) - _MICROSECOND


def _next_multiple(base: datetime, every: timedelta, after: datetime) -> datetime | None:
    try:
        return base + ((after - base) // every + 1) * every
    except OverflowError:  # past the year 9999
        return None


class TimingSettings(Protocol):
    """What a schedule says about its timing, in the config file or through the API."""

    @property
    def name(self) -> str: ...
    @property
    def cron(self) -> str | None: ...
    @property
    def every_seconds(self) -> float | None: ...
    @property
    def at(self) -> datetime | None: ...
    @property
    def timezone(self) -> str: ...
    @property
    def start_at(self) -> datetime | None: ...
    @property
    def end_at(self) -> datetime | None: ...
    @property
    def jitter_seconds(self) -> float: ...


def timing_of(schedule: TimingSettings, cluster: str) -> Timing:
    """The timing that a schedule of that cluster describes; InvalidArgument names a bad field."""
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


def _parsed(schedule: TimingSettings, hash_key: str) -> Cron | None:
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
    """What happens to ticks that were missed."""

    skip_if_older_than: timedelta = timedelta(days=1)
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max: int = 100

    def __post_init__(self) -> None:
        if self.skip_if_older_than <= timedelta(0):
            raise InvalidArgument("skip_if_older_than", "must be longer than nothing")
        if self.catch_up_max < 1:
            raise InvalidArgument("catch_up_max", "must be at least 1")

    @property
    def age_max(self) -> timedelta:
        """A tick that is older is a misfire."""
        if self.catch_up is CatchUp.NONE:
            return min(self.skip_if_older_than, NONE_OLDER_THAN)
        return self.skip_if_older_than

    @property
    def runs_max(self) -> int | None:
        """Of the ticks that are no misfires, so many of the newest run; None: all of them."""
        limits = {CatchUp.LATEST: 1, CatchUp.ALL: self.catch_up_max, CatchUp.NONE: None}
        return limits[self.catch_up]


@dataclass(frozen=True, slots=True)
class TickPlan:
    """One tick that runs, or consecutive ticks that are skipped for one reason."""

    first: datetime
    last: datetime
    count: int
    reason: SkipReason | None  # None: the tick runs

    @property
    def runs(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions, oldest first; every tick up to `watermark` has its one decision."""

    steps: tuple[TickPlan, ...]
    watermark: datetime
    more: bool  # ticks are due beyond `watermark`: plan again from there


def plan(
    timing: Timing,
    policy: CatchUpPolicy,
    *,
    watermark: datetime,
    now: datetime,
    paused: bool = False,
) -> Plan:
    """Decide the ticks in (watermark, now], at most TICKS_MAX runs at once.

    A schedule that is paused or disabled skips whatever is due as `paused`. Plan so while it is
    paused and once more at the moment of its resumption: then no tick of the pause is missed.
    """
    if paused:
        return _ordered([*_skipped(timing, watermark, now, SkipReason.PAUSED)], watermark)
    live = max(watermark, now - policy.age_max - _MICROSECOND)
    kept = _kept(timing, policy.runs_max, live, now)
    oldest_kept = kept[0] - _MICROSECOND if kept else now
    steps = [
        *_skipped(timing, watermark, live, SkipReason.MISFIRE),
        *_skipped(timing, live, oldest_kept, SkipReason.COALESCED),
        *(TickPlan(tick, tick, 1, None) for tick in kept[:TICKS_MAX]),
    ]
    return _ordered(steps, watermark, more=len(kept) > TICKS_MAX)


def _kept(timing: Timing, runs_max: int | None, after: datetime, now: datetime) -> list[datetime]:
    """The ticks in (after, now] that run; one beyond TICKS_MAX tells that there are more."""
    if runs_max is None:
        return list(islice(timing.ticks(after, now), TICKS_MAX + 1))
    return timing.newest(runs_max, after, now)


def _skipped(
    timing: Timing, after: datetime, until: datetime, reason: SkipReason
) -> Iterator[TickPlan]:
    """One step for all ticks in (after, until], if there are any."""
    count = timing.count(after, until)
    first = timing.next_tick(after)
    if count and first:
        last = first if count == 1 else timing.newest(1, after, until)[0]
        yield TickPlan(first, last, count, reason)


def _ordered(steps: list[TickPlan], watermark: datetime, *, more: bool = False) -> Plan:
    return Plan(tuple(steps), steps[-1].last if steps else watermark, more)


def expected_interval(timing: Timing, around: datetime) -> timedelta | None:
    """How long a healthy schedule may go without a tick: the dead man's switch waits twice that.

    The longest pause between neighbours among the eight ticks before and after `around` (ten years
    back at most). So weekdays at nine expect a tick within three days, whatever day it is, and a
    clock change is accounted for. Between two healthy successes lie at most the current pause and
    the one before, and both are among those looked at: no alarm without cause. None if no
    tick follows, or if there is no second one to measure by.
    """
    following = timing.next_tick(around)
    if following is None or timing.every is not None:
        return timing.every if following else None
    later = [following, *islice(timing.ticks(following, _END_OF_TIME), _NEIGHBOURS - 1)]
    look_back = timedelta(minutes=1)
    while look_back < _LOOK_BACK and timing.count(around - look_back, around) < _NEIGHBOURS:
        look_back *= 2
    ticks = timing.newest(_NEIGHBOURS, around - look_back, around) + later
    return max((b - a for a, b in pairwise(ticks)), default=None)
