"""A stored schedule, and how each operation changes it. Pure: time is an argument.

Guarantees (G4): the watermark never moves past a tick that has no row. An operation that moves it
without running the ticks (a resume, a new timing, a retirement) writes one skipped row for them.
A retirement sets the watermark to its own time, so that a schedule that is declared again catches
up the ticks since then, according to its `catch_up`.

A stored definition may be damaged, or unknown to this release, such as a new time zone. It can
still be replaced or retired; its ticks cannot be computed, so they get no row.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from sidecar.model.definitions import Schedule
from sidecar.model.errors import DamagedRow, InvalidArgument
from sidecar.model.run import ExecutionMetadata
from sidecar.model.schedule import (
    CatchUp,
    CatchUpPolicy,
    SkipReason,
    TickPlan,
    Timing,
    plan,
    timing_of,
)

Source = Literal["config", "api", "code"]
SOURCES: tuple[Source, ...] = get_args(Source)
PAUSED_LOOK = timedelta(
    minutes=10
)  # how often the skipped ticks of a pause are recorded, in one row


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """One row; every change except the claim of ticks changes `version`."""

    definition: Schedule
    source: Source
    watermark: datetime
    next_tick: datetime | None = None
    next_due_at: datetime | None = None
    paused: bool = False
    pause_note: str = ""
    retired_at: datetime | None = None
    id: int = 0
    version: int = 0
    created_at: datetime | None = None
    changed_at: datetime | None = None
    counted_from: datetime | None = None
    heartbeat_at: datetime | None = None
    metadata: ExecutionMetadata = field(default_factory=ExecutionMetadata)
    damage: str = ""  # why the stored definition cannot be read; `definition` then differs

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def idle(self) -> bool:
        """Whether its ticks are skipped as paused."""
        return self.paused or not self.definition.enabled


@dataclass(frozen=True, slots=True)
class Change:
    """The row to write, and the ticks that get a skipped row in the same transaction."""

    after: StoredSchedule
    skipped: TickPlan | None = None
    recount: bool = False  # staleness counts from this change
    retire: bool = False


@dataclass(frozen=True, slots=True)
class ConfigLoad:
    """What a runner's file, or its app's code, declares. `anew`: it has just changed, so it is the
    newest."""

    source: Source
    digest: str
    revision: int
    names: tuple[str, ...]
    anew: bool = False
    abandoned: datetime | None = None  # `seen_at` of a newer file that no runner has any more


def policy_of(definition: Schedule) -> CatchUpPolicy:
    return CatchUpPolicy(
        timedelta(seconds=definition.skip_if_older_than_seconds),
        CatchUp(definition.catch_up),
        definition.catch_up_max,
    )


def placed(stored: StoredSchedule, timing: Timing, now: datetime) -> StoredSchedule:
    """The schedule with its next tick, and with the time at which the leader must check it."""
    tick = timing.next_tick(stored.watermark)
    due_at = tick
    if tick is not None and stored.idle:
        due_at = max(tick, now + PAUSED_LOOK)
    return replace(stored, next_tick=tick, next_due_at=due_at)


def created(definition: Schedule, source: Source, cluster: str, now: datetime) -> Change:
    """Create a schedule; its first tick is after `now`."""
    stored = StoredSchedule(definition, source, watermark=now)
    return Change(placed(stored, timing_of(definition, cluster), now), recount=True)


def updated(stored: StoredSchedule, definition: Schedule, cluster: str, now: datetime) -> Change:
    """Replace the definition. A changed timing moves the watermark to `now`; a pause is kept."""
    before, after = _readable_timing(stored, cluster), timing_of(definition, cluster)
    changed = replace(stored, definition=definition, retired_at=None, damage="")
    if before == after and stored.definition.enabled == definition.enabled:
        return Change(placed(changed, after, now), recount=stored.retired_at is not None)
    if before == after:
        return _pause_accounted(stored, changed, cluster, now)
    return _watermark_moved(stored, changed, cluster, now, _skip_reason(stored))


def paused(stored: StoredSchedule, note: str, cluster: str, now: datetime) -> Change:
    """Pause the schedule. The leader later skips as paused the ticks that are already due."""
    after = replace(stored, paused=True, pause_note=note)
    return Change(placed(after, stored_timing(stored, cluster), now))


def resumed(stored: StoredSchedule, cluster: str, now: datetime) -> Change:
    """Resume the schedule; raise DamagedRow if its timing cannot be read."""
    stored_timing(stored, cluster)
    after = replace(stored, paused=False, pause_note="")
    return _pause_accounted(stored, after, cluster, now)


def retired(stored: StoredSchedule, cluster: str, now: datetime) -> Change:
    """End the schedule; due ticks and runs that have not begun are skipped."""
    skipped = _ticks_to_skip(stored, cluster, now, _skip_reason(stored))
    watermark = max(now, stored.watermark)
    after = replace(stored, watermark=watermark, next_tick=None, next_due_at=None)
    return Change(after, skipped, retire=True)


def stored_timing(stored: StoredSchedule, cluster: str) -> Timing:
    """The timing of a row; raise DamagedRow if it is invalid."""
    if stored.damage:
        raise DamagedRow(stored.damage)
    try:
        return timing_of(stored.definition, cluster)
    except InvalidArgument as error:
        raise DamagedRow(f"stored schedule {stored.name!r}: {error}") from None


def _readable_timing(stored: StoredSchedule, cluster: str) -> Timing | None:
    try:
        return stored_timing(stored, cluster)
    except DamagedRow:
        return None


def _skip_reason(stored: StoredSchedule) -> SkipReason:
    """Why an operator's change skips due ticks: `paused` if they would not have run anyway."""
    return SkipReason.PAUSED if stored.idle else SkipReason.OPERATOR


