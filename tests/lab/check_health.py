"""G8, G9, G10 and what is left behind: takeover in time, probes with a cause, no leaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lab import checker, stalls
from tests.lab.evidence import Evidence, Footprint, Terms, Window
from tests.lab.history import Event, select
from tests.lab.probes import Answer

RECOVERY_SECONDS = 15.0
_STALE_SECONDS = 10.0  # twice the expected interval that the suite declares
_SLACK_SECONDS = 0.5
_A_TERM_SECONDS = 1.0  # shorter ones were only remembered, or given up at once
# A process that runs for a minute more under load keeps a few buffers more; a leak is more.
DESCRIPTORS_MAX = 12
MEGABYTES_MAX = 24.0
CACHE_CONNECTIONS_MAX = 8

_SILENT = re.compile(r"schedule (\S+): no success for")


def takeovers(evidence: Evidence, terms: Terms) -> list[float | None]:
    """By fault that hit a leader: how long until another app was told; None: nobody was.

    The time in which the machine stood still does not count.
    """
    return [_taken_over(evidence, terms, window) for window in evidence.windows if window.led]


def recoveries(evidence: Evidence, terms: Terms) -> list[float | None]:
    """By fault: how long after its healing until an app led again; 0: one led all the time."""
    held = [
        (belief.start, belief.end)
        for belief in checker.beliefs(list(evidence.events))
        if belief.end - belief.start >= _A_TERM_SECONDS
    ]
    return [
        min((max(0.0, start - w.healed_at) for start, end in held
             if end - w.healed_at >= _A_TERM_SECONDS), default=None)
        for w in evidence.windows
    ]  # fmt: skip


def in_time(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G8: another app leads in time, or somebody does once the fault is healed."""
    if terms.takeover_seconds is not None:
        for seconds in takeovers(evidence, terms):
            if seconds is None or seconds > terms.takeover_seconds:
                yield f"G8: takeover after {seconds} s, not {terms.takeover_seconds}"
    if terms.recovery_seconds is not None:
        for seconds in recoveries(evidence, terms):
            if seconds is None or seconds > terms.recovery_seconds:
                yield f"G8: led again {seconds} s after the healing, not {terms.recovery_seconds}"


def steady(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """A fault that concerns no leader costs no leadership."""
    if terms.steady and evidence.windows:
        since = evidence.windows[0].began_at
        for event in _told(evidence):
            if event.at > since:
                yield f"leadership changed without need: {event.app} under {event.epoch}"


def red_with_cause(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G10: red only during a fault and until 15 s after the recovery from it, and with a reason."""
    faults = _faults(evidence, terms)
    for answer in evidence.answers:
        if answer.status == 200:
            continue
        over_at = (
            answer.at + answer.seconds
        )  # a question under way when the fault begins is met too
        around = [
            f for f in faults if f.began_at <= over_at and answer.at <= f.back_at + RECOVERY_SECONDS
        ]
        if answer.status == 0:
            if not terms.mutes or answer.replica not in [fault.victim for fault in around]:
                yield f"G10: no answer from {answer.replica}: {answer.body}"
        elif not answer.body.strip():
            yield f"G10: {answer.replica} is red and says no reason"
        elif not around and not _really_silent(evidence, answer):
            yield f"G10: {answer.replica} is red without a cause: {answer.body.strip()}"


def red_when_due(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G9 G10: the victim says what is wrong with it, and soon enough."""
    for window in evidence.windows if terms.red else ():
        said = [
            answer
            for answer in evidence.answers
            if answer.replica == window.victim
            and window.began_at <= answer.at <= window.began_at + terms.red_seconds + _SLACK_SECONDS
            and answer.status == 503
            and re.search(terms.red, answer.body)
        ]
        if not said:
            yield f"G10: {window.victim} never said {terms.red!r} within {terms.red_seconds} s"


def green_again(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """G10: the last answer of every replica is 200."""
    for replica in sorted({answer.replica for answer in evidence.answers}):
        last = [answer for answer in evidence.answers if answer.replica == replica][-1]
        if last.status != 200:
            yield f"G10: {replica} is not ready at the end: {last.status} {last.body.strip()}"


def leaks(evidence: Evidence, terms: Terms) -> Iterator[str]:
    """Connections within their bounds; descriptors and memory as before, in what lived on."""
    before = {print_.pid: print_ for print_ in evidence.before}
    for now in evidence.after:
        if now.connections > terms.connections_max:
            yield f"leak: {now.app} holds {now.connections} connections to Postgres"
        if now.cache_connections > CACHE_CONNECTIONS_MAX:
            yield f"leak: {now.app} holds {now.cache_connections} connections to Redis"
        if now.pid in before:
            yield from _grown(before[now.pid], now)


def _grown(old: Footprint, now: Footprint) -> Iterator[str]:
    if now.descriptors - old.descriptors > DESCRIPTORS_MAX:
        yield f"leak: {now.app}: {old.descriptors} descriptors became {now.descriptors}"
    if now.megabytes - old.megabytes > MEGABYTES_MAX:
        yield f"leak: {now.app}: {old.megabytes:.0f} MB became {now.megabytes:.0f}"


def _told(evidence: Evidence) -> list[Event]:
    return select(evidence.events, "become", ignored=False)


def _taken_over(evidence: Evidence, terms: Terms, window: Window) -> float | None:
    since = window.began_at
    if terms.clean:
        losses = select(evidence.events, "lose", "ended", app=window.victim)
        since = next((event.at for event in losses if event.at > since), since)
    told = (e.at for e in _told(evidence) if e.at > since and e.app != window.victim)
    until = next(told, None)
    return None if until is None else until - since - stalls.within(evidence.stalls, since, until)


def green_after(evidence: Evidence, terms: Terms) -> float:
    """How long after the recovery from a fault a probe was still red, at worst."""
    faults, worst = _faults(evidence, terms), 0.0
    for answer in evidence.answers:
        begun = [fault for fault in faults if fault.began_at <= answer.at]
        if answer.status != 200 and begun:
            worst = max(worst, answer.at - begun[-1].back_at)
    return worst


@dataclass(frozen=True, slots=True)
class _Span:
    """A fault from its beginning until it was healed and somebody led again."""

    began_at: float
    back_at: float
    victim: str


def _faults(evidence: Evidence, terms: Terms) -> list[_Span]:
    again = recoveries(evidence, terms)
    return [
        _Span(window.began_at, window.healed_at + (seconds or 0.0), window.victim)
        for window, seconds in zip(evidence.windows, again, strict=True)
    ]


def _really_silent(evidence: Evidence, answer: Answer) -> bool:
    """It says that a schedule had no success, and the apps know of none either."""
    match = _SILENT.search(answer.body)
    if match is None:
        return False
    calls = {
        (event.app, event.call)
        for event in select(evidence.events, "execute", name=match[1])
    }  # fmt: skip
    return not any(
        answer.at - _STALE_SECONDS + _SLACK_SECONDS < event.at < answer.at
        for event in select(evidence.events, "execute", "ended", outcome="succeeded")
        if (event.app, event.call) in calls
    )
