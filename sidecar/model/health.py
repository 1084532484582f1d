"""What health is made of: verdicts with reasons, and the dead man's switch as pure rules.

An entity (a singleton or a schedule) is stale when
- its heartbeat is older than `stale_after` (60 s), or
- it had no success in twice its expected interval (and in 5 s). Counted from the last success, or
  from its creation, resume, change or `start_at` where one of them is later. For a singleton each
  `Runs.Heartbeat` is a success. An expected interval of 0 means that only heartbeats count.

Time alone makes a heartbeat stale, because we write them ourselves. A missing success is believed
only as of the last reading: one that we have neither seen nor read yet is no cause for alarm.

What is paused, disabled or over is never stale. Staleness found at the start of a term is
inherited: the leader is unready for it at once, but does not step down. It steps down for an entity
that was fresh at some moment of its term and then, for the whole limit and within the term, showed
no sign of life: a leader that had no chance to do better gives way to nobody.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from sidecar.model.schedule import TimingSettings, expected_interval, timing_of

EntityKind = Literal["singleton", "schedule"]
EntityKey = tuple[EntityKind, str]

_SUCCESS_SHARE_MIN = 12
_NEVER = datetime.max.replace(tzinfo=UTC)
STEP_DOWN_BACK_OFF_SECONDS = 300.0
STEP_DOWN_BACK_OFF_SECONDS_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes, or no with the reasons a person reads in the answer of a probe."""

    reasons: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Vitals:
    """The signs of life of one entity; all times are the database's."""

    kind: EntityKind
    name: str
    group: str
    counted_from: datetime  # creation, resume, change or start_at: nothing is expected before it
    expected_seconds: float = 0.0  # 0: no success is expected, only heartbeats
    watched: bool = True  # false: paused, disabled or over
    heartbeat_at: datetime | None = None
    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    next_run_at: datetime | None = None

    @property
    def key(self) -> EntityKey:
        return self.kind, self.name


class PacedSchedule(TimingSettings, Protocol):
    """The part of a schedule's definition that says what to expect."""

    @property
    def expected_interval_seconds(self) -> float: ...


def expected_seconds(schedule: PacedSchedule, cluster: str, now: datetime) -> float:
    """`expected_interval` if it is given, else what the ticks around `now` promise.

    Derived it is the longest pause between neighbouring ticks around now: a job on weekdays at nine
    is not missed on Sunday. 0, when no second tick follows: then only heartbeats count.
    """
    if schedule.expected_interval_seconds > 0:
        return schedule.expected_interval_seconds
    derived = expected_interval(timing_of(schedule, cluster), now)
    return derived.total_seconds() if derived else 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The vitals of some groups as read at one moment, by the database's clock."""

    now: datetime
    entities: tuple[Vitals, ...]
    beaten_at: datetime | None = None  # we wrote since: no heartbeat is older than that
    successes: Mapping[EntityKey, datetime] = field(default_factory=dict)  # that we saw since


def oldest_beat(reading: Reading, ahead: timedelta) -> datetime | None:
    """When the oldest heartbeat was written, as told by a clock that was set ahead meanwhile.

    What was written since the step is known by its time, which the clock would not show without it.
    """
    without_step = reading.now - ahead
    beats = (each.heartbeat_at or each.counted_from for each in reading.entities)
    return min((at + ahead if at <= without_step else at for at in beats), default=None)


@dataclass(frozen=True, slots=True)
class Stale:
    """Why an entity counts as stale."""

    vitals: Vitals
    cause: Literal["heartbeat", "success"]
    since: datetime  # the last sign of life
    limit_seconds: float

    @property
    def until(self) -> datetime:
        """Fresh up to here."""
        return self.since + timedelta(seconds=self.limit_seconds)

    def passed(self, until: datetime, now: datetime, read_at: datetime) -> bool:
        """Is `until` over, as far as we can know?"""
        return (now if self.cause == "heartbeat" else read_at) > until

    def why(self, now: datetime) -> str:
        """For a person who sees which entity it is about."""
        what = "no heartbeat" if self.cause == "heartbeat" else "no success"
        age = (now - self.since).total_seconds()
        return f"{what} for {age:.0f} s, {self.limit_seconds:.0f} s are allowed"

    def reason(self, now: datetime) -> str:
        """The line in the body of /readyz."""
        return f"{self.vitals.kind} {self.vitals.name}: {self.why(now)}"


def staleness(vitals: Vitals, now: datetime, stale_after_seconds: float) -> Stale | None:
    """Is the entity stale, and why; a missing heartbeat is named before a missing success."""
    limits = _limits(vitals, stale_after_seconds, Reading(now, ()))
    return next(_passed(limits, now, now), None)


def _passed(limits: Iterable[Stale], now: datetime, read_at: datetime) -> Iterator[Stale]:
    return (each for each in limits if each.passed(each.until, now, read_at))


