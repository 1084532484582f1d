"""docs/architecture.md is about this code: its files, layers, tables and phases exist."""

from __future__ import annotations

import re
import tomllib

import pytest

from sidecar.model.election_group import _MOVES
from sidecar.model.election_types import Phase
from tests.lab.pages import ROOT

_PAGE = (ROOT / "docs" / "architecture.md").read_text()
_SIDECAR = ROOT / "sidecar"
_POSTGRES = _SIDECAR / "adapters" / "postgres"
_HOMES = (_SIDECAR, _POSTGRES, ROOT)


def _named_files(page: str) -> set[str]:
    """Every path of a module, a statement or a folder that the page names, drawings included."""
    files = set(re.findall(r"(?<![\w./])(?:[\w-]+/)*\w+\.(?:py|sql|proto)\b", page))
    return files | set(re.findall(r"`((?:\w+/)+)`", page))


def _missing(page: str) -> set[str]:
    return {
        name for name in _named_files(page) if not any((home / name).exists() for home in _HOMES)
    }


def test_files_that_are_named_exist() -> None:
    assert len(_named_files(_PAGE)) > 60
    assert not _missing(_PAGE)


@pytest.mark.parametrize("name", ["model/gone.py", "queries/runs/gone.sql", "sidecar/gone/"])
def test_a_file_that_is_gone_is_found(name: str) -> None:
    assert _missing(f"{_PAGE}\nSee `{name}`.\n") == {name}


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    checked = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    section = _PAGE.partition("## Layers")[2].partition("## ")[0]
    drawn = section.partition("```text\n")[2].partition("```")[0].splitlines()
    assert [_modules(line) for line in drawn] == [_modules(layer) for layer in checked]


def _modules(layer: str) -> set[str]:
    return set(re.findall(r"\w+", layer))


def test_every_table_has_its_row() -> None:
    sql = "".join(file.read_text() for file in (_POSTGRES / "migrations").glob("*.sql"))
    sql += (_POSTGRES / "migrate.py").read_text()
    tables = set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?baton\.(\w+)", sql))
    section = _PAGE.partition("## Tables")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} == tables


def test_the_moves_of_the_election_are_those_that_are_allowed() -> None:
    section = _PAGE.partition("the election's phases")[2].partition("###")[0]
    rows = re.findall(r"^\| ([A-Z]+) \|[^|]+\| ([^|]+) \|$", section, re.MULTILINE)
    shown = {
        Phase[phase]: {Phase[to] for to in re.findall(r"\b[A-Z]{2,}\b", text)}
        for phase, text in rows
    }
    assert shown == _MOVES


def test_every_task_that_is_named_is_created() -> None:
    source = "".join(file.read_text() for file in _SIDECAR.rglob("*.py"))
    section = _PAGE.partition("## What runs in which task")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`([\w.]+)(?:<run>)?`", cell)}
    assert len(names) > 20
    for name in names:
        assert re.search(rf'"{re.escape(name)}(?:\{{[^"]*)?"', source), name
