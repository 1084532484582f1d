"""A schedule as it is stored, and how each operation changes it. Pure: time is an argument.

Guarantees (G4): the watermark never moves past a tick that has no row. Whoever moves it without
running the ticks (a resume, a new timing, a retirement) leaves one skipped row for them. Retiring
keeps the watermark at the retirement, so that a schedule that comes back makes good what it missed,
as its `catch_up` says. What is stored may be damaged, or unknown to this release, such as a zone:
then it can still be replaced or retired, and the ticks it would have had, which nobody can name,
are nobody's.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Generic, Literal, Protocol, TypeVar

from sidecar.model.errors import DamagedRow, InvalidArgument
from sidecar.model.run import ExecutionMetadata
from sidecar.model.schedule import (
    CatchUp,
    CatchUpPolicy,
    SkipReason,
    TickPlan,
    Timing,
    TimingSettings,
    plan,
    timing_of,
)

Source = Literal["config", "api"]
PAUSED_LOOK = timedelta(minutes=10)  # the ticks of a pause are written down this often, in one row


class Definition(TimingSettings, Protocol):
    """What the rules here need to know of a schedule's settings."""

    @property
    def group(self) -> str: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def skip_if_older_than_seconds(self) -> float: ...
    @property
    def catch_up(self) -> str: ...
    @property
    def catch_up_max(self) -> int: ...


D = TypeVar("D", bound=Definition)


@dataclass(frozen=True, slots=True)
class StoredSchedule(Generic[D]):
    """One row; `version` changes with everything but the claim of ticks."""

    definition: D
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
    damage: str = ""  # why the definition is not the stored one, which cannot be read

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def idle(self) -> bool:
        """Its ticks are skipped as paused."""
        return self.paused or not self.definition.enabled


@dataclass(frozen=True, slots=True)
class Change(Generic[D]):
    """The row to write, and the ticks that get a skipped row in the same transaction."""

    after: StoredSchedule[D]
    skipped: TickPlan | None = None
    recount: bool = False  # staleness counts from now
    retire: bool = False


@dataclass(frozen=True, slots=True)
class ConfigLoad:
    """A file that a runner has. `anew`: it was changed to this just now, so it is the newest."""

    digest: str
    revision: int
    names: tuple[str, ...]
    anew: bool = False
    abandoned: datetime | None = None  # the file whose last sign of life was then is nobody's


def policy_of(definition: Definition) -> CatchUpPolicy:
    return CatchUpPolicy(
        timedelta(seconds=definition.skip_if_older_than_seconds),
        CatchUp(definition.catch_up),
        definition.catch_up_max,
    )


def placed(stored: StoredSchedule[D], timing: Timing, now: datetime) -> StoredSchedule[D]:
    """With its next tick, and when the leader has to look at it."""
    tick = timing.next_tick(stored.watermark)
    due_at = tick
    if tick is not None and stored.idle:
        due_at = max(tick, now + PAUSED_LOOK)
    return replace(stored, next_tick=tick, next_due_at=due_at)


def created(definition: D, source: Source, cluster: str, now: datetime) -> Change[D]:
    """A new schedule: ticks count from now on."""
    stored = StoredSchedule(definition, source, watermark=now)
    return Change(placed(stored, timing_of(definition, cluster), now), recount=True)


def updated(stored: StoredSchedule[D], definition: D, cluster: str, now: datetime) -> Change[D]:
    """Another definition. A changed timing moves the watermark to now; a pause is kept."""
    before, after = _readable_timing(stored, cluster), timing_of(definition, cluster)
    changed = replace(stored, definition=definition, retired_at=None, damage="")
    if before == after and stored.definition.enabled == definition.enabled:
        return Change(placed(changed, after, now), recount=stored.retired_at is not None)
    if before == after:
        return _accounted(stored, changed, cluster, now)
    return _closed(stored, changed, cluster, now, _passed_over_as(stored))


def paused(stored: StoredSchedule[D], note: str, cluster: str, now: datetime) -> Change[D]:
    """What is due already was due before the pause: the leader still decides it, as paused."""
    after = replace(stored, paused=True, pause_note=note)
    return Change(placed(after, stored_timing(stored, cluster), now))


def resumed(stored: StoredSchedule[D], cluster: str, now: datetime) -> Change[D]:
    stored_timing(stored, cluster)  # a damaged one is not resumed
    after = replace(stored, paused=False, pause_note="")
    return _accounted(stored, after, cluster, now)


