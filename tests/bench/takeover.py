"""How long nobody leads after a fault, in seconds, against peers, in one run on one machine.

Three candidates of each system on one Postgres (a database each); the time counts from the fault to
the moment the next one leads: for Baton, `OnBecomeLeader` in the next app; for River, the start of
its periodic jobs on the new leader; for Effect cluster, the start of the singleton. Procrastinate
and APScheduler 4 have no leader: there it is the time until a survivor runs the next tick of a task
due each second, half a second on average if nothing had happened. The fault comes at a random
moment of a second. All systems run side by side, because nearly all of the time is waiting.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from devtools.servers import PostgresServer
from tests.bench.candidates import (
    FAULTS,
    NEVER_SECONDS,
    BatonSystem,
    PeerSystem,
    System,
    peer_command,
)
from tests.bench.peers import (
    APSCHEDULER_3,
    APSCHEDULER_4,
    EFFECT,
    PROCRASTINATE,
    RIVER,
    NotHere,
    Peer,
)
from tests.bench.report import Section
from tests.bench.results import failed, reason, spread, table
from tests.charts import bars, strips

TITLE = "Takeover"
SECONDS = 360.0
ROUNDS = 5
CELL_SECONDS = 170.0
BATON = "Baton, defaults"
NAIVE = "lock alone (poll 1 s)"

_NAIVE = """
import sys, time, psycopg
url, path = sys.argv[-2:]
while True:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=2) as connection:
            while not connection.execute("SELECT pg_try_advisory_lock(4711)").fetchone()[0]:
                time.sleep(1)
            with open(path, "a") as file:
                print(time.time(), "lead", "-", file=file)
            while True:
                connection.execute("SELECT 1")
                time.sleep(1)
    except psycopg.Error:
        time.sleep(1)
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one configuration."""

    title: str
    made: Callable[[str, Path], System]


def _peer(peer: Peer, profile: str, mode: str, settle_seconds: float) -> Cell:
    def made(url: str, directory: Path) -> System:
        command = peer_command(peer, profile, mode, url, directory)
        return PeerSystem(command, url, directory, settle_seconds)

    kind = {"default": "defaults", "fast": "fastest safe"}[profile]
    return Cell(f"{peer.title}, {kind}", made)


def _naive(url: str, directory: Path) -> System:
    return PeerSystem([sys.executable, "-c", _NAIVE], url, directory, 3.0)


CELLS = (
    Cell(BATON, lambda url, place: BatonSystem(url, place, "default")),
    Cell("Baton, fast profile", lambda url, place: BatonSystem(url, place, "fast")),
    _peer(EFFECT, "default", "lead", 8.0),
    _peer(EFFECT, "fast", "lead", 4.0),
    _peer(RIVER, "default", "lead", 3.0),
    _peer(PROCRASTINATE, "default", "ticks", 3.0),
    _peer(APSCHEDULER_4, "default", "ticks", 4.0),
    _peer(APSCHEDULER_4, "fast", "ticks", 4.0),
    Cell(NAIVE, _naive),
)


def measure() -> dict[str, Any]:
    """Per system, per fault: seconds, None for never; or why there are none."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory, PostgresServer() as server:
        threads = []
        for number, cell in enumerate(CELLS):
            url = _new_database(server, f"cell{number}")
            place = Path(directory) / f"cell{number}"
            threads.append(
                threading.Thread(target=_measure_cell, args=(cell, url, place, found), daemon=True)
            )
            threads[-1].start()
            time.sleep(4)  # starts are what costs processor time: one system after the other
        for thread in threads:
            thread.join()
    return {cell.title: found[cell.title] for cell in CELLS}


def _new_database(server: PostgresServer, name: str) -> str:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.url_of(name)


def _measure_cell(cell: Cell, url: str, place: Path, found: dict[str, Any]) -> None:
    samples: dict[str, list[float | None]] = {fault: [] for fault in FAULTS}
    found[cell.title] = samples
    try:
        with cell.made(url, place) as system:
            _rounds(system, samples)
    except NotHere as why:
        found[cell.title] = {"failed": f"not run: {why}"}
    except Exception as error:  # one system's failure is a row, not the end
        text = reason(error)
        found[cell.title] = {**samples, "note": text} if any(samples.values()) else {"failed": text}


def _rounds(system: System, samples: dict[str, list[float | None]]) -> None:
    """Round after round of all faults, while the next one is likely to end in time."""
    ends = time.monotonic() + CELL_SECONDS
    for _ in range(ROUNDS):
        for fault, times in samples.items():
            expected = max((NEVER_SECONDS if at is None else at for at in times), default=0.0)
            if times.count(None) > 1 or time.monotonic() + expected > ends:
                continue
            times.append(system.takeover(fault))


