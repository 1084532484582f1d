"""What is committed: the prescribed top level, no registry host, no path of anybody's machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOP_LEVEL = {
    ".ci", ".dockerignore", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "Dockerfile",
    "LICENSE", "Makefile", "README.md", "clients", "docs", "helm", "proto", "pyproject.toml",
    "requirements-dev.lock", "requirements.lock", "sidecar", "tests",
}  # fmt: skip
# Spelled in two halves, so that this file does not find itself.
HOSTS = re.compile(
    "|".join(
        re.escape(first + second)
        for first, second in (
            ("files.python", "hosted.org"), ("pypi", ".org/simple"), ("registry.", "npmjs.org"),
            ("proxy.", "golang.org"), ("repo.maven", ".apache.org"), ("repo1.", "maven.org"),
            ("index.", "crates.io"), ("crates.io", "-index"), ("deb.", "debian.org"),
        )
    )
)  # fmt: skip
PATHS = re.compile(r"(?<![\w.-])/(?:home/\w+|root|Users|work)/[\w.]")


def _files() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_the_top_level_is_what_a_reader_expects() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in _files()} <= TOP_LEVEL


@pytest.mark.parametrize("pattern", [HOSTS, PATHS], ids=["registry hosts", "local paths"])
def test_no_place_of_ours_is_committed(pattern: re.Pattern[str]) -> None:
    found = []
    for path in _files():
        text = path.read_bytes().decode("utf-8", "ignore")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found
