"""One fault from beginning to verdict."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.faults.arena import CACHE_SECONDS, Arena, Scene
from tests.lab import check_health, check_ticks, verdict
from tests.lab.evidence import Evidence, Terms, Window
from tests.lab.ops import WRITES
from tests.lab.processes import boottime
from tests.lab.replica import Replica

Act = Callable[[Arena], object]
GROWTH = ("connections", "descriptors", "megabytes")
PLAIN = Scene()
# What every run has to show, whatever the fault; a fault may ask for more.
LEAST = {
    "terms": 1, "executions": 20, "ticks": 30, "commits": 40, "put": 30, "add": 12, "count": 15,
    "strong": 30, "cached": 30, "own": 30, "probes": 60,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """What is broken, how it is healed, and what is expected meanwhile; see `catalogue`."""

    name: str
    about: str
    inject: Act
    heal: Act
    terms: Terms
    hold: float = 0.0  # how long it lasts at least, in seconds
    rounds: int = 1
    scene: Scene = PLAIN
    pick: Callable[[Arena, int], Replica] | None = None  # whom round n is about; else the leader
    of_a_server: bool = False  # nobody is the victim: every app may be the next to lead
    rest: float = 3.0  # between a round and what follows
    limit: float = 150.0  # for everything, in seconds
    why_not: Callable[[], str] = lambda: ""  # why it cannot be done here, in one line
    exempt_because: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What the report says of one fault."""

    name: str
    about: str
    seconds: float = 0.0
    takeovers: list[float | None] = field(default_factory=list)
    recoveries: list[float | None] = field(default_factory=list)
    ticks_due: int = 0
    ticks_ended: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    lost: int = 0
    reads: int = 0
    green_after: float = 0.0
    busy: float = 0.0  # load average per core: how much else this machine had to do
    growth: dict[str, float] = field(default_factory=lambda: dict.fromkeys(GROWTH, 0.0))
    violations: list[str] = field(default_factory=list)
    exempt: list[str] = field(default_factory=list)
    exempt_because: str = ""
    skipped: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run(fault: Fault, directory: Path) -> Result:
    """Break, heal, wait for quiet, judge."""
    if reason := fault.why_not():
        return Result(fault.name, fault.about, skipped=reason)
    began = time.monotonic()
    with Arena(fault.scene, directory) as arena:
        for number in range(fault.rounds):
            _round(fault, arena, number)
        evidence = arena.evidence()
    return _result(fault, evidence, arena.notes, time.monotonic() - began)


def _round(fault: Fault, arena: Arena, number: int) -> None:
    leader = arena.cluster.wait_for_leader()
    arena.victim = fault.pick(arena, number) if fault.pick else leader
    led = fault.of_a_server or arena.victim is leader
    victim = "" if fault.of_a_server else arena.victim.name
    began_at = boottime()
    fault.inject(arena)
    if led and fault.terms.takeover_seconds is not None:
        with suppress(AssertionError):  # the judge will say
            seconds = 2 * fault.terms.takeover_seconds + 5
            arena.cluster.wait_for_takeover(began_at, arena.victim, timeout=seconds)
    time.sleep(max(0.0, began_at + fault.hold - boottime()))
    fault.heal(arena)
    arena.windows.append(Window(began_at, boottime(), victim, led))
    arena.wait_well(check_health.RECOVERY_SECONDS)
    time.sleep(fault.rest)


def _result(fault: Fault, evidence: Evidence, notes: dict[str, Any], seconds: float) -> Result:
    terms = fault.terms
    ticks = [t for name in terms.every_second for t in check_ticks.settled(evidence, name)]
    outcomes: dict[str, int] = {}
    for tick in ticks:
        what = tick.reason or tick.outcome or tick.state
        outcomes[what] = outcomes.get(what, 0) + tick.count
    found = _counted(verdict.violations(evidence, terms))
    return Result(
        fault.name,
        fault.about,
        seconds,
        check_health.takeovers(evidence, terms) if terms.takeover_seconds else [],
        check_health.recoveries(evidence, terms) if terms.recovery_seconds else [],
        _due(evidence, terms),
        sum(tick.count for tick in ticks if tick.outcome),
        outcomes,
        sum(op.acknowledged and op.kind in WRITES for op in evidence.ops),
        sum("lost" in line or "doubled" in line for line in found),
        sum(op.acknowledged and op.kind not in WRITES for op in evidence.ops),
        check_health.green_after(evidence, terms),
        os.getloadavg()[0] / (os.cpu_count() or 1),
        _growth(evidence),
        found,
        sorted(terms.exempt),
        fault.exempt_because,
        notes=notes,
    )


def _counted(lines: list[str]) -> list[str]:
    """Each once; a probe that is wrong is wrong again and again."""
    return [f"{line} (× {n})" if n > 1 else line for line, n in Counter(lines).items()]


def _due(evidence: Evidence, terms: Terms) -> int:
    """How many ticks there should be, from the first row of each schedule on."""
    until, due = evidence.settled_until, 0
    for name in terms.every_second:
        rows = check_ticks.settled(evidence, name)
        if rows and until:
            due += round((max(until, rows[-1].last) - rows[0].first).total_seconds()) + 1
    return due


def _growth(evidence: Evidence) -> dict[str, float]:
    """The most that any sidecar holds more than before; connections: the most at the end."""
    before = {each.pid: each for each in evidence.before}
    pairs = [(before[now.pid], now) for now in evidence.after if now.pid in before]
    return {
        "connections": max((now.connections for now in evidence.after), default=0),
        "descriptors": max((now.descriptors - old.descriptors for old, now in pairs), default=0),
        "megabytes": max((now.megabytes - old.megabytes for old, now in pairs), default=0.0),
    }


def terms(**more: Any) -> Terms:
    """The terms of a fault: the suite's own figures, and what is special about it."""
    least = {**LEAST, **more.pop("least", {})}
    return Terms(cache_seconds=CACHE_SECONDS, least=least, **more)
