"""What grows with the number of schedules, of sidecars, and of rows of history.

From one sidecar with 100 schedules and no history, one of the three is made larger at a time. While
it is measured, one tick is due each second and 100 at once each five seconds. `ready` is from the
start of all sidecars at once, on what stands in the database, until one leads and all are ready;
queries are counted by Postgres itself (pg_stat_statements); processor time is the leader's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import psycopg

from devtools.servers import PostgresServer
from tests.bench.fleet import Fleet, running
from tests.bench.report import Section
from tests.bench.results import failed, percentile, table
from tests.bench.schedules import _FILL as FILL
from tests.charts import bars

TITLE = "Growth"
SECONDS = 840.0
SETTLE_SECONDS = 4.0
WINDOW_SECONDS = 16.0
HEARTBEAT_WINDOW_SECONDS = 36.0  # with many schedules: their heartbeat, each 30 s, is in it
START_SECONDS = 200.0
BASE = "1 sidecar, 100 schedules, no history"
SETTINGS: dict[str, str | int] = {
    "max_connections": 400,
    "shared_preload_libraries": "pg_stat_statements",
    "max_wal_size": "4GB",
}
SCHEDULES = [
    {"name": "each", "every": "1s"},
    *({"name": f"burst-{n:02}", "cron": "*/5 * * * * *"} for n in range(100)),
]

# Daily, spread over the minutes of the day, as the API would have stored them. The clone of one
# that Baton stored itself: only the name, the time and what follows from it differ.
_MORE = """
INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, payload, watermark,
    next_tick, next_due_at)
SELECT cluster_id, group_id, 'daily-' || n, 'api',
    jsonb_set(definition, '{cron}', to_jsonb(format('%%s %%s * * *', n %% 60, n / 60 %% 24))),
    payload, clock_timestamp(), tick, tick
FROM baton.schedule, generate_series(1, %(count)s) AS n,
    LATERAL (SELECT date_trunc('day', now(), 'UTC') + n / 60 %% 24 * interval '1 hour'
        + n %% 60 * interval '1 min' AS today) AS time,
    LATERAL (SELECT CASE WHEN today > now() THEN today ELSE today + interval '1 day' END AS tick)
        AS next
