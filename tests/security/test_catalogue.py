"""The catalogue of bad inputs: one place that knows them all, by surface, and counts them (G11).

Each entry has its expected error where it stands; a surface that shrinks is noticed here.
"""

from __future__ import annotations

import pytest

from tests.acceptance import test_access
from tests.security import test_app_answers, test_floods, test_rows
from tests.unit import test_config_catalogue

_CONFIG = list(test_config_catalogue.catalogue())

_ANSWERS = test_app_answers.EXPECTED.items()
_CALLS = test_access.BAD_CALLS

CATALOGUE: dict[str, list[str]] = {
    "config": [case.name for case in _CONFIG if not case.environ],
    "environment": [case.name for case in _CONFIG if case.environ],
    "gRPC": [f"{call[0]}.{call[2]} {call[3]} {call[4]} {call[1]}" for call in _CALLS],
    "HTTP": list(test_floods.BAD_REQUESTS),
    "app answers": [
        *(f"execute: {name}" for name, (_, error) in _ANSWERS if error),
        *(f"health: {name}" for name in test_app_answers.UNHEALTHY),
        *(f"leadership: {name}" for name in test_app_answers.REFUSALS),
    ],
    "rows": [
        *(f"schedule: {name}" for name in test_rows.SCHEDULES),
        *(f"run: {name}" for name in test_rows.RUNS),
        *(f"record: {name}" for name in test_rows.RECORDS),
        *(f"other: {name}" for name in test_rows.OTHERS),
    ],
}
AT_LEAST = {"config": 100, "environment": 15, "gRPC": 40, "HTTP": 18, "app answers": 40, "rows": 50}


@pytest.mark.parametrize("surface", CATALOGUE)
def test_every_surface_is_covered(surface: str) -> None:
    entries = CATALOGUE[surface]
    assert len(set(entries)) == len(entries), "an entry is there twice"
    assert len(entries) >= AT_LEAST[surface]


def test_the_whole_catalogue() -> None:
    counts = {surface: len(entries) for surface, entries in CATALOGUE.items()}
    print(counts)
    assert sum(counts.values()) >= 250
