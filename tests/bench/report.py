"""docs/benchmarks.md and its charts, made of all that `.cache/bench/` holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.peers import ALL
from tests.bench.results import ROOT, Measured, reason

REPORT = ROOT / "docs" / "benchmarks.md"
CHARTS = ROOT / "docs" / "benchmarks"

_HEAD = """# Benchmarks

Written by `make bench`; `make bench ONLY="takeover ticks"` measures these anew and keeps the rest.
It takes about 23 minutes, the first time a few more to install the peers (`~/.cache/baton-bench`).
Both sides of every comparison are measured in one run on one machine, medians and worst of several
rounds. Ratios travel to other machines; raw figures are this machine's, at that moment.

Peers come from their registries, pinned, with their defaults and, where they have settings for it,
with their fastest safe ones: {peers}. Their programs are in `tests/bench/peers/`.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """What one bench has to say: Markdown, and SVG documents by file name."""

    text: str
    charts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bench:
    """One section of the report: parts that are measured one after the other."""

    title: str
    intro: str
    seconds: float
    parts: Mapping[str, Callable[[], Any]]
    section: Callable[[dict[str, Any]], Section]


def write(benches: Mapping[str, Bench], measured: Mapping[str, Measured]) -> None:
    """The whole report; a bench that was never measured is left out."""
    CHARTS.mkdir(parents=True, exist_ok=True)
    parts = [_HEAD.format(peers=", ".join(peer.title for peer in ALL))]
    for name, bench in benches.items():
        if name in measured:
            parts.append(_section(bench, measured[name]))
    REPORT.write_text("\n".join(parts))


def _section(bench: Bench, found: Measured) -> str:
    try:
        section = bench.section(found.parts)
    except Exception as error:  # of an older form, say: the other sections are shown all the same
        section = Section(f"not shown ({reason(error)}); measure it again")
    for name, svg in section.charts.items():
        (CHARTS / f"{name}.svg").write_text(svg)
    images = "\n\n".join(f"![{name}](benchmarks/{name}.svg)" for name in section.charts)
    note = (
        f"*{found.when}, {found.seconds:.0f} s; {found.machine}; Postgres {found.postgres};"
        f" load {found.load_before} before, {found.load_after} after.*"
    )
    busy = found.load_before > (os.cpu_count() or 1)
    warning = "**Measured on a busy machine: see the load below; measure again.**" if busy else ""
    texts = [f"## {bench.title}", warning, bench.intro, section.text, images, note]
    return "\n\n".join(text for text in texts if text) + "\n"
