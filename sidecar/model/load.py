"""How many ticks the schedules of a group declare, against what one leader was measured to run."""

from collections.abc import Iterable

from sidecar.model.cron_fields import CronError, parse_fields
from sidecar.model.definitions import Schedule

# docs/operations.md says how it was measured.
SUSTAINABLE_TICKS_PER_SECOND = 300.0


def cron_ticks_per_second(expression: str) -> float:
    """In its busiest hour; 0 if it cannot be read."""
    try:
        fields = parse_fields(expression, "")
    except CronError:
        return 0.0
    return fields.seconds.bit_count() * fields.minutes.bit_count() / 3600


def ticks_per_second(schedule: Schedule) -> float:
    """In its busiest hour; 0 if it is disabled or ticks once."""
    if not schedule.enabled:
        return 0.0
    if schedule.every_seconds:
        return 1 / schedule.every_seconds
    return cron_ticks_per_second(schedule.cron) if schedule.cron else 0.0


def overload_warning(group: str, declared: float) -> str:
    """Empty unless so many ticks per second are more than a leader sustains."""
    if declared <= SUSTAINABLE_TICKS_PER_SECOND:
        return ""
    return (
        f"group {group}: its schedules declare {declared:.0f} ticks per second, and one leader was"
        f" measured to sustain {SUSTAINABLE_TICKS_PER_SECOND:.0f}: ticks will be late."
        " Use longer intervals, or spread them over more groups"
    )


def overload_warnings(schedules: Iterable[Schedule]) -> list[str]:
    """One for each group that declares too much."""
    declared: dict[str, float] = {}
    for schedule in schedules:
        declared[schedule.group] = declared.get(schedule.group, 0.0) + ticks_per_second(schedule)
    return [
        text for group in sorted(declared) if (text := overload_warning(group, declared[group]))
    ]