WHERE schedule.name = 'burst-00'
"""


def measure(sidecars: int = 1, schedules: int = 100, rows: int = 0) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as directory,
        PostgresServer(settings=SETTINGS) as server,
        running(Path(directory), server.url, sidecars, {"schedules": SCHEDULES}) as fleet,
    ):
        if schedules > 100 or rows:
            _prepare(fleet, schedules - 100, rows)
        ready = fleet.start(START_SECONDS)
        seconds = HEARTBEAT_WINDOW_SECONDS if schedules > 1_000 else WINDOW_SECONDS
        return {"ready_seconds": round(ready, 1), **_window(fleet, seconds), **_takeover(fleet)}


def _prepare(fleet: Fleet, schedules: int, rows: int) -> None:
    """A first life makes the tables; then the rest is written beside it."""
    fleet.start(START_SECONDS)
    fleet.stop()
    with psycopg.connect(fleet.url, autocommit=True) as connection:
        if schedules:
            connection.execute(_MORE.encode(), {"count": schedules})
        if rows:
            found = connection.execute("SELECT cluster_id, id FROM baton.leader_group").fetchone()
            assert found is not None
            parameters = {"cluster_id": found[0], "group_id": found[1], "rows": rows}
            connection.execute(FILL.encode(), parameters)
        connection.execute("VACUUM ANALYZE")  # as autovacuum would have by now


def _window(fleet: Fleet, seconds: float) -> dict[str, Any]:
    """What a while costs, and how late its ticks were."""
    time.sleep(SETTLE_SECONDS)
    leader = fleet.leader()
    fleet.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    began, cpu, queries = time.time(), leader.cpu_seconds(), _queries(fleet)
    time.sleep(seconds)
    ended = time.time()
    cpu_share = (leader.cpu_seconds() - cpu) / (ended - began)
    others = [sidecar.memory_mb() for sidecar in fleet.sidecars if sidecar is not leader]
    late = [
        (line.name, line.due, (line.at - line.due) * 1000)
        for line in fleet.lines()
        if line.due and began <= line.due < ended - 1
    ]
    singles = [ms for name, due, ms in late if name == "each" and due % 5]
    bursts: dict[float, float] = {}
    for name, due, ms in late:
        if name.startswith("burst"):
            bursts[due] = max(ms, bursts.get(due, 0.0))
    return {
        "queries_per_second": round((_queries(fleet) - queries) / (time.time() - began), 1),
        "connections": fleet.query("SELECT count(*) FROM pg_stat_activity WHERE datname <> ''") - 1,
        "terms_lost": len(fleet.became(began)),
        "leader_mb": round(leader.memory_mb()),
        **({"standby_mb": round(mean(others))} if others else {}),
        "cpu_percent": round(cpu_share * 100, 1),
        "tick_p50_ms": round(percentile(singles, 0.5), 1) if singles else None,
        "tick_worst_ms": round(max(singles), 1) if singles else None,
        "burst_ms": round(median(bursts.values())) if bursts else None,
        "burst_worst_ms": round(max(bursts.values())) if bursts else None,
    }


def _queries(fleet: Fleet) -> int:
    return int(fleet.query("SELECT sum(calls) FROM pg_stat_statements"))


def _takeover(fleet: Fleet) -> dict[str, Any]:
    """After kill -9 of the leader, where there is another."""
    if len(fleet.sidecars) == 1:
        return {}
    leader, since = fleet.leader(), time.time()
    leader.process.kill()
    deadline = time.monotonic() + 30
    while not (became := fleet.became(since)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return {"takeover_seconds": round(became[0] - since, 2) if became else None}


PARTS: dict[str, Callable[[], Any]] = {
    BASE: measure,
    "1,000 schedules": partial(measure, schedules=1_000),
    "10,000 schedules": partial(measure, schedules=10_000),
    "100,000 schedules": partial(measure, schedules=100_000),
    "10 sidecars": partial(measure, sidecars=10),
    "50 sidecars": partial(measure, sidecars=50),
    "1,000,000 rows": partial(measure, rows=1_000_000),
    "100,000 rows": partial(measure, rows=100_000),
}

_COLUMNS = {
    "ready s": ("ready_seconds",),
    "queries/s": ("queries_per_second",),
    "connections": ("connections",),
    "terms lost": ("terms_lost",),
    "leader MB": ("leader_mb",),
    "standby MB": ("standby_mb",),
    "leader CPU %": ("cpu_percent",),
    "1 tick, ms (p50, worst)": ("tick_p50_ms", "tick_worst_ms"),
    "100 ticks, ms (median, worst)": ("burst_ms", "burst_worst_ms"),
    "takeover after kill -9, s": ("takeover_seconds",),
}


def section(parts: dict[str, Any]) -> Section:
    rows = [_row(title, part) for title, part in parts.items()]
    text = [
        table(rows),
        _per_standby(parts),
        "**What limits it.** Schedules: a leader keeps only the due times of the near future in"
        " memory, Postgres the rest, through an index. Sidecars: the start is Python reading its"
        " code, some 1.3 s of a core for each, all on this one machine; a standby asks once per"
        " second whether the lock is free, and says every five that it lives, which is nearly all"
        " that it asks. Rows: what a leader asks again and again is indexed"
        " over live runs only, so ended ones cost it nothing.",
    ]
    return Section("\n\n".join(text), _charts(parts))


def _row(title: str, part: Any) -> dict[str, str]:
    if why := failed(part):
        return {"with": title, "ready s": why}
    cells = {
        column: ", ".join(_figure(part[key]) for key in keys if key in part)
        for column, keys in _COLUMNS.items()
    }
    return {"with": title, **cells}


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:,}"


def _per_standby(parts: dict[str, Any]) -> str:
    base, fifty = parts.get(BASE), parts.get("50 sidecars")
    if not base or not fifty or failed(base) or failed(fifty):
        return ""
    each = (fifty["queries_per_second"] - base["queries_per_second"]) / 49
    return f"A standby adds {each:.1f} queries per second at Postgres (50 sidecars against one)."


def _charts(parts: dict[str, Any]) -> dict[str, str]:
    ran = {title: part for title, part in parts.items() if not failed(part)}

    def groups(keys: dict[str, str]) -> list[tuple[str, list[tuple[str, float | None]]]]:
        return [(title, [(k, part.get(v)) for k, v in keys.items()]) for title, part in ran.items()]

    late = {"1 tick, p50": "tick_p50_ms", "100 ticks, last": "burst_ms"}
    cost = {"leader, MB": "leader_mb", "queries per second": "queries_per_second"}
    return {
        "growth-lateness": bars("Lateness as things grow", groups(late), "milliseconds", log=True),
        "growth-cost": bars("Memory and queries as things grow", groups(cost), "see label", True),
    }
