"""The simulator finds what it is made for: each planted bug falls within the default seeds."""

import pytest

from sidecar.execution import pipeline
from tests.simulation.cluster import Parts
from tests.simulation.found_at import BLIND_RETRY, found, seeds
from tests.simulation.planted import PLANTED, BlindRetry


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name: str) -> None:
    """Each guarantee it breaks (G1, G2, G3, G4, G6, G9) is reported as broken."""
    parts, guarantee = PLANTED[name]
    assert found(parts, guarantee, seeds(name)) is not None, f"{guarantee} is not found broken"


def test_blind_retry_of_a_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """G4: what was accepted is taken for late by the leader that reported it."""
    monkeypatch.setattr(pipeline, "Recorder", BlindRetry)
    assert found(Parts(), "G4", seeds(BLIND_RETRY)) is not None, "G4 is not found broken"
