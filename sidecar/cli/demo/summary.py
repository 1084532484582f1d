"""The end of the demo: what was promised, and whether it happened. Pure.

Every tick of a schedule is accounted for from the stored runs: a tick without a row is lost.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sidecar.cli.demo.words import (
    COORDINATOR,
    FLAKY,
    ORDER_FLOW,
    ORDER_STEPS,
    REPORT,
    Run,
    Takeover,
)

CRASH_SECONDS_MAX = 10.0
# From SIGTERM to the next leader; the promise of 1 s counts from the release, a little later.
HAND_OVER_SECONDS_MAX = 2.0
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The account of one schedule: every expected tick is in exactly one of the others."""

    expected: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    unfinished: int = 0
    lost: int = 0
    latest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Orders:
    """The order flow: `steps` counts, per finished run, how often each step was performed."""

    steps: Mapping[int, Counter[str]] = field(default_factory=dict)
    unfinished: int = 0
    moved: int = 0  # runs that were begun on one pod and finished on another


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is judged."""

    takeovers: Sequence[Takeover]
    ticks: Ticks
    counts: Sequence[int]  # of the coordinator: before the crash, after it, at the end
    orders: Orders
    retried: int  # runs of the flaky job that needed more than one attempt and succeeded

    @property
    def settled(self) -> bool:
        """Whether waiting any longer can change nothing for the better."""
        ticks, orders = self.ticks, self.orders
        return not (ticks.unfinished or ticks.lost or orders.unfinished or not self.retried)


def account(runs: Iterable[Run], *, every: timedelta, after: datetime, until: datetime) -> Ticks:
    """Settle the ticks due in (after, until] of a schedule that ticks at multiples of `every`."""
    first = math.floor((after - _EPOCH) / every) + 1
    expected = {_EPOCH + n * every for n in range(first, math.floor((until - _EPOCH) / every) + 1)}
    found: dict[datetime, Run] = {}
    for run in runs:
        if run.kind == "schedule":
            found.update((tick, run) for tick in _stands_for(run, every) if tick in expected)
    outcomes = Counter(run.outcome for run in found.values())
    return Ticks(
        expected=len(expected),
        succeeded=outcomes["succeeded"],
        failed=outcomes["failed"],
        skipped=Counter(run.reason for run in found.values() if run.outcome == "skipped"),
        unfinished=outcomes[""],
        lost=len(expected - found.keys()),
        latest_seconds=max((run.late_seconds for run in found.values()), default=0.0),
    )


def _stands_for(run: Run, every: timedelta) -> Iterator[datetime]:
    tick = run.scheduled_at
    while tick <= (run.last_scheduled_at or run.scheduled_at):
        yield tick
        tick += every


def broken_promises(facts: Facts) -> list[str]:
    """What did not happen though it was promised; empty if all is well."""
    return [text for text, broken in _promises(facts) if broken]


def _promises(facts: Facts) -> Iterator[tuple[str, bool]]:
    for takeover in facts.takeovers:
        limit = CRASH_SECONDS_MAX if takeover.cause == "crash" else HAND_OVER_SECONDS_MAX
        took = f"{takeover.seconds:.2f} s{_stalled(takeover)}"
        text = f"{takeover.cause} of {takeover.group} took {took}, not {limit:g}"
        yield text, takeover.seconds > limit + takeover.stalled_seconds
    for cause in ("crash", "hand-over"):
        missing = not any(takeover.cause == cause for takeover in facts.takeovers)
        yield f"no takeover after the {cause}", missing
    ticks = facts.ticks
    yield f"{ticks.lost} ticks of {REPORT} were lost", ticks.lost > 0
    yield f"{ticks.unfinished} ticks of {REPORT} have no outcome", ticks.unfinished > 0
    yield f"{ticks.failed} ticks of {REPORT} failed", ticks.failed > 0
    yield f"no tick of {REPORT} succeeded", ticks.succeeded == 0
    rising = all(a < b for a, b in zip(facts.counts, facts.counts[1:], strict=False))
    yield f"{COORDINATOR} did not go on counting: {_counted(facts)}", not rising
    once = Counter(ORDER_STEPS)
    for run_id, steps in facts.orders.steps.items():
        yield f"order-flow #{run_id} performed its steps as {dict(steps)}", steps != once
    yield "no order was finished", not facts.orders.steps
    yield f"{facts.orders.unfinished} orders were not finished", facts.orders.unfinished > 0
    yield "the flaky job never succeeded after a failure", facts.retried == 0


def summary(facts: Facts) -> list[str]:
    """What a person reads at the end."""
    lines = [
        f"{t.cause:<11} {t.group:<8} {t.old} -> {t.new} after {t.seconds:.2f} s{_stalled(t)}"
        for t in facts.takeovers
    ]
    ticks = facts.ticks
    skipped = ", ".join(f"{n} skipped ({reason})" for reason, n in sorted(ticks.skipped.items()))
    lines += [
        f"{REPORT:<11} {ticks.expected} ticks expected: {ticks.succeeded} succeeded, "
        f"{skipped or '0 skipped'}, {ticks.lost} lost",
        f"{'':<11} the latest of them {ticks.latest_seconds:.1f} s after it was due",
        f"{COORDINATOR:<11} counted on across every change of leader: {_counted(facts)}",
        f"{ORDER_FLOW:<11} {len(facts.orders.steps)} orders, {_steps(facts)}; "
        f"{facts.orders.moved} moved to another pod",
        f"{FLAKY:<11} runs that succeeded after failed attempts: {facts.retried}",
    ]
    return lines


def _stalled(takeover: Takeover) -> str:
    seconds = takeover.stalled_seconds
    return f" ({seconds:.2f} s stalled)" if seconds else ""


def _counted(facts: Facts) -> str:
    return " -> ".join(str(count) for count in facts.counts)


def _steps(facts: Facts) -> str:
    most = max((n for steps in facts.orders.steps.values() for n in steps.values()), default=0)
    return "each step performed once" if most == 1 else f"a step performed {most} times"
