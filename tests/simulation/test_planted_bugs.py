"""The simulator finds what it is made for: each planted bug falls within the default seeds."""

import pytest

from sidecar.dispatch import dispatcher
from tests.simulation.cluster import Parts
from tests.simulation.planted import PLANTED, BlindRetry
from tests.simulation.scenario import SEEDS, simulate


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name: str) -> None:
    """Each guarantee it breaks (G1, G2, G3, G4, G6, G9) is reported as broken."""
    _expect(*PLANTED[name])


def test_blind_retry_of_a_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """G4: what was accepted is taken for late by the leader that reported it."""
    monkeypatch.setattr(dispatcher, "Completions", BlindRetry)
    _expect(Parts(), "G4")


def _expect(parts: Parts, guarantee: str) -> None:
    """Within the default seeds, from the first one on."""
    for seed in range(SEEDS):
        if any(f" s: {guarantee}:" in v for v in simulate(seed, parts=parts).violations):
            return
    pytest.fail(f"{guarantee} is not found broken in {SEEDS} seeds")
