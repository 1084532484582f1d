"""The audit never calls sound what it could not look up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.security import audit

CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}


@pytest.mark.parametrize(
    ("dependencies", "code"),
    [
        ([CLEAN], audit.SOUND),
        ([CLEAN, SKIPPED], audit.UNKNOWN),
        ([CLEAN, SKIPPED, BAD], audit.VULNERABLE),
        ([], audit.UNKNOWN),
    ],
)
def test_what_a_report_proves(dependencies: list[dict[str, object]], code: int) -> None:
    assert audit.findings(dependencies).code == code


def test_a_vulnerability_is_named_with_its_cure() -> None:
    assert audit.findings([BAD]).vulnerable == ["c 2: CVE-1; healed in 3"]


def _tool(directory: Path, body: str) -> str:
    file = directory / "pip-audit"
    file.write_text(f"#!{sys.executable}\n{body}\n")
    file.chmod(0o755)
    return str(file)


def test_a_service_that_does_not_answer_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = _tool(tmp_path, "raise SystemExit('no route to host')")
    assert audit.main([tool, "x.lock"]) == audit.UNKNOWN
    assert "x.lock: NOT AUDITED" in capsys.readouterr().out


def test_the_second_service_is_asked_when_the_first_knows_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "import json, sys\n"
        f"osv = '--vulnerability-service=osv' in sys.argv\n"
        f"print(json.dumps({{'dependencies': [{CLEAN!r} if osv else {SKIPPED!r}]}}))"
    )
    assert audit.main([_tool(tmp_path, body), "x.lock"]) == audit.SOUND
    assert capsys.readouterr().out == "x.lock: 1 packages, no known vulnerability\n"
