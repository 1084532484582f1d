"""What the guide to troubles says you see is what you see: docs/operations.md, by real processes.

The other symptoms of its table have their tests where their causes are tested; that every event and
metric it names exists is checked in tests/unit/test_docs.py.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from devtools.servers import free_port
from tests.acceptance.client_lab import patiently
from tests.acceptance.languages import CLIENTS
from tests.lab.pages import ROOT
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Replica, Setup

_SCHEDULE = {"name": "nobody", "at": "2100-01-01T00:00:00Z"}


def _symptom(starts_with: str) -> str:
    """A text in the first column of the guide's table, up to its "…"."""
    guide = (ROOT / "docs/operations.md").read_text()
    cells = re.findall(r"^\| (.*?) \|", guide.partition("## Troubleshooting")[2], re.MULTILINE)
    found: list[str] = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    (text,) = (text for text in found if text.startswith(starts_with))
    return text.partition("…")[0].rstrip()


def _replica(directory: Path, database_url: str, **config: object) -> Replica:
    setup = Setup(database_url, config={"schedules": [_SCHEDULE], **config})
    replica = Replica("r0", directory, setup)
    replica.app.command = [
        sys.executable, str(CLIENTS / "python" / "examples" / "orders.py"),
        "--address", replica.app_address, "--sidecar", replica.api_address,
    ]  # fmt: skip
    return replica


def _logs(replica: Replica, event: str, problem: str = "") -> None:
    def told() -> bool:
        lines = [line for line in replica.log() if line["event"] == event]
        return any(problem in line["problem"] for line in lines)

    wait_until(told, 30, lambda: f"{event} {problem}\n{replica.describe()}")


def _unready(replica: Replica, reason: str) -> None:
    def red() -> bool:
        status, body = replica.http("/readyz")
        return status == 503 and any(line.startswith(reason) for line in body.splitlines())

    wait_until(red, 30, lambda: f"{reason} {replica.http('/readyz')}\n{replica.describe()}")


@pytest.mark.timeout(240)
def test_the_life_of_a_troubled_pod(tmp_path: Path, database_url: str) -> None:
    """From missing tables to the drain, with the words of the guide."""
    replica = _replica(tmp_path / "r0", database_url, postgres={"migrate": "never"})
    try:
        replica.start()
        _logs(replica, _symptom("waiting_for_migration"), "baton migrate")
        baton("migrate", "--config", str(replica.config_file))
        api = ("--address", replica.api_address)
        patiently(lambda: baton("trigger", "nobody", *api), 60)
        unknown = _symptom("NOT_FOUND: no handler for")

        def waiting() -> bool:
            return f"{unknown} 'nobody'" in baton("runs", "nobody", *api)

        wait_until(waiting, 60, lambda: baton("runs", "nobody", *api))
        replica.app.kill()
        _unready(replica, _symptom("app:"))
        assert baton("drain", *api) == "draining\n"
        _unready(replica, _symptom("draining"))
    finally:
        replica.stop()


@pytest.mark.timeout(120)
def test_a_postgres_that_is_not_there(tmp_path: Path) -> None:
    replica = _replica(tmp_path / "r0", f"postgresql://u@127.0.0.1:{free_port()}/orders")
    try:
        replica.start()
        _logs(replica, _symptom("waiting_for_postgres"))
    finally:
        replica.stop()


@pytest.mark.timeout(120)
def test_two_apps_in_one_cluster(tmp_path: Path, database_url: str) -> None:
    first = _replica(tmp_path / "r0", database_url, app={"name": "shop"})
    second = _replica(tmp_path / "r1", database_url, app={"name": "billing"})
    try:
        first.start()
        patiently(lambda: baton("status", "--address", first.api_address), 60)
        refusal = f"{_symptom('cluster')} 'lab' belongs to the app 'shop'"
        second.start()
        wait_until(lambda: refusal in second.sidecar.output, 60, second.describe)
    finally:
        second.stop()
        first.stop()


@pytest.mark.timeout(120)
def test_a_refused_pod_was_never_ready(tmp_path: Path, database_url: str) -> None:
    """G10: nor while Postgres takes its time to say so."""
    first = _replica(tmp_path / "r0", database_url, app={"name": "shop"})
    second = _replica(tmp_path / "r1", database_url, app={"name": "billing"})
    try:
        first.start()
        patiently(lambda: baton("status", "--address", first.api_address), 60)
        second.start(sidecar=False)
        wires = second.wires
        for wire in wires:
            wire.silence()
        second.sidecar.start()
        answers: list[tuple[int, str]] = []

        def waits_for_nothing_else() -> bool:
            answers.append(second.http("/readyz"))
            return answers[-1] == (503, "joining the cluster: Postgres has not answered yet\n")

        wait_until(waits_for_nothing_else, 60, second.describe)
        for wire in wires:
            wire.heal()

        def refused() -> bool:
            answers.append(second.http("/readyz"))
            return "belongs to the app 'shop'" in answers[-1][1]

        wait_until(refused, 60, second.describe)
        assert 200 not in {status for status, _ in answers}
    finally:
        second.stop()
        first.stop()
