"""`make bench`: measures, and writes docs/benchmarks.md from all that was ever measured here.

    python -m tests.bench [--render] [NAME …]

Each bench runs in a process of its own with a bound on its time; what it measured until then is
kept. A part that fails gives a row that says so. Without names, all that are part of the report.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.bench import report, results, rows
from tests.bench.peers import ALL, NotHere
from tests.bench.report import Bench, Section
from tests.bench.results import Measured

TOTAL_SECONDS = 1490.0

# In the order of the report. Those with a number are modules with `run() -> rows` and that bound.
_REPORTED: Mapping[str, float | None] = {
    "takeover": None,
    "ticks": None,
    "growth": None,
    "footprint": 180.0,
    "state": 120.0,
    "durable": 120.0,
}
# By name only: the report has the same from `ticks` and `growth`.
_NAMED: Mapping[str, float | None] = {"schedules": 900.0}


def bench(name: str) -> Bench:
    bound = {**_REPORTED, **_NAMED}[name]
    module = importlib.import_module(f"tests.bench.{name}")
    intro = _intro(module)
    if bound is None:
        return Bench(module.TITLE, intro, module.SECONDS, module.PARTS, module.section)
    limits = getattr(module, "LIMITS", "")

    def section(parts: dict[str, Any]) -> Section:
        return rows.section(name, limits, parts["rows"])

    return Bench(name.capitalize(), intro, bound, {"rows": module.run}, section)


def _intro(module: Any) -> str:
    """The docstring, but for how to run it alone."""
    return str(module.__doc__ or "").partition("Run alone:")[0].strip()


def main() -> None:
    names = [*_REPORTED, *_NAMED]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--render", action="store_true", help="only write the report anew")
    parser.add_argument("--measure", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    if unknown := set(options.names) - set(names):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if not options.render:
        _measure_all(options.names or list(_REPORTED))
    benches = {name: bench(name) for name in names if results.load(name)}
    measured = {name: found for name in names if (found := results.load(name))}
    report.write(benches, measured)
    print(f"written to {report.REPORT.relative_to(results.ROOT)}")


def _measure_all(chosen: Sequence[str]) -> None:
    if {"takeover", "ticks"} & set(chosen):
        _install_peers()
    ends = time.monotonic() + TOTAL_SECONDS
    for name in sorted(chosen, key=lambda name: name == "growth"):  # the longest may be cut short
        _in_a_process(name, ends - time.monotonic())


def _install_peers() -> None:
    """Before any clock runs; what cannot be installed is said again in its row."""
    for peer in ALL:
        try:
            peer.command()
        except NotHere as why:
            print(f"{peer.title}: not run: {why}", flush=True)


def measure(name: str) -> None:
    """Part by part; the file is up to date after each."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `with` blocks clean up
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # wires of killed processes
    found, began = Measured.begun(name), time.monotonic()
    for part, measured in bench(name).parts.items():
        print(f"{name}: {part} …", flush=True)
        try:
            found.parts[part] = measured()
        except Exception as error:  # a failed part is a row, not the end
            traceback.print_exc()
            found.parts[part] = {"failed": results.reason(error)}
        found = replace(
            found,
            seconds=round(time.monotonic() - began, 1),
            load_after=round(os.getloadavg()[0], 2),
        )
        found.save()


def _in_a_process(name: str, seconds_left: float) -> None:
    """Bounded; what is missing afterwards says why."""
    about, began = bench(name), time.time()
    seconds = max(1.0, min(about.seconds, seconds_left))
    child = subprocess.Popen([sys.executable, "-m", "tests.bench", "--measure", name])
    why = "failed: ended before its turn"
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        why = f"failed: not within {seconds:.0f} s"
    finally:
        _end(child)
    found = results.load(name)
    file = results.STORE / f"{name}.json"
    if found is None or file.stat().st_mtime < began:
        found = Measured.begun(name)
    for part in about.parts:
        found.parts.setdefault(part, {"failed": why})
    found.save()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Its own children die with it, by the kernel's hand if need be."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
