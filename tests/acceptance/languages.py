"""The example app in every language: what it needs, how it is built, how it is started.

A build is made once and again only when a source has changed. A language whose tool chain is not on
this machine says so in one line; a build that fails is an error, not an absence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients"
BUILT = ROOT / ".cache" / "languages"
CONTRACT = "../../proto/baton/v1/*.proto"  # for builds that generate code from it
BUILD_SECONDS = 1500
# Where tool chains install themselves without touching the PATH.
PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/local/go/bin", str(Path.home() / ".cargo" / "bin")]
)


@dataclass(frozen=True, slots=True)
class Language:
    """`sources` are globs below its folder; `build` makes `program`, which is run by `start`.

    Each of `tools` is a program and the argument with which it tells its version.
    """

    name: str
    tools: tuple[str, ...]
    sources: tuple[str, ...]
    build: str
    program: Path
    start: tuple[str, ...]

    @property
    def home(self) -> Path:
        return CLIENTS / self.name

    @property
    def missing(self) -> str:
        """Why it cannot take part; empty: it can."""
        troubles = filter(None, map(_trouble, self.tools))
        return next((f"{self.name}: {trouble}" for trouble in troubles), "")

    def command(self) -> list[str]:
        """What starts the example app; built first if need be."""
        _build(self)
        return [*self.start, str(self.program)]


LANGUAGES = (
    Language(
        name="python",
        tools=(),
        sources=(),
        build="",
        program=CLIENTS / "python" / "examples" / "orders.py",
        start=(sys.executable,),
    ),
    Language(
        name="typescript",
        tools=("node --version", "npm --version"),
        sources=(
            "src/*.ts",
            "examples/*.ts",
            "*.json",
            "buf.gen.yaml",
            "proto/**/*.proto",
            CONTRACT,
        ),
        # npm writes its own copy of the lock last: older than ours, or missing, means install.
        build="[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci; npm run build",
        program=CLIENTS / "typescript" / "dist" / "examples" / "orders.js",
        start=("node",),
    ),
    Language(
        name="go",
        tools=("go version",),
        sources=("*.go", "batonv1/*.go", "examples/orders/*.go", "go.mod"),
        build=f"go build -o {BUILT / 'orders-go'} ./examples/orders",
        program=BUILT / "orders-go",
        start=(),
    ),
    Language(
        name="java",
        tools=("java -version", "javac -version", "mvn --version"),
        sources=("src/main/**/*.java", "examples/*.java", "pom.xml", CONTRACT),
        build="mvn --quiet --batch-mode test-compile",
        program=CLIENTS / "java" / "examples" / "orders",
        start=(),
    ),
    Language(
        name="rust",
        tools=("cargo --version",),
        sources=("src/*.rs", "build.rs", "Cargo.toml", CONTRACT),
        build="command -v protoc || export PROTOC=$PWD/protoc; cargo build",
        program=CLIENTS / "rust" / "target" / "debug" / "orders",
        start=(),
    ),
)


@cache
def _trouble(tool: str) -> str:
    """Why it is of no use here. It is asked: rustup's `cargo` is there without a tool chain too."""
    program = tool.partition(" ")[0]
    if shutil.which(program, path=PATH) is None:
        return f"{program} is not installed"
    ended = run_in(ROOT, tool, 60)
    if ended.returncode == 0:
        return ""
    return f"{program} does not work: {ended.stderr.strip().splitlines()[0]}"


def run_in(home: Path, command: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """A shell command of a client's folder, with every tool chain of this machine on the PATH."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=home,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@cache
def _build(language: Language) -> None:
    stamp = BUILT / f"{language.name}.built"
    if not language.build or (language.program.exists() and _is_fresh(stamp, language)):
        return
    BUILT.mkdir(parents=True, exist_ok=True)
    ended = run_in(language.home, language.build, BUILD_SECONDS)
    assert ended.returncode == 0, f"{language.build}\n{ended.stdout}{ended.stderr}"
    stamp.touch()


def _is_fresh(stamp: Path, language: Language) -> bool:
    if not stamp.exists():
        return False
    made_at = stamp.stat().st_mtime
    return all(source.stat().st_mtime < made_at for source in _sources(language))


def _sources(language: Language) -> Iterator[Path]:
    for pattern in language.sources:
        yield from language.home.glob(pattern)