PARTS: dict[str, Callable[[], Any]] = {"systems": measure}


def section(parts: dict[str, Any]) -> Section:
    systems = parts["systems"]
    if why := failed(systems):
        return Section(why)
    rows = [{"system": title, **_row(systems, title)} for title in systems]
    rows.append(
        {"system": APSCHEDULER_3.title, "clean release": "no coordination: every process runs all"}
    )
    text = [
        "Median seconds (worst, number of rounds); in brackets times Baton with its defaults.",
        table(rows),
        f"`never` means not within {NEVER_SECONDS:.0f} s. River has no setting for its election:"
        " its defaults are its fastest. “Fastest safe” are settings that give up a dead process as"
        " soon as Baton's defaults do: of Effect cluster leases in a table instead of advisory"
        " locks, with Baton's own timers (refresh 1 s, expiry 4 s); of APScheduler 4 a lease of 4 s"
        " instead of 30 s and a clean-up each second instead of each 15 minutes.",
        "**What limits it.** Clean release: one NOTIFY, one statement for the epoch, one call into"
        " the app. Crash: the successor's grace (3.2 s after the last beat it saw), which is what"
        " makes two leaders impossible. Freeze and partition: the server ends the session 4 s after"
        " its last statement, and up to 1 s passes until the next poll. River's figures hold the"
        " random pause of up to 1 s that a new leader makes before its periodic jobs. Effect"
        " cluster's advisory locks are held for as long as Postgres keeps the session, long"
        " after a runner was frozen or cut off. APScheduler 4 leaves a task's run to a dead"
        " process until the clean-up, and runs no other of it meanwhile; a schedule that was being"
        " worked on stays leased, even after a clean end: it depends on the moment.",
        "Not measured, from their documentation and source: a run that was under way when its"
        " process died is delivered again by Baton and (a persisted message) by Effect cluster at"
        " takeover, by River after an hour by default, by procrastinate and APScheduler 3 only if"
        " the user writes that, by APScheduler 4 by default not at all: it is abandoned.",
        _where_peers_win(systems),
    ]
    return Section("\n\n".join(text), _charts(systems))


def _row(systems: dict[str, Any], title: str) -> dict[str, str]:
    if why := failed(systems[title]):
        return {FAULTS[0]: why}
    cells = {fault: _cell(systems, title, fault) for fault in FAULTS}
    return {**cells, **({"note": part["note"]} if "note" in (part := systems[title]) else {})}


def _cell(systems: dict[str, Any], title: str, fault: str) -> str:
    samples = systems[title][fault]
    if not samples:
        return "not measured"
    if never := samples.count(None):
        known = [at for at in samples if at is not None]
        others = f"; else {statistics.median(known):.2f}" if known else ""
        return f"never ({never} of {len(samples)}{others})"
    ours = _median(systems, BATON, fault)
    ratio = "" if title == BATON or not ours else f" [{statistics.median(samples) / ours:.1f}×]"
    return spread(samples) + ratio


def _median(systems: dict[str, Any], title: str, fault: str) -> float | None:
    """None if there are no rounds, or if it is never."""
    part = systems.get(title)
    if part is None or failed(part) or not part[fault]:
        return None
    median = statistics.median(math.inf if at is None else at for at in part[fault])
    return None if median == math.inf else float(median)


def _where_peers_win(systems: dict[str, Any]) -> str:
    wins = []
    for fault in FAULTS:
        ours = _median(systems, BATON, fault)
        for title in systems:
            theirs = _median(systems, title, fault)
            if ours and theirs and theirs < ours and not title.startswith("Baton"):
                rounds = systems[title][fault]
                never = f", never in {n} of {len(rounds)}" if (n := rounds.count(None)) else ""
                wins.append(f"{title} after {fault} ({theirs:.2f} s against {ours:.2f} s{never})")
    if not wins:
        return "**Where a peer is better:** in none of these."
    return (
        f"**Where a peer is better:** {'; '.join(wins)}. A lock without a grace is quick after a"
        " crash because it trusts the end of the connection: a leader that is cut off may still be"
        " leading. A system without a leader has nothing to hand over; it can keep no singleton"
        " and no state of one."
    )


def _charts(systems: dict[str, Any]) -> dict[str, str]:
    ran = [title for title in systems if not failed(systems[title])]
    groups = [(fault, [(t, _median(systems, t, fault)) for t in ran]) for fault in FAULTS]
    ours = [(fault, systems[BATON][fault]) for fault in FAULTS] if BATON in ran else []
    return {
        "takeover": bars("Takeover, median by fault", groups, "seconds (none: never)", log=True),
        "takeover-baton": strips("Takeover of Baton, defaults: every round", ours, "seconds"),
    }
