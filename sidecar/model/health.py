"""Readiness with reasons, and the rules of the dead man's switch.

An entity (a singleton or a schedule) is stale when
- its heartbeat is older than `stale_after` (60 s), or
- it had no success for twice its expected interval, and for at least 5 s. The time counts from the
  last success, or from its creation, resume, change or `start_at` if one of them is later. For a
  singleton each `Runs.Heartbeat` is a success. An expected interval of 0 disables this check.

The age of a heartbeat is compared with the current time, because this runner writes the heartbeats.
The age of a success is compared with the time of the last reading, because a success may have been
recorded since then.

An entity that is paused, disabled or over is never stale. Staleness at the start of a term is
inherited: it makes the leader unready at once, but the leader does not step down. The leader steps
down for an entity that was fresh at some time in its term and then had no sign of life for the
whole limit, within the term: before that, another leader could not have done better. Time in which
Postgres did not answer does not count, up to `stale_after`: neither this leader nor another runner
behind the same pooler can record a success. After `stale_after`, a runner with another pool may.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from sidecar.model.definitions import Schedule
from sidecar.model.schedule import expected_interval, timing_of

EntityKind = Literal["singleton", "schedule", "job"]
EntityKey = tuple[EntityKind, str]

_SUCCESS_LIMIT_DIVISOR = 12
JUDGED_AT_ONCE = 200
_NEVER = datetime.max.replace(tzinfo=UTC)
STEP_DOWN_BACK_OFF_SECONDS = 300.0
STEP_DOWN_BACK_OFF_SECONDS_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Ready, or not ready with the reasons that the probe returns.

    `checks` has the reasons of each check by its name; a check without reasons passed.
    """

    reasons: tuple[str, ...] = ()
    more: int = 0  # reasons that are not listed
    checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(checks: Mapping[str, Iterable[str]], *, more: int = 0) -> "Readiness":
        found = {name: tuple(reasons) for name, reasons in checks.items()}
        return Readiness(tuple(one for why in found.values() for one in why), more, found)

    def without(self, excluded: Collection[str]) -> "Readiness":
        """The verdict without these checks; only those of singletons may be too many to list."""
        if not self.checks:
            return self
        kept = {name: why for name, why in self.checks.items() if name not in excluded}
        return Readiness.of(kept, more=0 if "singletons" in excluded else self.more)

    @property
    def good(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Vitals:
    """The heartbeats and successes of one entity; all times are database times."""

    kind: EntityKind
    name: str
    group: str
    counted_from: datetime  # creation, resume, change or start_at: staleness counts from here
    expected_seconds: float = 0.0  # 0: only heartbeats are expected
    watched: bool = True  # false: paused, disabled or over
    heartbeat_at: datetime | None = None
    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    next_run_at: datetime | None = None

    @property
    def key(self) -> EntityKey:
        return self.kind, self.name


def expected_seconds(schedule: Schedule, cluster: str, now: datetime) -> float:
    """`expected_interval` if it is configured, else derived from the ticks around `now`.

    The derived value is the longest interval between adjacent ticks around `now`, so a schedule on
    weekdays at nine does not become stale on a Sunday. It is 0 if no second tick follows: then only
    heartbeats count.
    """
    if schedule.expected_interval_seconds > 0:
        return schedule.expected_interval_seconds
    derived = expected_interval(timing_of(schedule, cluster), now)
    return derived.total_seconds() if derived else 0.0


@dataclass(frozen=True, slots=True)
class VitalsReading:
    """The vitals of some groups, read at the database time `now`."""

    now: datetime
    entities: tuple[Vitals, ...]
    all_heartbeats_at: datetime | None = None  # no heartbeat is older: written since
    successes: Mapping[EntityKey, datetime] = field(default_factory=dict)  # seen since the reading


def oldest_beat(reading: VitalsReading, ahead: timedelta) -> datetime | None:
    """The time of the oldest heartbeat, on the clock after it was stepped ahead by `ahead`.

    A heartbeat later than `reading.now - ahead` was written after the step and needs no correction.
    """
    without_step = reading.now - ahead
    beats = (each.heartbeat_at or each.counted_from for each in reading.entities)
    return min((at + ahead if at <= without_step else at for at in beats), default=None)


@dataclass(frozen=True, slots=True)
class Stale:
    """The cause and the limit by which an entity is, or will be, stale."""

    vitals: Vitals
    cause: Literal["heartbeat", "success"]
    since: datetime  # the last sign of life
    limit_seconds: float

    @property
    def until(self) -> datetime:
        """The last instant at which the entity is fresh."""
        return self.since + timedelta(seconds=self.limit_seconds)

    def passed(self, until: datetime, now: datetime, read_at: datetime) -> bool:
        """Whether `until` has passed: by the current time for a heartbeat, else by the reading."""
        return (now if self.cause == "heartbeat" else read_at) > until

    def why(self, now: datetime) -> str:
        """The cause, for a place that already shows the entity."""
        what = "no heartbeat" if self.cause == "heartbeat" else "no success"
        age = (now - self.since).total_seconds()
        return f"{what} for {age:.0f} s, {self.limit_seconds:.0f} s are allowed"

    def reason(self, now: datetime) -> str:
        """The line in the body of /readyz."""
        return f"{self.vitals.kind} {self.vitals.name}: {self.why(now)}"


def staleness(vitals: Vitals, now: datetime, stale_after_seconds: float) -> Stale | None:
    """The staleness of the entity, or None; a missing heartbeat precedes a missing success."""
    limits = _limits(vitals, stale_after_seconds, VitalsReading(now, ()))
    return next(_passed(limits, now, now), None)


def _passed(limits: Iterable[Stale], now: datetime, read_at: datetime) -> Iterator[Stale]:
    return (each for each in limits if each.passed(each.until, now, read_at))


def _limits(vitals: Vitals, stale_after_seconds: float, reading: VitalsReading) -> Iterator[Stale]:
    """The limits of the entity, whether they have passed or not."""
    if not vitals.watched:
        return
    beat = max(vitals.heartbeat_at or vitals.counted_from, vitals.counted_from)
    if reading.all_heartbeats_at is not None and reading.all_heartbeats_at > beat:
        beat = reading.all_heartbeats_at
    yield Stale(vitals, "heartbeat", beat, stale_after_seconds)
    if vitals.expected_seconds > 0:
        success = max(_last_success(vitals, reading) or vitals.counted_from, vitals.counted_from)
        limit = _success_limit(vitals, stale_after_seconds)
        yield Stale(vitals, "success", success, limit)


@dataclass(frozen=True, slots=True)
class Watch:
    """The leader's knowledge of the entities of one group during one term."""

    taken_at: datetime
    fresh_once: frozenset[EntityKey] = frozenset()  # not stale at some time in this term
    answering_since: datetime | None = None  # Postgres has answered every call since then


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of one check of all entities of a group."""

    watch: Watch
    stale: tuple[Stale, ...] = ()
    own: tuple[Stale, ...] = ()  # those that became stale in this term: a reason to step down
    holds_until: datetime | None = None  # valid until then without a new reading


def judged(
    watch: Watch,
    reading: VitalsReading,
    now: datetime,
    stale_after_seconds: float,
) -> Judgement:
    """Check all entities of the group; the new watch forgets entities that no longer exist."""
    steps = judging(watch, reading, now, stale_after_seconds)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            judgement: Judgement = end.value
            return judgement


def judging(
    watch: Watch,
    reading: VitalsReading,
    now: datetime,
    stale_after_seconds: float,
) -> Generator[None, None, Judgement]:
    """`judged` in steps: it yields after every JUDGED_AT_ONCE entities and returns the result."""
    stale: list[Stale] = []
    own: list[Stale] = []
    fresh: set[EntityKey] = set()
    holds_until = _NEVER
    for number, vitals in enumerate(reading.entities, 1):
        if number % JUDGED_AT_ONCE == 0:
            yield
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
            responsible_at = _responsible_at(found, watch, stale_after_seconds)
            if found.passed(responsible_at, now, reading.now):
                own.append(found)
            else:
                holds_until = min(holds_until, responsible_at)
    after = replace(watch, fresh_once=frozenset(fresh))
    changes_at = holds_until if holds_until is not _NEVER else None
    return Judgement(after, tuple(stale), tuple(own), changes_at)


def _fresh_until(
    vitals: Vitals, reading: VitalsReading, now: datetime, stale_after_seconds: float
) -> datetime | None:
    """The earliest end of `_limits`, without building them, for speed; None if it is stale."""
    if not vitals.watched:
        return _NEVER
    beat = vitals.heartbeat_at
    if beat is None or beat < vitals.counted_from:
        beat = vitals.counted_from
    if reading.all_heartbeats_at is not None and reading.all_heartbeats_at > beat:
        beat = reading.all_heartbeats_at
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


def _last_success(vitals: Vitals, reading: VitalsReading) -> datetime | None:
    read, seen = vitals.last_success_at, reading.successes.get(vitals.key)
    return seen if read is None or (seen is not None and seen > read) else read


def _success_limit(vitals: Vitals, stale_after_seconds: float) -> float:
    """At least 5 s (with a `stale_after` of 60 s): healthy ticks every second may be that late."""
    return max(2 * vitals.expected_seconds, stale_after_seconds / _SUCCESS_LIMIT_DIVISOR)


def _responsible_at(stale: Stale, watch: Watch, stale_after_seconds: float) -> datetime:
    """When the whole limit has passed within the term, while Postgres answered."""
    limit = timedelta(seconds=stale.limit_seconds)
    in_term = max(stale.until, watch.taken_at + limit)
    if stale.cause == "heartbeat" or watch.answering_since is None:
        return in_term
    excused_until = in_term + timedelta(seconds=stale_after_seconds)
    return max(in_term, min(watch.answering_since + limit, excused_until))


@dataclass(frozen=True, slots=True)
class BackOff:
    """Limits how often one runner steps down from one group, over all terms (monotonic seconds)."""

    not_before: float = float("-inf")
    delay_seconds: float = STEP_DOWN_BACK_OFF_SECONDS

    def allows(self, now: float) -> bool:
        return now >= self.not_before

    def stepped_down(self, now: float) -> "BackOff":
        return BackOff(
            now + self.delay_seconds, min(2 * self.delay_seconds, STEP_DOWN_BACK_OFF_SECONDS_MAX)
        )

    def calmed(self, now: float) -> "BackOff":
        """Call while all entities are fresh: resets the delay one delay after `not_before`."""
        return BackOff() if now >= self.not_before + self.delay_seconds else self


def heartbeat_due(written_at: datetime | None, now: datetime, interval_seconds: float) -> bool:
    """Whether the next heartbeat is due; it is also due if the clock stepped back."""
    if written_at is None:
        return True
    return not timedelta() <= now - written_at < timedelta(seconds=interval_seconds)
