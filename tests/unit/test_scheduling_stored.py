"""How operations change a stored schedule: no tick is lost, none is decided twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.definitions import Schedule
from sidecar.model.schedule import SkipReason, TickPlan, plan, timing_of
from sidecar.model.stored_schedule import (
    PAUSED_LOOK,
    Change,
    StoredSchedule,
    created,
    due_ticks,
    paused,
    policy_of,
    resumed,
    retired,
    updated,
)

T0 = datetime(2026, 5, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MINUTELY = Schedule(name="m", every_seconds=60.0)
OPERATIONS = ("claim", "pause", "resume", "disable", "enable", "payload", "retire", "revive")


class Story:
    """One schedule through a row of operations; remembers which ticks were decided how."""

    def __init__(self, definition: Schedule) -> None:
        self.now = T0
        self.stored: StoredSchedule = created(definition, "api", "c", T0).after
        self.decided: list[TickPlan] = []

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def apply(self, change: Change) -> None:
        self.stored = change.after
        if change.retire:
            self.stored = replace(self.stored, retired_at=self.now)
        if change.skipped:
            self.decided.append(change.skipped)

    def claim(self) -> None:
        timing = timing_of(self.stored.definition, "c")
        if self.stored.retired_at is None and (due := due_ticks(self.stored, timing, self.now)):
            assert due.due_at <= self.now
            self.stored = due.after
            self.decided.extend(due.steps)

    def operate(self, operation: str) -> None:
        stored, definition = self.stored, self.stored.definition
        if operation == "claim":
            self.claim()
        elif operation == "revive":
            self.apply(updated(stored, definition, "c", self.now))
        elif stored.retired_at is not None:
            return
        elif operation == "pause":
            self.apply(paused(stored, "note", "c", self.now))
        elif operation == "resume":
            self.apply(resumed(stored, "c", self.now))
        elif operation == "retire":
            self.apply(retired(stored, "c", self.now))
        else:
            changed = {
                "disable": replace(definition, enabled=False),
                "enable": replace(definition, enabled=True),
                "payload": replace(definition, payload=definition.payload + b"x"),
            }[operation]
            self.apply(updated(stored, changed, "c", self.now))

    def ticks(self) -> list[datetime]:
        return [step.first + n * MINUTE for step in self.decided for n in range(step.count)]


@given(
    steps=st.lists(st.tuples(st.floats(0, 400), st.sampled_from(OPERATIONS)), max_size=30),
    catch_up=st.sampled_from(["latest", "all", "none"]),
)
def test_every_tick_is_decided_once_whatever_is_done(
    steps: list[tuple[float, str]], catch_up: str
) -> None:
    """G4, over every order of operations."""
    story = Story(replace(MINUTELY, catch_up=catch_up))  # type: ignore[arg-type]
    for seconds, operation in steps:
        story.pass_time(seconds)
        story.operate(operation)
    story.operate("revive")
    story.operate("resume")
    story.operate("enable")
    story.claim()
    story.claim()
    expected = [T0 + n * MINUTE for n in range(1, int((story.now - T0) / MINUTE) + 1)]
    assert story.ticks() == expected


def test_a_pause_skips_and_a_resume_counts_from_now() -> None:
    story = Story(MINUTELY)
    story.operate("pause")
    story.pass_time(150)
    story.operate("resume")
    (skipped,) = story.decided
    assert (skipped.count, skipped.reason) == (2, SkipReason.PAUSED)
    assert story.stored.next_tick == T0 + 3 * MINUTE
    assert story.stored.next_due_at == T0 + 3 * MINUTE


def test_a_paused_schedule_is_looked_at_rarely() -> None:
    change = paused(created(MINUTELY, "api", "c", T0).after, "", "c", T0)
    assert change.after.next_due_at == T0 + PAUSED_LOOK


def test_a_new_timing_closes_the_old_one() -> None:
    stored = created(MINUTELY, "api", "c", T0).after
    change = updated(stored, replace(MINUTELY, every_seconds=3600.0), "c", T0 + 5 * MINUTE)
    assert change.skipped is not None
    assert (change.skipped.count, change.skipped.reason) == (5, SkipReason.OPERATOR)
    assert change.after.watermark == T0 + 5 * MINUTE
    assert change.recount


@pytest.mark.parametrize(
    "idle", [{"paused": True}, {"definition": replace(MINUTELY, enabled=False)}]
)
def test_a_new_timing_in_a_pause_leaves_its_ticks_paused(idle: dict[str, Any]) -> None:
    """G4: with the reason that is true, also where the new timing ends the pause."""
    stored = replace(created(MINUTELY, "api", "c", T0).after, **idle)
    change = updated(stored, replace(MINUTELY, every_seconds=3600.0), "c", T0 + 5 * MINUTE)
    assert change.skipped is not None
    assert (change.skipped.count, change.skipped.reason) == (5, SkipReason.PAUSED)


def test_jitter_moves_the_start_and_not_the_tick() -> None:
    definition = replace(MINUTELY, jitter_seconds=30.0)
    stored = created(definition, "api", "c", T0).after
    due = due_ticks(stored, timing_of(definition, "c"), T0 + MINUTE)
    assert due is not None
    (step,) = due.steps
    assert step.first == T0 + MINUTE
    assert T0 + MINUTE < due.starts[0] < T0 + 1.5 * MINUTE


@given(
    definition=st.sampled_from(
        [
            MINUTELY,
            Schedule(name="m", every_seconds=60.0, catch_up="none"),
            Schedule(name="m", every_seconds=60.0, catch_up="all", jitter_seconds=30.0),
            Schedule(name="m", every_seconds=60.0, skip_if_older_than_seconds=5.0),
            Schedule(name="m", cron="*/7 * * * *", timezone="Europe/Berlin"),
            Schedule(name="m", at=T0 + MINUTE),
            Schedule(name="m", every_seconds=60.0, end_at=T0 + 2 * MINUTE),
        ]
    ),
    seconds=st.floats(0, 600) | st.sampled_from([59.0, 60.0, 65.0, 70.0, 119.0, 120.0]),
)
def test_the_short_way_decides_as_the_plan_does(definition: Schedule, seconds: float) -> None:
    """One tick that is due on time is decided without a search; nobody can tell the difference."""
    stored, timing = created(definition, "api", "c", T0).after, timing_of(definition, "c")
    now = T0 + timedelta(seconds=seconds)
    due = due_ticks(stored, timing, now)
    decided = plan(timing, policy_of(definition), watermark=T0, now=now)
    assert (due.steps if due else ()) == decided.steps
    if due:
        assert due.after.watermark == decided.watermark
        assert due.after.next_tick == due.after.next_due_at == timing.next_tick(decided.watermark)
        assert due.starts == tuple(
            timing.dispatch_at(step.first) if step.runs else step.first for step in due.steps
        )
