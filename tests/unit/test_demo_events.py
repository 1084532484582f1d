"""What the demo tells: each change once, in words, and nothing twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.cli.demo.events import happened, lateness
from sidecar.cli.demo.words import Run, Seat, Snapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DUE = datetime(2026, 1, 2, 3, 4, 4, tzinfo=UTC)
EMPTY = Snapshot(NOW)
RUN = Run(7, "schedule", "report", DUE, "running", attempt=1, pod="pod-1", epoch=3, started_at=DUE)


def told(before: Run | None, after: Run) -> list[str]:
    """The lines for one run, seen before and after."""
    first = replace(EMPTY, runs=(before,)) if before else EMPTY
    return [line.text for line in happened(first, replace(EMPTY, runs=(after,)))]


def ended(outcome: str, **changes: object) -> Run:
    return replace(RUN, state="ended", outcome=outcome, **changes)  # type: ignore[arg-type]


def test_a_run_is_told_once() -> None:
    done = ended("succeeded", started_at=DUE + timedelta(milliseconds=12))
    assert told(None, done) == ["report 03:04:04 succeeded on pod-1, 12 ms late"]
    assert told(RUN, done) == told(None, done)
    assert told(done, done) == []
    assert told(None, RUN) == []


def test_a_late_tick_is_told_as_not_lost() -> None:
    done = ended("succeeded", started_at=DUE + timedelta(seconds=4.06))
    assert told(None, done) == ["report 03:04:04 succeeded on pod-1, 4.1 s late: not lost"]


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
    assert told(replace(run, state="running", outcome=""), run) == [text]


def test_each_failed_attempt_is_told_with_its_wait() -> None:
    waiting = replace(
        RUN, state="waiting", error="busy", next_attempt_at=NOW + timedelta(seconds=1.5)
    )
    assert told(RUN, waiting) == ["report 03:04:04 attempt 1 failed, again in 1.5 s: busy"]
    assert told(waiting, waiting) == []
    second = replace(waiting, state="running", attempt=2, next_attempt_at=None)
    assert told(waiting, second) == []  # its failure is not known yet
    third = replace(second, attempt=3)
    assert told(second, third) == ["report 03:04:04 attempt 2 failed: busy"]


def test_a_failure_that_is_final_is_told_with_its_error() -> None:
    lines = told(RUN, ended("failed", error="no \x1b[2J way"))
    assert lines[-1].startswith("report 03:04:04 failed for good: no ")
    assert "\x1b" not in "".join(lines)


def test_a_delivery_in_a_new_term_is_no_failure() -> None:
    """G5: the same run, a higher attempt, another pod."""
    again = replace(RUN, attempt=2, epoch=4, pod="pod-2")
    assert told(RUN, again) == ["report 03:04:04 delivered again on pod-2, attempt 2"]


def test_steps_of_an_order() -> None:
    order = replace(RUN, kind="trigger", name="order-flow")
    charged = replace(order, step="charge", progress=0.4)
    assert told(order, charged) == ["order-flow #7 charge done on pod-1 (2/5)"]
    assert told(charged, charged) == []


def test_singletons_are_told_by_their_counter() -> None:
    assert told(None, ended("succeeded", kind="singleton")) == []
    first = replace(EMPTY, count=1, counted_on="pod-1")
    after = replace(EMPTY, count=8, counted_on="pod-2")
    assert [line.text for line in happened(EMPTY, first)] == ["coordinator counts on pod-1"]
    assert happened(first, replace(first, count=7)) == []
    (line,) = happened(replace(first, count=7), after)
    assert line.text == "coordinator goes on at 8 on pod-2, after 7 on pod-1"


def test_a_change_of_leader_is_told_at_its_own_time() -> None:
    then = NOW - timedelta(seconds=1)
    vacant = replace(EMPTY, seats={"default": Seat("default", "", 3)})
    taken = replace(EMPTY, seats={"default": Seat("default", "pod-2", 4, then)})
    (line,) = happened(vacant, taken)
    assert (line.at, line.text) == (then, "pod-2 leads default, epoch 4")
    assert happened(taken, taken) == []
    assert happened(taken, vacant) == []


def test_lateness_in_the_unit_that_fits() -> None:
    assert [lateness(s) for s in (0, 0.0124, 1, 4.06)] == [
        "0 ms late",
        "12 ms late",
        "1.0 s late",
        "4.1 s late",
    ]
