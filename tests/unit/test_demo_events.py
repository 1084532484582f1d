"""The events of the demo: each change is reported once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from devtools.demo.events import events_between, lateness
from devtools.demo.model import GroupLeader, Run, Snapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DUE = datetime(2026, 1, 2, 3, 4, 4, tzinfo=UTC)
EMPTY = Snapshot(NOW)
RUN = Run(7, "schedule", "report", DUE, "running", attempt=1, pod="pod-1", epoch=3, started_at=DUE)


def texts(before: Run | None, after: Run) -> list[str]:
    """The texts of the events of one run between two snapshots."""
    first = replace(EMPTY, runs=(before,)) if before else EMPTY
    return [event.text for event in events_between(first, replace(EMPTY, runs=(after,)))]


def ended(outcome: str, **changes: object) -> Run:
    return replace(RUN, state="ended", outcome=outcome, **changes)  # type: ignore[arg-type]


def test_a_finished_run_is_reported_once() -> None:
    done = ended("succeeded", started_at=DUE + timedelta(milliseconds=12))
    assert texts(None, done) == ["report 03:04:04 succeeded on pod-1, 12 ms late"]
    assert texts(RUN, done) == texts(None, done)
    assert texts(done, done) == []
    assert texts(None, RUN) == []


def test_a_late_tick_is_reported_as_not_lost() -> None:
    done = ended("succeeded", started_at=DUE + timedelta(seconds=4.06))
    assert texts(None, done) == ["report 03:04:04 succeeded on pod-1, 4.1 s late, but not lost"]


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            ended("skipped", reason="coalesced", ticks=3),
            "report 03:04:04 3 ticks skipped: coalesced",
        ),
        (ended("skipped", reason="paused"), "report 03:04:04 tick skipped: paused"),
        (
            ended("succeeded", kind="trigger", attempt=2),
            "report #7 succeeded on pod-1 at attempt 2",
        ),
    ],
)
def test_the_end_of_a_run(run: Run, text: str) -> None:
    assert texts(replace(run, state="running", outcome=""), run) == [text]


def test_each_failed_attempt_is_reported_with_its_wait() -> None:
    waiting = replace(
        RUN, state="waiting", error="busy", next_attempt_at=NOW + timedelta(seconds=1.5)
    )
    assert texts(RUN, waiting) == ["report 03:04:04 attempt 1 failed, retry in 1.5 s: busy"]
    assert texts(waiting, waiting) == []
    second = replace(waiting, state="running", attempt=2, next_attempt_at=None)
    assert texts(waiting, second) == []  # its failure is not known yet
    third = replace(second, attempt=3)
    assert texts(second, third) == ["report 03:04:04 attempt 2 failed: busy"]


def test_a_permanent_failure_is_reported_with_its_error() -> None:
    lines = texts(RUN, ended("failed", error="no \x1b[2J way"))
    assert lines[-1].startswith("report 03:04:04 failed permanently: no ")
    assert "\x1b" not in "".join(lines)


def test_a_delivery_in_a_new_term_is_no_failure() -> None:
    """G5: the same run, a higher attempt, another pod."""
    again = replace(RUN, attempt=2, epoch=4, pod="pod-2")
    assert texts(RUN, again) == ["report 03:04:04 redelivered to pod-2, attempt 2"]


def test_steps_of_an_order() -> None:
    order = replace(RUN, kind="trigger", name="order-flow")
    charged = replace(order, step="charge", progress=0.4)
    assert texts(order, charged) == ["order-flow #7 charge done on pod-1 (2/5)"]
    assert texts(charged, charged) == []


def test_singletons_are_reported_by_their_counter() -> None:
    assert texts(None, ended("succeeded", kind="singleton")) == []
    first = replace(EMPTY, count=1, counted_on="pod-1")
    after = replace(EMPTY, count=8, counted_on="pod-2")
    assert [event.text for event in events_between(EMPTY, first)] == [
        "coordinator is counting on pod-1"
    ]
    assert events_between(first, replace(first, count=7)) == []
    (event,) = events_between(replace(first, count=7), after)
    assert event.text == "coordinator resumed at 8 on pod-2, after 7 on pod-1"


def test_a_change_of_leader_is_reported_with_its_own_time() -> None:
    then = NOW - timedelta(seconds=1)
    vacant = replace(EMPTY, leaders={"default": GroupLeader("default", "", 3)})
    taken = replace(EMPTY, leaders={"default": GroupLeader("default", "pod-2", 4, then)})
    (event,) = events_between(vacant, taken)
    assert (event.at, event.text) == (then, "pod-2 leads default, epoch 4")
    assert events_between(taken, taken) == []
    assert events_between(taken, vacant) == []


def test_lateness_in_the_unit_that_fits() -> None:
    assert [lateness(s) for s in (0, 0.0124, 1, 4.06)] == [
        "0 ms late",
        "12 ms late",
        "1.0 s late",
        "4.1 s late",
    ]
