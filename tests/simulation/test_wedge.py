"""G10: a wedge turns red in time, moves on once, and leadership never goes round in circles."""

from collections.abc import Generator
from dataclasses import replace
from datetime import datetime

import pytest

from sidecar.health import switch
from sidecar.model import health
from sidecar.model.health import BackOff, Judgement, VitalsReading, Watch
from tests.simulation.wedge import Where, wedge

_SEEDS = 3


@pytest.mark.parametrize("where", Where)
def test_wedged_handlers_show_and_move_the_group_at_most_once_per_runner(where: Where) -> None:
    """G10: red in time and green again; only with somebody else there does a leader step down."""
    step_downs = 0
    for seed in range(_SEEDS):
        found = wedge(seed, where)
        assert not found.violations, f"seed {seed}: {found.violations[0]}"
        step_downs += found.step_downs
    assert (step_downs == 0) == (where is Where.ALONE)


def test_stepping_down_without_a_pause_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: the group is handed from one wedged leader to the next, and back to the first."""
    monkeypatch.setattr(BackOff, "allows", lambda self, now: True)
    assert "G10: round in circles" in _first_problem(Where.FLAPPING)


def test_stepping_down_for_what_was_inherited_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: a leader that had no chance to do better gives way to nobody."""

    def judging(
        watch: Watch, reading: VitalsReading, now: datetime, seconds: float
    ) -> Generator[None, None, Judgement]:
        judgement = yield from health.judging(watch, reading, now, seconds)
        return replace(judgement, own=judgement.stale)

    monkeypatch.setattr(switch, "judging", judging)
    assert "for what it inherited" in _first_problem(Where.EVERYWHERE)


def _first_problem(where: Where) -> str:
    for seed in range(_SEEDS):
        if problems := wedge(seed, where).violations:
            return problems[0]
    return "nothing"
