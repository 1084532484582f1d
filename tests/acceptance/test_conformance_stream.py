"""`baton conformance --attach`: the Python client conforms; an app that does not is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from devtools.servers import free_port
from tests.lab.processes import Child

EXAMPLE = Path(__file__).parents[2] / "clients/python/examples/orders.py"
BROKEN = """
from baton import Baton
app = Baton()

@app.on_become_leader()
def become(context):
    raise RuntimeError("not today")

@app.schedule("report")
def report(context):
    return None

app.run()
"""


def conformance(address: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sidecar", "conformance", "--attach", "--sidecar", address]
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=200, check=False
    )


def app(address: str, program: list[str | Path], log: Path) -> Child:
    return Child([sys.executable, *program], log, {**os.environ, "BATON_API_ADDRESS": address})


def test_the_python_client_conforms_over_the_stream(tmp_path: Path) -> None:
    """G1, G5: the same checks as over the callback."""
    address = f"127.0.0.1:{free_port()}"
    with app(address, [EXAMPLE], tmp_path / "app.log") as running:
        ended = conformance(address, "--handler", "report", "--singleton", "coordinator")
        assert running.running
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "14 ok, 0 failed, 4 skipped" in ended.stdout


def test_an_app_that_refuses_every_term_is_found(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text(BROKEN)
    address = f"127.0.0.1:{free_port()}"
    with app(address, [program], tmp_path / "app.log"):
        ended = conformance(address, "--handler", "report")
    assert ended.returncode == 1
    assert "FAIL  become" in ended.stdout


def test_nobody_attaches() -> None:
    ended = conformance(f"127.0.0.1:{free_port()}")
    assert ended.returncode == 1
    assert "no process attached: start the app with BATON_API_ADDRESS" in ended.stdout