def _limits(vitals: Vitals, stale_after_seconds: float, reading: Reading) -> Iterator[Stale]:
    """As what the entity will count once the time has come."""
    if not vitals.watched:
        return
    beat = max(vitals.heartbeat_at or vitals.counted_from, vitals.counted_from)
    if reading.beaten_at is not None and reading.beaten_at > beat:
        beat = reading.beaten_at
    yield Stale(vitals, "heartbeat", beat, stale_after_seconds)
    if vitals.expected_seconds > 0:
        success = max(_last_success(vitals, reading) or vitals.counted_from, vitals.counted_from)
        limit = _success_limit(vitals, stale_after_seconds)
        yield Stale(vitals, "success", success, limit)


@dataclass(frozen=True, slots=True)
class Watch:
    """What the leader of one group knows of its entities during one term."""

    taken_at: datetime
    fresh_once: frozenset[EntityKey] = frozenset()  # were not stale, in this term


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of looking once at all entities of a group."""

    watch: Watch
    stale: tuple[Stale, ...] = ()
    own: tuple[Stale, ...] = ()  # of them, those that arose in this term: a reason to step down
    holds_until: datetime | None = None  # nothing changes before it; then read again and look


def judged(
    watch: Watch,
    reading: Reading,
    now: datetime,
    stale_after_seconds: float,
) -> Judgement:
    """Look at all entities of the group; those that are gone are forgotten."""
    stale: list[Stale] = []
    own: list[Stale] = []
    fresh: set[EntityKey] = set()
    holds_until = _NEVER
    for vitals in reading.entities:
        until = _fresh_until(vitals, reading, now, stale_after_seconds)
        if until is not None:
            fresh.add(vitals.key)
            holds_until = min(holds_until, until)
            continue
        limits = _limits(vitals, stale_after_seconds, reading)
        found = next(_passed(limits, now, reading.now))
        stale.append(found)
        if vitals.key in watch.fresh_once:
            fresh.add(vitals.key)
            had_its_chance_at = _had_its_chance_at(found, watch)
            if found.passed(had_its_chance_at, now, reading.now):
                own.append(found)
            else:
                holds_until = min(holds_until, had_its_chance_at)
    after = replace(watch, fresh_once=frozenset(fresh))
    changes_at = holds_until if holds_until is not _NEVER else None
    return Judgement(after, tuple(stale), tuple(own), changes_at)


def _fresh_until(
    vitals: Vitals, reading: Reading, now: datetime, stale_after_seconds: float
) -> datetime | None:
    """What `_limits` say, without making them: thousands are looked at. None: it is stale."""
    if not vitals.watched:
        return _NEVER
    beat = vitals.heartbeat_at
    if beat is None or beat < vitals.counted_from:
        beat = vitals.counted_from
    if reading.beaten_at is not None and reading.beaten_at > beat:
        beat = reading.beaten_at
    until = beat + timedelta(seconds=stale_after_seconds)
    if now > until:
        return None
    if vitals.expected_seconds > 0:
        success = _last_success(vitals, reading)
        if success is None or success < vitals.counted_from:
            success = vitals.counted_from
        success_until = success + timedelta(seconds=_success_limit(vitals, stale_after_seconds))
        if reading.now > success_until:
            return None
        until = min(until, success_until)
    return until


def _last_success(vitals: Vitals, reading: Reading) -> datetime | None:
    read, seen = vitals.last_success_at, reading.successes.get(vitals.key)
    return seen if read is None or (seen is not None and seen > read) else read


def _success_limit(vitals: Vitals, stale_after_seconds: float) -> float:
    """Never less than 5 s (of 60): ticks of a second may be late by as much with nothing wrong."""
    return max(2 * vitals.expected_seconds, stale_after_seconds / _SUCCESS_SHARE_MIN)


def _had_its_chance_at(stale: Stale, watch: Watch) -> datetime:
    """By then the whole limit has passed within the term."""
    return max(stale.until, watch.taken_at + timedelta(seconds=stale.limit_seconds))


@dataclass(frozen=True, slots=True)
class BackOff:
    """Paces the step-downs of one runner from one group, over all its terms (monotonic seconds)."""

    not_before: float = float("-inf")
    delay_seconds: float = STEP_DOWN_BACK_OFF_SECONDS

    def allows(self, now: float) -> bool:
        return now >= self.not_before

    def stepped_down(self, now: float) -> "BackOff":
        return BackOff(
            now + self.delay_seconds, min(2 * self.delay_seconds, STEP_DOWN_BACK_OFF_SECONDS_MAX)
        )

    def calmed(self, now: float) -> "BackOff":
        """Everything has been fresh for a whole back-off after the last step-down: start anew."""
        return BackOff() if now >= self.not_before + self.delay_seconds else self


def heartbeat_due(written_at: datetime | None, now: datetime, interval_seconds: float) -> bool:
    """Is the next heartbeat due? A clock that stepped back makes it due too."""
    if written_at is None:
        return True
    return not timedelta() <= now - written_at < timedelta(seconds=interval_seconds)