def retired(stored: StoredSchedule[D], cluster: str, now: datetime) -> Change[D]:
    """No more ticks; what was due and not begun is skipped."""
    skipped = _passed(stored, cluster, now, _passed_over_as(stored))
    watermark = max(now, stored.watermark)
    after = replace(stored, watermark=watermark, next_tick=None, next_due_at=None)
    return Change(after, skipped, retire=True)


def stored_timing(stored: StoredSchedule[D], cluster: str) -> Timing:
    """The timing of a row; DamagedRow where it makes none."""
    if stored.damage:
        raise DamagedRow(stored.damage)
    try:
        return timing_of(stored.definition, cluster)
    except InvalidArgument as error:
        raise DamagedRow(f"schedule {stored.name!r} as it is stored: {error}") from None


def _readable_timing(stored: StoredSchedule[D], cluster: str) -> Timing | None:
    try:
        return stored_timing(stored, cluster)
    except DamagedRow:
        return None


def _passed_over_as(stored: StoredSchedule[D]) -> SkipReason:
    """What an operator's change does to due ticks; those of a pause would not have run anyway."""
    return SkipReason.PAUSED if stored.idle else SkipReason.OPERATOR


def _accounted(
    stored: StoredSchedule[D], after: StoredSchedule[D], cluster: str, now: datetime
) -> Change[D]:
    """The ticks of a pause that ends here are skipped as paused; those of no pause stay due."""
    if stored.idle and not after.idle:
        return _closed(stored, after, cluster, now, SkipReason.PAUSED)
    return Change(placed(after, timing_of(after.definition, cluster), now), recount=not after.idle)


def _closed(
    stored: StoredSchedule[D],
    after: StoredSchedule[D],
    cluster: str,
    now: datetime,
    reason: SkipReason,
) -> Change[D]:
    """Move the watermark to now; the ticks passed over share one skipped row."""
    skipped = _passed(stored, cluster, now, reason)
    moved = replace(after, watermark=max(now, stored.watermark))
    return Change(placed(moved, timing_of(after.definition, cluster), now), skipped, recount=True)


def _passed(
    stored: StoredSchedule[D], cluster: str, now: datetime, reason: SkipReason
) -> TickPlan | None:
    timing = _readable_timing(stored, cluster)
    if timing is None or stored.retired_at is not None:
        return None
    steps = plan(
        timing, policy_of(stored.definition), watermark=stored.watermark, now=now, paused=True
    ).steps
    return replace(steps[0], reason=reason) if steps else None


@dataclass(frozen=True, slots=True)
class DueTicks(Generic[D]):
    """The due ticks of one schedule, decided: written only if it still is as `before`."""

    before: StoredSchedule[D]
    after: StoredSchedule[D]
    steps: tuple[TickPlan, ...]
    starts: tuple[datetime, ...]  # of each step, when its run is due: the tick, later by its jitter

    @property
    def due_at(self) -> datetime:
        """The newest tick decided: none of this counts before the database's clock shows it."""
        return self.after.watermark

    @property
    def missed(self) -> int:
        missed = (SkipReason.MISFIRE, SkipReason.COALESCED)
        return sum(step.count for step in self.steps if step.reason in missed)


def due_ticks(
    stored: StoredSchedule[D], timing: Timing, now: datetime, ahead: DueTicks[D] | None = None
) -> DueTicks[D] | None:
    """Decide what is due now; None if nothing is. `ahead` is what `decide_ahead` made of it."""
    ahead = ahead or decide_ahead(stored, timing)
    if ahead and _is_punctual(ahead, now):
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


def decide_ahead(stored: StoredSchedule[D], timing: Timing) -> DueTicks[D] | None:
    """What `due_ticks` decides if it is asked in time, which is nearly always: no search."""
    tick = stored.next_tick
    if tick is None or stored.idle:
        return None
    following = timing.next_tick(tick)
    after = replace(stored, watermark=tick, next_tick=following, next_due_at=following)
    return DueTicks(stored, after, (TickPlan(tick, tick, 1, None),), (timing.dispatch_at(tick),))


def _is_punctual(ahead: DueTicks[D], now: datetime) -> bool:
    """The one tick that was waited for is due, is not too old, and no other is due yet."""
    tick, following = ahead.due_at, ahead.after.next_tick
    age_max = policy_of(ahead.before.definition).age_max
    return now - age_max <= tick <= now and (following is None or now < following)


@dataclass(frozen=True, slots=True)
class ClaimedTicks:
    """Which schedules moved on, by id, and the steps that got their rows."""

    now: datetime
    moved: frozenset[int]
    skipped: tuple[tuple[SkipReason, int], ...]
    queued: int
