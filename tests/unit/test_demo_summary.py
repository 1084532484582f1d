"""The results of the demo: every tick is counted, every failed check is named."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devtools import demo
from devtools.demo import options_problem
from devtools.demo.model import ORDER_STEPS, Jobs, Run, Takeover
from devtools.demo.scenario import Timing, steps_performed
from devtools.demo.summary import Orders, Results, Ticks, count_ticks, failed_checks, summary

START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(seconds=2)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tick(seconds: float, outcome: str = "succeeded", **more: object) -> Run:
    state = "ended" if outcome else "waiting"
    return Run(1, "schedule", "report", at(seconds), state, outcome=outcome, **more)  # type: ignore[arg-type]


def counted(*runs: Run, until: float = 6) -> Ticks:
    return count_ticks(runs, every=EVERY, after=at(0), until=at(until))


def test_every_tick_after_the_creation_and_up_to_now_is_expected() -> None:
    """G4: the tick at the creation is not due; the one at the end is."""
    ticks = counted(tick(2), tick(4), tick(6))
    assert (ticks.expected, ticks.succeeded, ticks.lost) == (3, 3, 0)


def test_a_tick_without_a_row_is_lost() -> None:
    ticks = counted(tick(2), tick(6))
    assert (ticks.expected, ticks.lost) == (3, 1)


def test_one_row_may_represent_several_skipped_ticks() -> None:
    skipped = tick(2, "skipped", reason="coalesced", ticks=2, last_scheduled_at=at(4))
    ticks = counted(skipped, tick(6, started_at=at(9)))
    assert (ticks.skipped, ticks.succeeded, ticks.lost) == ({"coalesced": 2}, 1, 0)
    assert ticks.max_late_seconds == 3


def test_triggers_and_ticks_not_yet_due_do_not_count() -> None:
    trigger = replace(tick(4), kind="trigger")
    ticks = counted(tick(2), trigger, tick(8), tick(6, ""), until=7)
    assert (ticks.expected, ticks.succeeded, ticks.unfinished, ticks.lost) == (3, 1, 1, 1)


GOOD = Results(
    takeovers=[
        Takeover("crash", "default", "pod-1", "pod-2", 4.0),
        Takeover("hand-over", "default", "pod-2", "pod-3", 0.1),
    ],
    ticks=Ticks(expected=3, succeeded=3, max_late_seconds=4.0),
    counts=[5, 6, 20],
    orders=Orders(steps={9: Counter(ORDER_STEPS)}, moved=1),
    retried=1,
    jobs=Jobs(submitted=40, succeeded=40, rescued=2, pods=("pod-1", "pod-2")),
)


def test_no_check_fails_when_all_went_well() -> None:
    assert failed_checks(GOOD) == []
    text = "\n".join(summary(GOOD))
    assert "3 ticks expected: 3 succeeded, 0 skipped, 0 lost" in text
    assert "5 -> 6 -> 20" in text
    assert "each step performed once" in text
    assert "40 jobs: 40 succeeded on 2 pods, 2 rescued from the crash, 0 lost" in text
    assert max(len(line) for line in summary(GOOD)) <= 78


@pytest.mark.parametrize(
    ("results", "complaint"),
    [
        (replace(GOOD, takeovers=GOOD.takeovers[:1]), "no takeover after the hand-over"),
        (replace(GOOD, takeovers=GOOD.takeovers[1:]), "no takeover after the crash"),
        (replace(GOOD, ticks=replace(GOOD.ticks, lost=2)), "2 ticks of report were lost"),
        (replace(GOOD, ticks=replace(GOOD.ticks, unfinished=1)), "1 ticks of report have no"),
        (replace(GOOD, ticks=replace(GOOD.ticks, failed=1)), "1 ticks of report failed"),
        (replace(GOOD, counts=[5, 5, 20]), "did not keep counting: 5 -> 5 -> 20"),
        (replace(GOOD, orders=Orders()), "no order was finished"),
        (replace(GOOD, orders=replace(GOOD.orders, unfinished=1)), "1 orders were not finished"),
        (replace(GOOD, retried=0), "no run of flaky succeeded after a failed attempt"),
        (replace(GOOD, jobs=Jobs()), "no job was submitted"),
        (replace(GOOD, jobs=replace(GOOD.jobs, succeeded=39)), "1 jobs were not finished"),
    ],
)
def test_each_failed_check_is_named(results: Results, complaint: str) -> None:
    (problem,) = failed_checks(results)
    assert complaint in problem


def test_results_are_finished_once_waiting_cannot_improve_them() -> None:
    assert GOOD.finished
    assert not replace(GOOD, retried=0).finished
    assert not replace(GOOD, orders=Orders(unfinished=1)).finished
    for ticks in (Ticks(lost=1), Ticks(unfinished=1)):
        assert not replace(GOOD, ticks=ticks).finished


def test_a_step_performed_twice_is_a_failed_check() -> None:
    twice = Counter(ORDER_STEPS) + Counter(["charge"])
    results = replace(GOOD, orders=Orders(steps={9: twice}))
    assert "'charge': 2" in failed_checks(results)[0]
    assert "a step performed 2 times" in "\n".join(summary(results))


@pytest.mark.parametrize(("cause", "seconds"), [("crash", 10.5), ("hand-over", 2.5)])
def test_a_slow_takeover_is_a_failed_check(cause: str, seconds: float) -> None:
    """G8: each kind has its own limit."""
    takeovers = [replace(t, seconds=seconds) if t.cause == cause else t for t in GOOD.takeovers]
    (problem,) = failed_checks(replace(GOOD, takeovers=takeovers))
    assert problem.startswith(f"takeover of default after the {cause} took {seconds:.2f} s")


def test_a_takeover_may_last_longer_by_the_time_the_machine_was_stalled() -> None:
    """And by no more: the limit holds for the time in which it ran."""
    slow = replace(GOOD.takeovers[1], seconds=3.1, stalled_seconds=1.2)
    results = replace(GOOD, takeovers=[GOOD.takeovers[0], slow])
    assert failed_checks(results) == []
    assert "after 3.10 s (1.20 s stalled)" in summary(results)[1]
    slower = replace(GOOD, takeovers=[GOOD.takeovers[0], replace(slow, seconds=3.3)])
    assert failed_checks(slower) == [
        "takeover of default after the hand-over took 3.30 s (1.20 s stalled), limit 2 s"
    ]


def test_the_ledger_is_read_up_to_its_last_whole_line() -> None:
    ledger = '{"run": 9, "step": "reserve"}\n{"run": 9, "step": "charge"}\n{"run": 9, "st'
    assert steps_performed(ledger) == {9: Counter(["reserve", "charge"])}
    assert steps_performed("") == {}


def test_the_phases_share_the_time_after_the_start() -> None:
    timing = Timing(45, began=100)
    timing.cluster_started(107)
    assert (timing.crash_at, timing.end_at) == (119, 143)
    assert timing.crash_at < timing.restart_at < timing.hand_over_at < timing.end_at
    assert timing.progress(110) == (10, 45)


def test_a_slow_start_does_not_shorten_the_phases() -> None:
    timing = Timing(20, began=100)
    timing.cluster_started(130)
    assert timing.end_at - 130 >= 14
    assert timing.progress(150)[1] > 20


@pytest.mark.parametrize(
    ("replicas", "seconds", "field"),
    [(1, 45, "--replicas"), (10, 45, "--replicas"), (3, 5, "--seconds"), (3, 4000, "--seconds")],
)
def test_bad_options_are_refused(replicas: int, seconds: float, field: str) -> None:
    """G11: the field and what is allowed."""
    assert options_problem(replicas, seconds).startswith(field)
    assert options_problem(3, 45) == ""


def test_without_the_repository_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EXAMPLE", Path("/nowhere/orders.py"))
    assert options_problem(3, 45).startswith("/nowhere/orders.py not found: clone the repository")
