"""The peers: small programs on libraries from their registries, installed on demand.

Versions are pinned beside each program; what is installed lies in a cache outside the repository
(`~/.cache/baton-bench`) under a digest of the program, so that a change installs anew. Where a tool
chain is missing, `NotHere` says which: the report then says so instead of a figure.

Each program takes `MODE PROFILE URL FILE` and appends a line `unix-seconds class due` to FILE when
it begins to lead, or for each run of a tick (`due` is `-` where the library does not tell it);
before ticks, one of the class `ready`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baton-bench"
INSTALL_SECONDS = 300.0


class NotHere(Exception):
    """This peer cannot run on this machine; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One program: `tool` builds or runs it, `files` are what it is made of, `program` runs."""

    name: str
    version: str
    tool: str
    directory: str
    files: tuple[str, ...]
    program: str
    needs_setup: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    def command(self) -> list[str | Path]:
        """What starts it; installs it first if need be."""
        place = self._installed()
        match self.tool:
            case "go":
                return [place / "program"]
            case "node":
                return ["node", place / self.program]
            case _:
                return [place / "bin" / "python", HERE / self.directory / self.program]

    def _installed(self) -> Path:
        place = CACHE / f"{self.directory}-{self._digest()}"
        with _locked(CACHE / f"{place.name}.lock"):
            if not (place / "installed").exists():
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                self._install(place)
                (place / "installed").touch()
        return place

    def _digest(self) -> str:
        contents = b"".join((HERE / self.directory / name).read_bytes() for name in self.files)
        return hashlib.sha256(contents).hexdigest()[:12]

    def _install(self, place: Path) -> None:
        source = HERE / self.directory
        match self.tool:
            case "go":
                _run("Go", ["go", "build", "-o", place / "program", "."], source)
            case "node":
                for name in self.files:
                    shutil.copy(source / name, place)
                _run("Node", ["npm", "install", "--no-audit", "--no-fund"], place)
            case _:
                _run("Python", [sys.executable, "-m", "venv", place], place)
                requirements = source / self.files[0]
                pip: list[str | Path] = [place / "bin" / "python", "-m", "pip", "install"]
                _run("Python", [*pip, "--quiet", "-r", requirements], place)


def _run(tool: str, command: Sequence[str | Path], directory: Path) -> None:
    try:
        ended = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise NotHere(f"no {tool} here") from None
    except subprocess.TimeoutExpired:
        raise NotHere(f"not installed within {INSTALL_SECONDS:.0f} s") from None
    if ended.returncode != 0:
        print(ended.stdout[-2000:], flush=True)  # not into the report: it may name hosts and paths
        raise NotHere(f"{tool} could not install it")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Two benches, or two cells of one, never install the same peer at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


RIVER = Peer("River", "0.50.0", "go", "river", ("main.go", "go.mod", "go.sum"), "", True)
EFFECT = Peer(
    "Effect cluster", "0.60.2", "node", "effect", ("package.json", "runner.mjs"), "runner.mjs"
)
PROCRASTINATE = Peer(
    "procrastinate", "3.10.0", "python", "procrastinate", ("requirements.txt",), "worker.py", True
)
APSCHEDULER_3 = Peer(
    "APScheduler", "3.11.3", "python", "apscheduler", ("requirements.txt",), "scheduler3.py"
)
APSCHEDULER_4 = Peer(
    "APScheduler", "4.0.0a6", "python", "apscheduler", ("requirements-4.txt",), "scheduler4.py"
)
ALL = (EFFECT, RIVER, PROCRASTINATE, APSCHEDULER_3, APSCHEDULER_4)
