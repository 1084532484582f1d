"""The results of the demo: what is checked at the end and what is printed. Pure.

Every tick of a schedule is looked up in the stored runs: a tick without a row is lost.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from devtools.demo.model import (
    COORDINATOR,
    FLAKY,
    ORDER_FLOW,
    ORDER_STEPS,
    RECEIPT,
    REPORT,
    Jobs,
    Run,
    Takeover,
)

CRASH_SECONDS_MAX = 10.0
# From SIGTERM to the next leader; the guarantee of 1 s starts later, when the lock is released.
HAND_OVER_SECONDS_MAX = 2.0
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of one schedule: each of `expected` is counted in exactly one other field."""

    expected: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    unfinished: int = 0
    lost: int = 0
    max_late_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Orders:
    """The runs of the order flow; `steps`: how often each step of a finished run was performed."""

    steps: Mapping[int, Counter[str]] = field(default_factory=dict)
    unfinished: int = 0
    moved: int = 0  # runs that started on one pod and finished on another


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that is checked."""

    takeovers: Sequence[Takeover]
    ticks: Ticks
    counts: Sequence[int]  # of the coordinator: before the crash, after it, at the end
    orders: Orders
    retried: int  # runs of the flaky schedule that succeeded after a failed attempt
    jobs: Jobs

    @property
    def finished(self) -> bool:
        """Whether everything has finished, so that waiting longer cannot change a check."""
        ticks, orders = self.ticks, self.orders
        unfinished = ticks.unfinished or orders.unfinished or self.jobs.unfinished
        return not (unfinished or ticks.lost or not self.retried)


def count_ticks(
    runs: Iterable[Run], *, every: timedelta, after: datetime, until: datetime
) -> Ticks:
    """Look up the ticks due in (after, until] of a schedule that ticks at multiples of `every`."""
    first = math.floor((after - _EPOCH) / every) + 1
    expected = {_EPOCH + n * every for n in range(first, math.floor((until - _EPOCH) / every) + 1)}
    found: dict[datetime, Run] = {}
    for run in runs:
        if run.kind == "schedule":
            found.update((tick, run) for tick in _ticks_of(run, every) if tick in expected)
    outcomes = Counter(run.outcome for run in found.values())
    return Ticks(
        expected=len(expected),
        succeeded=outcomes["succeeded"],
        failed=outcomes["failed"],
        skipped=Counter(run.reason for run in found.values() if run.outcome == "skipped"),
        unfinished=outcomes[""],
        lost=len(expected - found.keys()),
        max_late_seconds=max((run.late_seconds for run in found.values()), default=0.0),
    )


def _ticks_of(run: Run, every: timedelta) -> Iterator[datetime]:
    tick = run.scheduled_at
    while tick <= (run.last_scheduled_at or run.scheduled_at):
        yield tick
        tick += every


def failed_checks(results: Results) -> list[str]:
    """A line for each check that failed; empty if all passed."""
    return [text for text, failed in _checks(results) if failed]


def _checks(results: Results) -> Iterator[tuple[str, bool]]:
    for takeover in results.takeovers:
        limit = CRASH_SECONDS_MAX if takeover.cause == "crash" else HAND_OVER_SECONDS_MAX
        took = f"{takeover.seconds:.2f} s{_stalled(takeover)}"
        subject = f"takeover of {takeover.group} after the {takeover.cause}"
        yield (
            f"{subject} took {took}, limit {limit:g} s",
            takeover.seconds > limit + takeover.stalled_seconds,
        )
    for cause in ("crash", "hand-over"):
        missing = not any(takeover.cause == cause for takeover in results.takeovers)
        yield f"no takeover after the {cause}", missing
    ticks = results.ticks
    yield f"{ticks.lost} ticks of {REPORT} were lost", ticks.lost > 0
    yield f"{ticks.unfinished} ticks of {REPORT} have no outcome", ticks.unfinished > 0
    yield f"{ticks.failed} ticks of {REPORT} failed", ticks.failed > 0
    yield f"no tick of {REPORT} succeeded", ticks.succeeded == 0
    rising = all(a < b for a, b in zip(results.counts, results.counts[1:], strict=False))
    yield f"{COORDINATOR} did not keep counting: {_counts(results)}", not rising
    each_once = Counter(ORDER_STEPS)
    for run_id, steps in results.orders.steps.items():
        yield (
            f"{ORDER_FLOW} #{run_id} did not perform each step once: {dict(steps)}",
            steps != each_once,
        )
    yield "no order was finished", not results.orders.steps
    yield f"{results.orders.unfinished} orders were not finished", results.orders.unfinished > 0
    yield f"no run of {FLAKY} succeeded after a failed attempt", results.retried == 0
    yield "no job was submitted", not results.jobs.submitted
    yield f"{results.jobs.unfinished} jobs were not finished", results.jobs.unfinished > 0


def summary(results: Results) -> list[str]:
    """The lines to print at the end."""
    lines = [
        f"{t.cause:<11} {t.group:<8} {t.old} -> {t.new} after {t.seconds:.2f} s{_stalled(t)}"
        for t in results.takeovers
    ]
    ticks = results.ticks
    skipped = ", ".join(f"{n} skipped ({reason})" for reason, n in sorted(ticks.skipped.items()))
    lines += [
        f"{REPORT:<11} {ticks.expected} ticks expected: {ticks.succeeded} succeeded, "
        f"{skipped or '0 skipped'}, {ticks.lost} lost",
        f"{'':<11} the latest run started {ticks.max_late_seconds:.1f} s after it was due",
        f"{COORDINATOR:<11} kept counting across every change of leader: {_counts(results)}",
        f"{ORDER_FLOW:<11} {len(results.orders.steps)} orders, {_steps(results)}; "
        f"{results.orders.moved} moved to another pod",
        f"{FLAKY:<11} {results.retried} of its runs succeeded after failed attempts",
        f"{RECEIPT:<11} {results.jobs.submitted} jobs: {results.jobs.succeeded} succeeded on "
        f"{len(results.jobs.pods)} pods, {results.jobs.rescued} rescued from the crash, "
        f"{results.jobs.unfinished} lost",
    ]
    return lines


def _stalled(takeover: Takeover) -> str:
    seconds = takeover.stalled_seconds
    return f" ({seconds:.2f} s stalled)" if seconds else ""


def _counts(results: Results) -> str:
    return " -> ".join(str(count) for count in results.counts)


def _steps(results: Results) -> str:
    most = max((n for steps in results.orders.steps.values() for n in steps.values()), default=0)
    return "each step performed once" if most == 1 else f"a step performed {most} times"
