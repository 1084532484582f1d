"""The short tier of the fault suite: what no other test of `make test` breaks.

`make faults` runs all faults, for longer and more than once; see `tests/acceptance/faults`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.faults.catalogue import named
from tests.acceptance.faults.run import run

# Less of everything than in the long tier, but never nothing.
LEAST = {"ticks": 20, "executions": 15, "commits": 20, "put": 15, "add": 5, "count": 10,
         "strong": 15, "cached": 15, "own": 15, "probes": 40}  # fmt: skip


_DEEP = [pytest.param(name, marks=pytest.mark.deep) for name in ("connection-limit", "disk-full")]


@pytest.mark.timeout(600)  # what the arena waits for has time limits of its own
@pytest.mark.parametrize("name", [*_DEEP, "postgres-failover"])
def test_everything_holds_through_a_fault(name: str, tmp_path: Path) -> None:
    """G1 to G10, as far as they are touched: the judge finds nothing in the whole history."""
    fault = named(name)
    if reason := fault.why_not():
        pytest.skip(reason)
    short = replace(fault, hold=5.0, rest=1.0, terms=replace(fault.terms, least=LEAST))
    result = run(short, tmp_path)
    assert not result.violations, "\n".join(result.violations)
