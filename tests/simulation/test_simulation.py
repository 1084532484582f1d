"""G1 to G6, G8 and G9 hold in every seeded history; every history can be replayed."""

import os
import re
import subprocess
import sys

import pytest

from tests.simulation.cluster import Parts
from tests.simulation.found_at import seeds
from tests.simulation.planted import NoFence
from tests.simulation.scenario import SEEDS, simulate
from tests.simulation.takeover import CLEAN, FAULTS, measure

_SLICES = 25  # none of them near the time limit of a test, on a busy machine either
_IN_SHORT = 10  # of these parts are in `make test`, all in `make test-all`
_PARTS = [
    pytest.param(n, marks=[pytest.mark.deep] if n >= _IN_SHORT else []) for n in range(_SLICES)
]
_REPLAYED = range(5, 9)


@pytest.mark.parametrize("part", _PARTS)
def test_guarantees_hold_under_faults(part: int) -> None:
    """G1 to G6, G8, G9: see `invariants.py` and `work_judge.py`.

    Replay a seed with `python -m tests.simulation --seed N --verbose`.
    """
    takeovers = redeliveries = completions = 0
    for seed in range(part, SEEDS, _SLICES):
        report = simulate(seed)
        takeovers += report.takeovers
        redeliveries += report.redeliveries
        completions += report.completions
        assert not report.violations, f"seed {seed}: {report.violations[0]}"
    share = SEEDS / _SLICES
    assert takeovers > share, "a storm that never changes a leader proves nothing"
    assert completions > 10 * share, "nor does one in which nothing is done"
    assert redeliveries > share / 4, "or nothing is delivered again"


@pytest.mark.parametrize("fault", FAULTS)
def test_takeover_is_in_time(fault: str) -> None:
    """G8: 1 s after a clean release, 10 s after anything else."""
    limit = 1.0 if fault in CLEAN else 10.0
    for seed in range(FAULTS.index(fault), 12 * len(FAULTS), len(FAULTS)):
        takeover = measure(seed)
        assert not takeover.violations, f"seed {seed}: {takeover.violations[0]}"
        assert takeover.seconds <= limit, f"seed {seed}: {fault} took {takeover.seconds:.2f} s"


def test_same_seed_gives_same_history() -> None:
    """Event by event and to the last random number, also where strings hash differently."""
    here = {seed: simulate(seed).trace_hash for seed in _REPLAYED}
    assert {seed: simulate(seed).trace_hash for seed in reversed(_REPLAYED)} == here
    assert len({*here.values()}) == len(_REPLAYED)
    for hash_seed in ("0", "12345"):
        command = [sys.executable, "-m", "tests.simulation", "--traces"]
        command += ["--first", str(_REPLAYED[0]), "--seeds", str(len(_REPLAYED))]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        output = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        traces = dict(re.findall(r"seed (\d+): trace (\w+)", output.stdout))
        assert traces == {str(seed): trace for seed, trace in here.items()}


def test_failing_seed_is_replayed_with_its_failure() -> None:
    """What broke, when and how is the same again."""
    bug = Parts(server=NoFence)
    found = next(r for seed in seeds("no fence") if (r := simulate(seed, parts=bug)).violations)
    again = simulate(found.seed, parts=bug)
    assert (again.violations, again.trace_hash) == (found.violations, found.trace_hash)
