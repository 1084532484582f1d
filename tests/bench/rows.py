"""Sections of benches that give rows: a table, a chart, and where the other side is faster."""

from __future__ import annotations

from typing import Any

from tests.bench.report import Section
from tests.bench.results import failed, table
from tests.charts import bars

Row = dict[str, Any]


def section(name: str, limits: str, rows: Any) -> Section:
    if why := failed(rows):
        return Section(why)
    text = [table(rows)]
    if limits:
        text.append(f"**What limits it.** {limits}")
    if slower := [row for row in rows if "ours_per_second" in row and row["ratio"] < 1]:
        cases = "; ".join(f"{_label(row)} ({row['ratio']})" for row in slower)
        text.append(f"**Where the bare server is faster:** {cases}.")
    return Section("\n\n".join(text), _charts(name, rows))


def _label(row: Row) -> str:
    return f"{row['name']}, {row['callers']} at once" if "callers" in row else str(row["name"])


def _charts(name: str, rows: list[Row]) -> dict[str, str]:
    speeds = [
        (_label(row), [("Baton", row["ours_per_second"]), ("bare", row["peer_per_second"])])
        for row in rows
        if "ours_per_second" in row
    ]
    sizes = [
        (_label(row), [("sidecar", row["rss_mb"]), ("its packages alone", row["packages_mb"])])
        for row in rows
        if "rss_mb" in row
    ]
    if speeds:
        return {name: bars(f"{name.capitalize()}, calls per second", speeds, "calls per second")}
    return {name: bars("Resident memory at rest", sizes, "MB")} if sizes else {}
