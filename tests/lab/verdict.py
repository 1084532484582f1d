"""The judge of the fault suite: every rule over all that was seen, knowing nothing of the product.

A rule that cannot be judged under a fault (a stepped clock of the database says nothing about what
is early) is named by that fault, with the reason beside it. A history in which nothing happened
breaks the first rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.lab import check_health, check_state, check_ticks, checker
from tests.lab.evidence import Evidence, Terms, Window
from tests.lab.history import select
from tests.lab.ops import READS, WRITES, Op

Rule = Callable[[Evidence, Terms], Iterator[str]]


def something_happened(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """An empty history would satisfy every other rule."""
    for what, number in happened(evidence).items():
        least = terms.least.get(what, 1)
        if number < least:
            yield f"nothing proven: {number} {what}, at least {least} were to happen"


def happened(evidence: Evidence) -> dict[str, int]:
    acknowledged = [op for op in evidence.ops if op.acknowledged]
    return {
        "terms": len(select(evidence.events, "become", ignored=False)),
        "executions": len(select(evidence.events, "execute")),
        "ticks": sum(tick.count for tick in evidence.ticks),
        "commits": len(evidence.commits),
        **{
            kind: sum(op.kind == kind for op in acknowledged)
            for kind in ("put", "add", "count", "strong", "cached", "own")
        },
        "probes": sum(answer.status == 200 for answer in evidence.answers),
        "faults": len(evidence.windows),
    }


def leadership(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G1, G2 and the order of callbacks."""
    yield from checker.violations(list(evidence.events), kinds=())


def unbroken(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """No process ended that was not ended; nothing was unforeseen."""
    yield from evidence.broken


RULES: Mapping[str, Rule] = {
    "happened": something_happened,
    "leadership": leadership,
    "fenced": check_ticks.fenced,
    "one-outcome": check_ticks.one_outcome,
    "completed-once": check_ticks.completed_once,
    "early": check_ticks.early,
    "delivered": check_ticks.delivered,
    "summed": check_ticks.summed,
    "answers": check_state.answers,
    "kept": check_state.kept,
    "once": check_state.once,
    "handed-over": check_state.handed_over,
    "fresh": check_state.fresh,
    "in-time": check_health.in_time,
    "steady": check_health.steady,
    "red-with-cause": check_health.red_with_cause,
    "red-when-due": check_health.red_when_due,
    "green-again": check_health.green_again,
    "leaks": check_health.leaks,
    "unbroken": unbroken,
}


def _ops_that_count(evidence: Evidence, terms: Terms) -> Iterator[Op]:
    """All, but for what physics takes from a write or a read while the fault lasts."""
    for op in evidence.ops:
        during = [w for w in evidence.windows if _overlap(op, w)]
        if during and terms.lossy and op.kind in WRITES:
            yield replace(op, answered_at=None, outcome="")
        elif not (terms.behind and op.kind in READS and op.app in {w.victim for w in during}):
            yield op


def _overlap(op: Op, window: Window) -> bool:
    return op.asked_at < window.healed_at and (op.answered_at or op.asked_at) >= window.began_at


def violations(evidence: Evidence, terms: Terms) -> list[str]:
    unknown = terms.exempt - RULES.keys()
    assert not unknown, f"no such rules: {unknown}"
    evidence = replace(evidence, ops=list(_ops_that_count(evidence, terms)))
    return [
        f"[{name}] {line}"
        for name, rule in RULES.items()
        if name not in terms.exempt
        for line in rule(evidence, terms)
    ]
