"""How late ticks arrive, 1, 100 and 1,000 due at once, and how many runs per second that makes.

First, every ten seconds, 100 schedules are due at once and then one alone in each of seven seconds;
after that, anew, 1,000 at once every ten seconds. Lateness is from the due time to the arrival in
the handler, which does nothing. Baton is a sidecar and an app in two processes with a gRPC call in
between; the peers call a function in their own process, but write every run to Postgres as Baton
does (APScheduler 3 writes only the next due time). One after the other on one machine, each on a
new Postgres.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psycopg

from devtools.servers import PostgresServer
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc
from tests.bench.candidates import peer_command
from tests.bench.peers import APSCHEDULER_3, APSCHEDULER_4, PROCRASTINATE, RIVER, NotHere, Peer
from tests.bench.report import Section
from tests.bench.results import failed, percentile, table
from tests.bench.schedules import Pod
from tests.charts import bars
from tests.lab.processes import Child, wait_until

TITLE = "Ticks"
SECONDS = 720.0
CYCLE = 10
SHOWN = {"one": "1", "hundred": "100", "thousand": "1,000"}
LATE_SECONDS = 2.0  # how long stragglers are waited for
START_SECONDS = 60.0
BATON, RAW = "Baton", "raw costs"

Arrival = tuple[float, str, float | None]


@dataclass(frozen=True, slots=True)
class Due:
    """So many schedules, due in those seconds of every minute."""

    count: int
    seconds: list[int]


@dataclass(frozen=True, slots=True)
class Phase:
    """What is due, by class, for so many cycles."""

    due: dict[str, Due]
    cycles: int

    @property
    def seconds(self) -> float:
        return CYCLE * self.cycles


FEW = Phase(
    {
        "hundred": Due(100, list(range(0, 60, CYCLE))),
        "one": Due(1, [second for second in range(60) if second % CYCLE >= 3]),
    },
    cycles=2,
)
MANY = Phase({"thousand": Due(1000, list(range(0, 60, CYCLE)))}, cycles=3)


def _baton() -> dict[str, Any]:
    return {**_baton_phase(FEW), **_baton_phase(MANY)}


def _baton_phase(phase: Phase) -> dict[str, Any]:
    schedules = [
        {"name": f"{kind}-{n:04}", "cron": f"{','.join(map(str, due.seconds))} * * * * *"}
        for kind, due in phase.due.items()
        for n in range(due.count)
    ]
    with PostgresServer() as server, Pod.on(server.url, schedules) as pod:
        pod.wait_for("SELECT count(*) FROM baton.schedule", len(schedules))
        pod.wait_for("SELECT count(*) FROM baton.term", 1)
        begin = _wait_for_a_cycle()
        time.sleep(phase.seconds + LATE_SECONDS)
        arrivals = [(at, name.partition("-")[0], due) for at, name, due in pod.arrivals()]
    return _figures(arrivals, phase, begin)


def _peer(peer: Peer, profile: str) -> dict[str, Any]:
    try:
        return {**_peer_phase(peer, profile, FEW), **_peer_phase(peer, profile, MANY)}
    except NotHere as why:
        return {"failed": f"not run: {why}"}


def _peer_phase(peer: Peer, profile: str, phase: Phase) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory, PostgresServer() as server:
        place = Path(directory)
        command = peer_command(peer, profile, "ticks", server.url, place)
        file, plan = place / "lines", {kind: asdict(due) for kind, due in phase.due.items()}
        env = {"BENCH_PLAN": json.dumps(plan)}
        with Child([*command, server.url, file], place / "log", env) as child:
            wait_until(
                lambda: file.exists() and " ready " in file.read_text(),
                START_SECONDS,
                lambda: child.output[-300:],
            )
            begin = _wait_for_a_cycle()
            time.sleep(phase.seconds + LATE_SECONDS)
            assert child.running, child.output[-300:]
        lines = file.read_text().splitlines()
    arrivals = [_parsed(line) for line in lines if line.count(" ") == 2 and " ready " not in line]
    return _figures(arrivals, phase, begin)


def _parsed(line: str) -> Arrival:
    at, kind, due = line.split()
    return float(at), kind, None if due == "-" else float(due)


def _wait_for_a_cycle() -> float:
    """When the next cycle begins; returns half a second before it."""
    begin = (time.time() + 1.5) // CYCLE * CYCLE + CYCLE
    time.sleep(begin - 0.5 - time.time())
    return begin


def _figures(arrivals: Iterable[Arrival], phase: Phase, begin: float) -> dict[str, Any]:
    """Per class: lateness in milliseconds, what arrived of what was due, and each burst's length.

    Where the library does not tell what a run was due for, it is the last due time before it.
    """
    late: dict[str, dict[float, list[float]]] = {kind: {} for kind in phase.due}
    for at, kind, given in arrivals:
        due = round(given) if given is not None else _last_due(phase.due[kind], at)
        if begin <= due < begin + phase.seconds:
            late[kind].setdefault(due, []).append(at - due)
    return {kind: _class_figures(phase, kind, bursts) for kind, bursts in late.items()}


def _last_due(due: Due, at: float) -> int:
    """A clock may be read a little before the due time of a run that is just on time."""
    second = int(at + 0.05)
    while second % 60 not in due.seconds:
        second -= 1
    return second


def _class_figures(phase: Phase, kind: str, bursts: dict[float, list[float]]) -> dict[str, Any]:
    values = [seconds * 1000 for burst in bursts.values() for seconds in burst]
    due = phase.due[kind]
    expected = due.count * phase.cycles * len([s for s in due.seconds if s < CYCLE])
    if not values:
        return {"expected": expected, "arrived": 0}
    return {
        "expected": expected,
        "arrived": len(values),
        "p50_ms": round(percentile(values, 0.5), 1),
        "p99_ms": round(percentile(values, 0.99), 1),
        "worst_ms": round(max(values), 1),
        "burst_seconds": [round(max(burst), 3) for burst in bursts.values()],
    }


# ── what the same work costs without a scheduler ────────────────────────────────────────────────


def _raw() -> dict[str, Any]:
    """Per second: the same call into the same app, and a commit of one row, on this machine."""
    with PostgresServer() as server, Pod.on(server.url, []) as pod:
        command = [sys.executable, "-m", "tests.bench.schedules", "calls", pod.app_address, "1000"]
        seconds = []
        for _ in range(3):
            with Child(command, pod.directory / "calls.log") as caller:
                assert caller.wait(60) == 0, caller.output
            seconds.append(float(caller.output.split()[-1]))
        return {
            "gRPC calls, 64 at once": round(1000 / statistics.median(seconds)),
            "gRPC calls, one at a time": round(asyncio.run(_calls_one_by_one(pod.app_address))),
            "commits, one connection": round(asyncio.run(_commits(server.url, 1))),
            "commits, 8 connections": round(asyncio.run(_commits(server.url, 8))),
        }


async def _calls_one_by_one(address: str, count: int = 300) -> float:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = callback_pb2_grpc.AppCallbackStub(channel)
        await stub.Execute(callback_pb2.ExecuteRequest(name="warm"))
        began = time.perf_counter()
        for number in range(count):
            await stub.Execute(callback_pb2.ExecuteRequest(name="one", run_id=number))
        return count / (time.perf_counter() - began)


async def _commits(url: str, connections: int, each: int = 300) -> float:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as first:
        await first.execute("CREATE TABLE IF NOT EXISTS raw (id bigint, note text)")

    async def writer(number: int) -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for _ in range(each):
                await connection.execute("INSERT INTO raw VALUES (%s, 'succeeded')", (number,))

    began = time.perf_counter()
    await asyncio.gather(*(writer(number) for number in range(connections)))
    return connections * each / (time.perf_counter() - began)


PARTS: dict[str, Callable[[], Any]] = {
    RAW: _raw,
    BATON: _baton,
    f"{RIVER.title}, defaults": partial(_peer, RIVER, "default"),
    f"{RIVER.title}, fastest safe": partial(_peer, RIVER, "fast"),
    f"{PROCRASTINATE.title}, defaults": partial(_peer, PROCRASTINATE, "default"),
    f"{PROCRASTINATE.title}, fastest safe": partial(_peer, PROCRASTINATE, "fast"),
    f"{APSCHEDULER_3.title}, defaults": partial(_peer, APSCHEDULER_3, "default"),
    f"{APSCHEDULER_3.title}, fastest safe": partial(_peer, APSCHEDULER_3, "fast"),
    f"{APSCHEDULER_4.title}, defaults": partial(_peer, APSCHEDULER_4, "default"),
}


# ── the report ──────────────────────────────────────────────────────────────────────────────────


def section(parts: dict[str, Any]) -> Section:
    systems = {title: part for title, part in parts.items() if title != RAW}
    rows = [_row(title, part) for title, part in systems.items()]
    rates = [{"system": title, **_rates(parts, title)} for title in systems]
    text = [
        "Lateness in milliseconds, p50 / p99 / worst; how many of the ticks arrived within"
        f" {LATE_SECONDS:.0f} s of the end. Of a class with fewer than 100 ticks p99 is the worst.",
        table(rows),
        "Runs per second, end to end: 1,000 due at once, until the last has arrived, median and"
        " worst burst. The ratio is Baton's rate over the system's: above 1, Baton is faster.",
        table(rates),
        _raw_text(parts),
        "**What limits it.** One tick: the leader's wake-up, one claim and one call. A thousand:"
        " the unary gRPC calls into the app, which cost Python more processor time than all the"
        " rest; a peer that calls a function in its own process has no such call. procrastinate"
        " waits half a second on purpose after each due time, and runs one job at a time by"
        " default; River looks for work at most every 100 ms by default; APScheduler 3 drops what"
        " is more than a second late by default, and stands alone: a second process would run"
        " everything twice.",
        _where_peers_win(systems),
    ]
    return Section("\n\n".join(text), _charts(systems))


def _row(title: str, part: Any) -> dict[str, str]:
    if why := failed(part):
        return {"system": title, "1 due": why}
    return {"system": title, **{f"{SHOWN[k]} due": _lateness(part[k]) for k in ("one", *_BURSTS)}}


_BURSTS = ("hundred", "thousand")


def _lateness(figures: dict[str, Any]) -> str:
    share = f"{figures['arrived']:,} of {figures['expected']:,}"
    if not figures["arrived"]:
        return f"none of {figures['expected']:,} arrived"
    whole = figures["arrived"] >= figures["expected"]
    three = " / ".join(f"{figures[key]:,.0f}" for key in ("p50_ms", "p99_ms", "worst_ms"))
    return three if whole else f"{three} (**{share}**)"


def _rate(part: Any) -> float | None:
    """Runs per second of the median burst; None where not everything arrived."""
    if failed(part) or part["thousand"]["arrived"] < part["thousand"]["expected"]:
        return None
    return float(1000 / statistics.median(part["thousand"]["burst_seconds"]))


def _rates(parts: dict[str, Any], title: str) -> dict[str, str]:
    if why := failed(parts[title]):
        return {"runs per second": why}
    rate, ours = _rate(parts[title]), _rate(parts[BATON])
    if rate is None:
        return {"runs per second": "did not keep up"}
    worst = 1000 / max(parts[title]["thousand"]["burst_seconds"])
    ratio = f"{ours / rate:.2f}" if ours and title != BATON else ""
    return {"runs per second": f"{rate:,.0f}", "worst burst": f"{worst:,.0f}", "ratio": ratio}


def _raw_text(parts: dict[str, Any]) -> str:
    raw = parts.get(RAW)
    if raw is None or (why := failed(raw)):
        return f"Raw costs: {why if raw else 'not measured'}."
    lines = "; ".join(f"{what} {rate:,}" for what, rate in raw.items())
    rate = _rate(parts[BATON])
    share = ""
    if rate:
        calls = raw["gRPC calls, 64 at once"]
        share = f" Baton's ticks reach {rate / calls:.0%} of the bare calls, 64 at once."
    return f"Raw costs on this machine, per second: {lines}.{share}"


def _where_peers_win(systems: dict[str, Any]) -> str:
    ours = systems[BATON]
    if failed(ours):
        return ""
    wins = []
    for title, part in systems.items():
        if title == BATON or failed(part):
            continue
        better = [
            f"{SHOWN[kind]} due ({_p50_p99(part[kind])} against {_p50_p99(ours[kind])} ms)"
            for kind in SHOWN
            if ours[kind]["arrived"]
            and part[kind]["arrived"] >= part[kind]["expected"]
            and any(part[kind][share] < ours[kind][share] for share in ("p50_ms", "p99_ms"))
        ]
        if better:
            wins.append(f"{title}: {', '.join(better)}")
    return f"**Where a peer is better** (p50 / p99): {'; '.join(wins) or 'in none of these'}."


def _p50_p99(figures: dict[str, Any]) -> str:
    return f"{figures['p50_ms']:,.0f} / {figures['p99_ms']:,.0f}"


def _charts(systems: dict[str, Any]) -> dict[str, str]:
    ran = {title: part for title, part in systems.items() if not failed(part)}
    late = [
        (f"{SHOWN[kind]} due at once", [(t, part[kind].get("p99_ms")) for t, part in ran.items()])
        for kind in SHOWN
    ]
    rates = [("1,000 due at once", [(title, _rate(part)) for title, part in ran.items()])]
    return {
        "ticks-lateness": bars("Lateness of ticks, p99", late, "milliseconds", log=True),
        "ticks-rate": bars("Runs per second, end to end", rates, "runs per second"),
    }
