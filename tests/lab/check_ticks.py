"""G3 to G6 over the rows of a schedule: each tick once, never early, fenced, and its state with it.

The judge knows when ticks are due (each second) and counts rows; the apps' own notes say what was
delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from tests.lab.evidence import Evidence, Terms, Tick
from tests.lab.history import select

_SECOND = timedelta(seconds=1)


def one_outcome(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G4: the rows of a schedule cover every second once, and each has ended as it may."""
    for name in terms.every_second:
        rows = settled(evidence, name)
        if not rows:
            yield f"G4: {name}: not one tick has a row"
        elif evidence.settled_until and rows[-1].last < evidence.settled_until:
            yield f"G4: {name}: no row after {rows[-1].last}, until {evidence.settled_until}"
        for old, new in pairwise(rows):
            if new.first > old.last + _SECOND:
                yield f"G4: {name}: no row for the ticks between {old.last} and {new.first}"
            if new.first <= old.last:
                yield f"G4: {name}: two rows for {new.first}: runs {old.run_id} and {new.run_id}"
        for tick in rows:
            yield from _wrong_end(tick, terms)


def settled(evidence: Evidence, name: str) -> list[Tick]:
    """The rows of all ticks that had the time to end."""
    until = evidence.settled_until
    rows = [t for t in evidence.ticks if t.name == name and (until is None or t.first <= until)]
    return sorted(rows, key=lambda tick: tick.first)


def _wrong_end(tick: Tick, terms: Terms) -> Iterator[str]:
    if tick.state != "ended" or tick.outcome is None:
        yield f"G4: {tick.name}: {tick.first} has no outcome: {tick.state}"
    elif tick.last != tick.first + (tick.count - 1) * _SECOND:
        yield f"G4: {tick.name}: {tick.first} counts {tick.count} ticks until {tick.last}"
    elif tick.outcome == "failed":
        yield f"G4: {tick.name}: {tick.first} failed, although its app succeeds"
    elif tick.name in terms.all_succeed and tick.outcome != "succeeded":
        yield f"G4: {tick.name}: {tick.first} ended as {tick.outcome} ({tick.reason})"


def early(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """Nothing starts before it is due."""
    for tick in evidence.ticks:
        if tick.started_at is not None and tick.started_at < tick.first:
            yield f"early: {tick.name}: {tick.first} was started at {tick.started_at}"


def delivered(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G5: what is called a success was answered as one by an app."""
    ended = {
        (event.app, event.call)
        for event in select(evidence.events, "execute", "ended", outcome="succeeded")
    }
    answered = {
        event.fields["run_id"]
        for event in select(evidence.events, "execute")
        if (event.app, event.call) in ended
    }
    for tick in evidence.ticks:
        if tick.outcome == "succeeded" and tick.run_id not in answered:
            yield f"G5: {tick.name}: {tick.first} is a success that no app answered"


def fenced(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G3: once something was committed under an epoch, nothing is under an older one."""
    highest = 0
    for commit in sorted(evidence.commits, key=lambda commit: commit.at):
        if 0 < commit.epoch < highest:
            yield (
                f"G3: stale commit: run {commit.run_id} {commit.state} under {commit.epoch}"
                f" at {commit.at}, after {highest}"
            )
        highest = max(highest, commit.epoch)


def completed_once(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G4: at most one completion of a run is accepted."""
    ended: set[int] = set()
    for commit in evidence.commits:
        if commit.outcome is not None:
            if commit.run_id in ended:
                yield f"G4: run {commit.run_id} was completed twice"
            ended.add(commit.run_id)


def summed(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G6: the count in a schedule's state is the number of its successes."""
    key = f"schedule-state:{terms.summed}"
    successes = [t for t in evidence.ticks if t.name == terms.summed and t.outcome == "succeeded"]
    if evidence.values.get(key, 0) != len(successes):
        yield f"G6: {key} is {evidence.values.get(key, 0)} after {len(successes)} successes"
