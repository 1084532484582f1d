"""`pip install` of the client alone: no part of the sidecar, nothing that it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[1]
# What its requirements bring; the names are those of the packages, not of the distributions.
_BROUGHT = ("grpc", "grpc_health", "google", "typing_extensions.py")
_PROGRAM = """
import importlib.util, sys
sys.path[:0] = sys.argv[1:]
import baton, baton.testing
app = baton.Baton()
app.schedule("report")(lambda context: None)
assert importlib.util.find_spec("sidecar") is None
assert importlib.util.find_spec("psycopg") is None
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("*.egg-info", "build", "__pycache__")
    shutil.copytree(CLIENT, directory / "source", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    command = [*pip, "--wheel-dir", str(directory), str(directory / "source")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return next(directory.glob("*.whl"))


def test_it_needs_grpc_and_protobuf_only(wheel: Path):
    with zipfile.ZipFile(wheel) as content:
        name = next(name for name in content.namelist() if name.endswith("METADATA"))
        metadata = Parser().parsestr(content.read(name).decode())
        assert {path.partition("/")[0] for path in content.namelist()} == {
            "baton", name.partition("/")[0]
        }  # fmt: skip
        assert {"baton/py.typed", "baton/v1/runs_pb2.pyi"} <= set(content.namelist())
    needed = {re.split("[<>]", line)[0] for line in metadata.get_all("Requires-Dist", [])}
    assert needed == {"grpcio", "grpcio-health-checking", "protobuf"}


def test_it_works_without_the_sidecar(wheel: Path, tmp_path: Path):
    installed, brought = tmp_path / "installed", tmp_path / "brought"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(installed)
    brought.mkdir()
    for name in _BROUGHT:
        (brought / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(installed), str(brought)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