def _pause_accounted(
    stored: StoredSchedule, after: StoredSchedule, cluster: str, now: datetime
) -> Change:
    """Skip the ticks of a pause that ends with this change; all other ticks stay due."""
    if stored.idle and not after.idle:
        return _watermark_moved(stored, after, cluster, now, SkipReason.PAUSED)
    return Change(placed(after, timing_of(after.definition, cluster), now), recount=not after.idle)


def _watermark_moved(
    stored: StoredSchedule,
    after: StoredSchedule,
    cluster: str,
    now: datetime,
    reason: SkipReason,
) -> Change:
    """Move the watermark to `now`, with one skipped row for the ticks before it."""
    skipped = _ticks_to_skip(stored, cluster, now, reason)
    moved = replace(after, watermark=max(now, stored.watermark))
    return Change(placed(moved, timing_of(after.definition, cluster), now), skipped, recount=True)


def _ticks_to_skip(
    stored: StoredSchedule, cluster: str, now: datetime, reason: SkipReason
) -> TickPlan | None:
    timing = _readable_timing(stored, cluster)
    if timing is None or stored.retired_at is not None:
        return None
    steps = plan(
        timing, policy_of(stored.definition), watermark=stored.watermark, now=now, paused=True
    ).steps
    return replace(steps[0], reason=reason) if steps else None


@dataclass(frozen=True, slots=True)
class DueTicks:
    """Decisions for the due ticks of one schedule, valid only while its row equals `before`."""

    before: StoredSchedule
    after: StoredSchedule
    steps: tuple[TickPlan, ...]
    starts: tuple[datetime, ...]  # per step, the due time of its run: the tick plus its jitter

    @property
    def due_at(self) -> datetime:
        """The newest decided tick; the decisions must not be written before that database time."""
        return self.after.watermark

    @property
    def missed(self) -> int:
        missed = (SkipReason.MISFIRE, SkipReason.COALESCED)
        return sum(step.count for step in self.steps if step.reason in missed)


def due_ticks(
    stored: StoredSchedule, timing: Timing, now: datetime, ahead: DueTicks | None = None
) -> DueTicks | None:
    """Decide the ticks due at `now`; None if there are none. `ahead` is from `decide_ahead`."""
    ahead = ahead or decide_ahead(stored, timing)
    if ahead and _is_on_time(ahead, now):
        return ahead
    decided = plan(
        timing,
        policy_of(stored.definition),
        watermark=stored.watermark,
        now=now,
        paused=stored.idle,
    )
    if not decided.steps:
        return None
    starts = tuple(
        timing.dispatch_at(step.first) if step.runs else step.first for step in decided.steps
    )
    after = placed(replace(stored, watermark=decided.watermark), timing, now)
    return DueTicks(stored, after, decided.steps, starts)


def decide_ahead(stored: StoredSchedule, timing: Timing) -> DueTicks | None:
    """The result of `due_ticks` if it is called on time, computed before the tick is due.

    Nearly all ticks are on time, so their claim needs no search for missed ticks.
    """
    tick = stored.next_tick
    if tick is None or stored.idle:
        return None
    following = timing.next_tick(tick)
    after = replace(stored, watermark=tick, next_tick=following, next_due_at=following)
    return DueTicks(stored, after, (TickPlan(tick, tick, 1, None),), (timing.dispatch_at(tick),))


def _is_on_time(ahead: DueTicks, now: datetime) -> bool:
    """Whether exactly the expected tick is due, and it is not too old."""
    tick, following = ahead.due_at, ahead.after.next_tick
    age_max = policy_of(ahead.before.definition).age_max
    return now - age_max <= tick <= now and (following is None or now < following)


@dataclass(frozen=True, slots=True)
class ClaimedTicks:
    """The ids of the schedules whose watermark moved, and the counts of the rows written."""

    now: datetime
    moved: frozenset[int]
    skipped: tuple[tuple[SkipReason, int], ...]
    queued: int
