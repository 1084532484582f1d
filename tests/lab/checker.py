"""Judges a history against G1, G2 and the order of callbacks, knowing nothing of the product.

An app leads from the arrival of OnBecomeLeader to the arrival of OnLoseLeadership or the end of its
trust, whichever comes first. Each Watch message that confirms the term replaces the end of the
trust; one that denies it ends the trust. A history in which nothing happened is a failure: it would
satisfy every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.lab.history import Event, select

# How long an app may need to notice that its Execute was cancelled.
_CANCEL_SECONDS = 0.5
# How long an app that stood still may need to read what had arrived before.
_WAKING_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Belief:
    """One app believed to lead one group, from (inclusive) until (exclusive)."""

    app: str
    group: str
    epoch: int
    start: float
    end: float


def assert_holds(events: list[Event], *, kinds: Iterable[str] = ("become",)) -> None:
    """Fail with every violation there is; `kinds` must have happened at least once."""
    found = violations(events, kinds=kinds)
    assert not found, "\n".join(["the history breaks the guarantees:", *found])


def violations(events: list[Event], *, kinds: Iterable[str] = ("become",)) -> list[str]:
    ordered = sorted(events, key=lambda event: event.at)
    return [
        *(f"nothing proven: no {kind} in {len(events)} events" for kind in kinds
          if not select(ordered, kind)),
        *_overlaps(ordered),
        *_epochs_that_do_not_rise(ordered),
        *_executions_outside_a_term(ordered),
        *_executions_after_the_loss(ordered),
    ]  # fmt: skip


def beliefs(events: list[Event], *, denials: bool = True) -> list[Belief]:
    """Every interval in which an app believed to lead a group.

    Without `denials`, Watch messages only renew: what the sidecar must keep to when it calls, as
    its denial of an earlier moment and its OnBecomeLeader travel on different streams.
    """
    keys = {(event.app, event.group) for event in events if event.kind == "become"}
    ordered = [e for e in sorted(events, key=lambda e: e.at) if e.phase == "arrived"]
    return [
        belief
        for app, group in sorted(keys)
        for belief in _beliefs_of_one(
            [e for e in ordered if e.app == app and (e.group == group or e.kind == "start")],
            denials=denials,
        )
    ]


def _beliefs_of_one(events: list[Event], *, denials: bool) -> Iterator[Belief]:
    current: Belief | None = None
    for event in events:
        if current is not None and event.kind == "watch":
            if not (event.is_leader and event.epoch == current.epoch):
                end = min(current.end, event.at) if denials else current.end
                current = replace(current, end=end)
            elif event.at <= current.end:
                current = replace(current, end=event.trust_ends_at)
            else:  # the trust had run out: the app leads again from here on
                yield current
                current = replace(current, start=event.at, end=event.trust_ends_at)
        elif event.kind == "become" and not event.ignored:
            if current is not None:
                yield replace(current, end=min(current.end, event.at))
            current = Belief(event.app, event.group, event.epoch, event.at, event.trust_ends_at)
        elif current is not None and _ends(event, current):
            yield replace(current, end=min(current.end, event.at))
            current = None
    if current is not None:
        yield current


def _ends(event: Event, belief: Belief) -> bool:
    """A new life of the app, or a loss that is not about an older term."""
    return event.kind == "start" or (
        event.kind == "lose" and (event.epoch == 0 or event.epoch >= belief.epoch)
    )


def _overlaps(events: list[Event]) -> Iterator[str]:
    by_start = sorted(beliefs(events), key=lambda belief: belief.start)
    for index, first in enumerate(by_start):
        for second in by_start[index + 1 :]:
            if (
                first.group == second.group
                and first.app != second.app
                and max(first.start, second.start) < min(first.end, second.end)
            ):
                seconds = min(first.end, second.end) - second.start
                yield f"G1: two leaders for {seconds:.3f} s: {first} and {second}"


def _epochs_that_do_not_rise(events: list[Event]) -> Iterator[str]:
    terms = select(events, "become", ignored=False)
    for group in sorted({event.group for event in terms}):
        for old, new in pairwise(event for event in terms if event.group == group):
            if new.epoch <= old.epoch:
                yield f"G2: {group}: epoch {new.epoch} of {new.app} after {old.epoch} of {old.app}"


def _executions_outside_a_term(events: list[Event]) -> Iterator[str]:
    held = beliefs(events, denials=False)
    answered = {
        (event.app, event.group, event.epoch): event.at
        for event in select(events, "become", "ended", outcome="ok")
    }
    for event in select(events, "execute", ignored=False):
        key = (event.app, event.group, event.epoch)
        if answered.get(key, float("inf")) > event.at:
            yield f"Execute before OnBecomeLeader was answered: {event}"
        elif not any(
            (belief.app, belief.group, belief.epoch) == key
            and any(belief.start <= at < belief.end for at in _sent_at(events, event))
            for belief in held
        ):
            yield f"Execute outside of a term: {event}"


def _sent_at(events: list[Event], execution: Event) -> Iterator[float]:
    """When it may have been sent: as it arrived, or before its app stood still and could not read.

    The one case that physics forces: both stood still, with the call on the way between them.
    """
    yield execution.at
    for woke in select(events, "woke", app=execution.app):
        if woke.fields["since"] <= execution.at <= woke.at + _WAKING_SECONDS:
            yield woke.fields["since"]


def _executions_after_the_loss(events: list[Event]) -> Iterator[str]:
    ended = {(event.app, event.call): event.at for event in select(events, "execute", "ended")}
    for event in select(events, "execute", ignored=False):
        for loss in _losses_after(events, event):
            noticed_by = loss.at + _CANCEL_SECONDS
            end = ended.get((event.app, event.call), float("inf"))
            lived_on = any(other.app == event.app and other.at > noticed_by for other in events)
            if end > noticed_by and lived_on:
                yield f"Execute went on after OnLoseLeadership: {event} and {loss}"


def _losses_after(events: list[Event], execution: Event) -> Iterator[Event]:
    """The first OnLoseLeadership for the term of this Execute, in the same life of the app."""
    for event in events:
        if event.app != execution.app or event.at < execution.at:
            continue
        if event.kind == "start":
            return
        if event.kind == "lose" and event.phase == "arrived" and event.group == execution.group:
            if event.epoch in (0, execution.epoch):
                yield event
            return
