"""The report: one table of all faults, what was expected of them, and the plot of takeovers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from tests import charts
from tests.acceptance.faults.catalogue import named
from tests.acceptance.faults.run import Result
from tests.lab.evidence import Terms
from tests.lab.verdict import RULES

ROOT = Path(__file__).resolve().parents[3]
PAGE, PLOT = ROOT / "docs" / "faults.md", ROOT / "docs" / "faults" / "takeover.svg"

_HEAD = """# Faults

Written by `make faults`, which breaks a running cluster in {count} ways, one after another, and
hands what was seen to a checker that shares no code with the product. `make faults ONLY=disk-full`
runs one.

Each fault has servers and replicas of its own (three, unless it says otherwise), with the default
timers but for a drain of 5 s instead of 20 s and a time to live of 3 s in Redis instead of 30 s;
Postgres runs without fsync, since processes are killed and never the machine. While it lasts, three
schedules tick each second, a singleton counts in its state, every app writes and reads State, and
probes ask each pod about ten times a second. Afterwards the cluster has to be well again, and the
whole history is judged by {rules} rules, each of which is itself tested by seeded violations
(`tests/unit/test_fault_checker.py`). A history in which nothing happened fails.

{verdict}

![takeover times](faults/takeover.svg)

Takeover counts from the fault to `OnBecomeLeader` in another app (after a clean release: from its
end), recovery from the healing of the fault until somebody leads; 0 means that leadership was never
lost. Times in seconds, median and worst. "Green after" is how long after that a probe was still
red. Growth is the most that any sidecar which lived through it holds more at the end than before;
connections are the most that one holds to Postgres at the end. "Busy" is the load average of the
machine per core: above 1, everything had to wait for a processor, and times are worse than they are
on a quiet machine.

| {columns} |
|{rulers}|
"""
_COLUMNS = (
    "fault", "takeover", "recovery", "green after", "ticks due / ended",
    "writes acknowledged / lost", "reads", "busy", "connections", "more fds", "more MB", "verdict",
)  # fmt: skip
_RULES = """
## What is checked

| rule | says |
|---|---|
"""


def markdown(results: Sequence[Result]) -> str:
    broken = [result.name for result in results if result.violations]
    ran = sum(not result.skipped for result in results)
    said = f"{ran} of {len(results)} faults were run, {ran - len(broken)} without a violation."
    head = _HEAD.format(
        count=len(results), rules=len(RULES), columns=" | ".join(_COLUMNS),
        rulers="---|" * (len(_COLUMNS) - 1) + "---",
        verdict=f"**{said}**" + (f" Violations: {', '.join(broken)}." if broken else ""),
    )  # fmt: skip
    rules = "".join(f"| `{name}` | {_first_line(rule.__doc__)} |\n" for name, rule in RULES.items())
    return head + "".join(map(_row, results)) + _RULES + rules + _details(results)


def plot(results: Sequence[Result]) -> str:
    """Takeovers by fault, and recoveries where there is no takeover to speak of."""
    rows = []
    for result in results:
        samples = [s for s in result.takeovers or result.recoveries if s is not None]
        if samples:
            what = result.name if result.takeovers else f"{result.name} (recovery)"
            rows.append((what, samples))
    return charts.strips("From the fault to the next leader", rows, "seconds")


def write(results: Sequence[Result]) -> None:
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(plot(results))
    PAGE.write_text(markdown(results))


def line(result: Result) -> str:
    """One result for a terminal."""
    if result.skipped:
        return f"{result.name:24} skipped: {result.skipped}"
    verdict = "ok" if not result.violations else f"{len(result.violations)} VIOLATIONS"
    takeover = f"takeover {_times(result.takeovers)}, recovery {_times(result.recoveries)}"
    takeover += f", green after {result.green_after:.1f}"
    ticks = f"ticks {result.ticks_ended}/{result.ticks_due} {result.outcomes}"
    writes = f"writes {result.acknowledged} lost {result.lost}, reads {result.reads}"
    growth = ", ".join(f"{what} {value:.0f}" for what, value in result.growth.items())
    parts = (takeover, ticks, writes, growth, str(result.notes or ""))
    return f"{result.name:24} {verdict:14} {result.seconds:4.0f} s  " + "; ".join(
        filter(None, parts)
    )


def _row(result: Result) -> str:
    if result.skipped:
        return f"| {result.name} |{' |' * (len(_COLUMNS) - 2)} skipped: {result.skipped} |\n"
    verdict = "holds" if not result.violations else f"**violations: {len(result.violations)}**"
    growth = result.growth
    cells = (
        result.name, _times(result.takeovers), _times(result.recoveries),
        f"{result.green_after:.1f}",
        f"{result.ticks_due:,} / {result.ticks_ended:,}",
        f"{result.acknowledged:,} / {result.lost}", f"{result.reads:,}",
        f"{result.busy:.1f}" if result.busy else "–",
        f"{growth['connections']:.0f}", f"{growth['descriptors']:+.0f}",
        f"{growth['megabytes']:+.1f}", verdict,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def _details(results: Sequence[Result]) -> str:
    parts = ["\n## What was done\n\n"]
    for result in results:
        rounds = named(result.name).rounds
        times = f" ({rounds} times)" if rounds > 1 else ""
        parts.append(f"- **{result.name}**{times}: {result.about}.")
        if result.outcomes:
            said = ", ".join(f"{count:,} {what}" for what, count in sorted(result.outcomes.items()))
            parts.append(f" Ticks: {said}.")
        for what, value in result.notes.items():
            parts.append(f" {what.capitalize()}: {value}.")
        if unjudged := _unjudged(named(result.name).terms):
            parts.append(f" Not judged: {unjudged}.")
        if result.exempt:
            rules = ", ".join(f"`{rule}`" for rule in result.exempt)
            parts.append(f" Not judged: {rules}; {result.exempt_because}.")
        parts.append("\n")
        parts += [f"  - violation: {text[:300]}\n" for text in result.violations[:10]]
    return "".join(parts)


def _unjudged(terms: Terms) -> str:
    """What physics takes from a write or a read while the fault lasts; see `verdict`."""
    if terms.lossy:
        return "writes acknowledged during the fault, which may be lost with the server"
    return "reads of the leader during the fault, from a server that was replaced" * terms.behind


def _times(samples: Sequence[float | None]) -> str:
    known = [sample for sample in samples if sample is not None]
    if not samples:
        return "–"
    if len(known) < len(samples):
        return "never"
    return f"{statistics.median(known):.2f} / {max(known):.2f}"


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]
