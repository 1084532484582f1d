"""docs/guarantees.md names tests that exist and that claim the guarantee they are named for.

`_problems` is itself tried on pages that are wrong, so that the check is known to fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.lab.pages import ROOT

_BUILT = range(1, 19)
_OF_JOBS = range(13, 19)  # the simulator does not know jobs yet
_LEVELS = ({"unit", "simulation"}, {"integration", "acceptance"})
_PAGE = (ROOT / "docs" / "guarantees.md").read_text()
_EXAMPLE = _PAGE[_PAGE.index("## G2 ") : _PAGE.index("## G3 ")]


def _sections(page: str) -> dict[int, str]:
    """The text below each heading `## G4 …`, by number."""
    parts = re.split(r"^#+ (?:G(\d+) )?.*$", page, flags=re.MULTILINE)
    return {
        int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True) if number
    }


def _proofs(text: str) -> list[tuple[str, str]]:
    """File and test of each proof: "- [`unit/test_x.py`](…): `test_a`, `test_b`"."""
    lines = re.findall(r"^- \[`([^`]+)`\]\([^)]+\): (.+)$", text, re.MULTILINE)
    return [(file, test) for file, tests in lines for test in re.findall(r"`(\w+)`", tests)]


@cache
def _docstrings(file: str) -> dict[str, list[str]]:
    path = ROOT / "tests" / file
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(path.read_text() if path.is_file() else "")):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(node.name, []).append(ast.get_docstring(node) or "")
    return found


def _claimed(docstring: str) -> set[int]:
    """The guarantees that it names: "G1, G4", "G1 to G6"."""
    claimed: set[int] = set()
    for first, last in re.findall(r"\bG(\d+)\b(?: to G(\d+)\b)?", docstring):
        claimed.update(range(int(first), int(last or first) + 1))
    return claimed


def _problems(number: int, text: str) -> Iterator[str]:
    proofs = _proofs(text)
    for file, test in proofs:
        docstrings = _docstrings(file).get(test, [])
        if not test.startswith("test_") or not docstrings:
            yield f"G{number}: there is no test {test} in {file}"
        elif not all(number in _claimed(docstring) for docstring in docstrings):
            yield f"G{number}: the docstring of {test} in {file} does not name it"
    for levels in _LEVELS[1:] if number in _OF_JOBS else _LEVELS:
        if not any(file.partition("/")[0] in levels for file, _ in proofs):
            yield f"G{number}: no proof in {' or '.join(sorted(levels))}"


@pytest.mark.parametrize("number", _BUILT)
def test_each_guarantee_is_proven_by_the_tests_named(number: int) -> None:
    assert not list(_problems(number, _sections(_PAGE)[number]))


def test_every_guarantee_is_on_the_page() -> None:
    assert set(_sections(_PAGE)) == {*_BUILT}


def test_every_line_that_looks_like_a_proof_is_read_as_one() -> None:
    lines = [line for line in _PAGE.splitlines() if line.startswith("- ")]
    assert all(_proofs(line) for line in lines)
    assert len(lines) > 50


@pytest.mark.parametrize(
    ("shown", "instead", "problem"),
    [
        ("test_postgres_restarts", "test_nobody_wrote", "there is no test test_nobody_wrote"),
        ("acceptance/test_failover.py", "acceptance/test_gone.py", "in acceptance/test_gone.py"),
        # Exists, and proves another guarantee.
        (
            "test_postgres_restarts",
            "test_an_unhealthy_app_does_not_lead",
            "does not name it",
        ),
        # A helper beside the tests is no test.
        ("test_postgres_restarts", "_restart", "there is no test _restart"),
        (r"- \[`(?:unit|simulation)/.*\n", "", "no proof in simulation or unit"),
        (r"- \[`(?:integration|acceptance)/.*\n", "", "no proof in acceptance or integration"),
    ],
)
def test_a_page_that_is_wrong_is_found(shown: str, instead: str, problem: str) -> None:
    assert not list(_problems(2, _sections(_EXAMPLE)[2]))
    wrong = re.sub(shown, instead, _EXAMPLE)
    assert wrong != _EXAMPLE
    assert problem in "\n".join(_problems(2, _sections(wrong)[2]))


def test_which_guarantees_a_docstring_claims() -> None:
    assert _claimed("G1 G2: this, and G11.") == {1, 2, 11}
    assert _claimed("G1 to G4, G6: all of it.") == {1, 2, 3, 4, 6}
    assert not _claimed("G1x, xG2, PG3, G: none.")
