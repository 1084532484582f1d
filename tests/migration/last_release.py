"""The last release as its users have it: a wheel, built from its commit, beside our dependencies.

It needs the history of the repository. A clone without the commit (a shallow one) cannot prove
anything here: the tests are skipped, except in CI, where they fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.lab.pages import ROOT
from tests.lab.replica import Replica

VERSION, COMMIT = "0.1.0", "895887ba751ffdd5f0b0640accb7ef0b6901bd7d"


def build(directory: Path) -> Path:
    """The folder of its packages; tests that need it are skipped where it cannot be built."""
    if _git("cat-file", "-e", f"{COMMIT}^{{commit}}").returncode:
        reason = f"release {VERSION} cannot be built: git fetch --unshallow brings {COMMIT[:7]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    source, packages = directory / "source", directory / "packages"
    source.mkdir()
    archive = _git("archive", COMMIT, "pyproject.toml", "README.md", "LICENSE", "sidecar")
    assert archive.returncode == 0, archive.stderr.decode()
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    wheel = [sys.executable, "-m", "pip", "wheel", *quiet, "--no-build-isolation"]
    subprocess.run([*wheel, "--wheel-dir", directory, source], check=True)
    (built,) = directory.glob(f"baton_sidecar-{VERSION}-py3-none-any.whl")
    ZipFile(built).extractall(packages)
    return packages


def use(replica: Replica, packages: Path | None) -> None:
    """The next start of its sidecar is of these packages; None: of this work tree."""
    arguments = replica.sidecar.command[replica.sidecar.command.index("-m") :]
    # -P: the packages come before the current directory, which is the work tree.
    isolated = ["-P"] if packages else []
    replica.sidecar.command = [sys.executable, *isolated, *arguments]
    replica.sidecar.env = {"PYTHONPATH": str(packages)} if packages else {}


def imported_from(replica: Replica) -> Path:
    """The sidecar package that the command of this replica runs."""
    before = replica.sidecar.command[: replica.sidecar.command.index("-m")]
    program = "import sidecar; print(sidecar.__file__)"
    shown = subprocess.check_output(
        [*before, "-c", program], env={**os.environ, **replica.sidecar.env}, text=True
    )
    return Path(shown.strip()).parent


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)
