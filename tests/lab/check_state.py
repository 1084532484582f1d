"""G7 over the calls of all apps: nothing acknowledged is lost or doubled, nothing read is stale."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.lab.evidence import Evidence, Terms
from tests.lab.ops import Op

# What a call may be answered while something is broken; anything else is an error of ours.
_DOCUMENTED = {
    "put": {"ok"},
    "add": {"ok", "ABORTED"},
    "count": {"ok", "FAILED_PRECONDITION"},
    "begin": {"ok"},
}
_READS = {"ok", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED"}
# For a cache's clock against the apps' own, and for the way of an answer.
_SLACK_SECONDS = 0.25


def answers(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """Every answer is one that the contract names."""
    for op in evidence.ops:
        if op.outcome and op.outcome not in _DOCUMENTED.get(op.kind, _READS):
            yield f"G11: {op.kind} of {op.key} by {op.app} was answered {op.outcome}"


def kept(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """No acknowledged write is lost; nothing stands there that nobody wrote."""
    written: dict[str, list[Op]] = defaultdict(list)
    for op in evidence.ops:
        if op.kind in ("put", "add", "count"):
            written[op.key].append(op)
    for key, ops in written.items():
        stands = evidence.values.get(key, 0)
        acknowledged = max((op.number for op in ops if op.acknowledged), default=0)
        if stands < acknowledged:
            yield f"G7: lost: {key} is {stands}, but {acknowledged} was acknowledged"
        if stands > max(op.number for op in ops):
            yield f"G7: {key} is {stands}, which nobody ever wrote"


def once(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """Each step of a compare-and-set, and each count of a singleton, is acknowledged once."""
    for kind in ("add", "count"):
        done = Counter(op.number for op in evidence.ops if op.kind == kind and op.acknowledged)
        for number, times in done.items():
            if times > 1:
                yield f"G7: doubled: {kind} to {number} was acknowledged {times} times"


def handed_over(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G3 G7: a singleton begins where the terms before it ended, and they write no more."""
    begins = [op for op in evidence.ops if op.kind == "begin"]
    counts = [op for op in evidence.ops if op.kind == "count" and op.acknowledged]
    for begin in begins:
        for op in counts:
            older = op.epoch < begin.epoch
            before = op.epoch == begin.epoch and (op.answered_at or 0) < begin.asked_at
            if (older or before) and op.number > begin.number:
                yield (
                    f"G3 G7: {begin.app} began at {begin.number} under {begin.epoch}, but"
                    f" {op.number} was acknowledged to {op.app} under {op.epoch}"
                )


def fresh(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """Strong reads and reads of one's own see every acknowledged write; cached ones soon do."""
    limits = {"strong": 0.0, "own": 0.0, "cached": terms.cache_seconds + _SLACK_SECONDS}
    known = _acknowledged(evidence)
    for op in evidence.ops:
        if op.kind in limits and op.acknowledged:
            times, numbers = known.get(op.key, ([], []))
            index = bisect_right(times, op.asked_at - limits[op.kind])
            expected = numbers[index - 1] if index else 0
            if op.number < expected:
                yield f"G7: stale: {op.kind} read of {op.key}: {op.number}, not {expected}"


def _acknowledged(evidence: Evidence) -> dict[str, tuple[list[float], list[int]]]:
    """By key: when writes were acknowledged, and the highest number until then."""
    known: dict[str, tuple[list[float], list[int]]] = {}
    puts = [op for op in evidence.ops if op.kind == "put" and op.acknowledged]
    for op in sorted(puts, key=lambda op: op.answered_at or 0):
        times, numbers = known.setdefault(op.key, ([], []))
        times.append(op.answered_at or 0)
        numbers.append(max(op.number, numbers[-1] if numbers else 0))
    return known
