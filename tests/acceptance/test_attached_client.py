"""The Python client attached to real sidecars: work declared in code, processes, a rollout."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from devtools.servers import free_port
from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc, schedules_pb2, schedules_pb2_grpc
from tests.lab.processes import Child, wait_until


class Pod:
    """A sidecar without a configuration of work, and processes that attach to it."""

    def __init__(self, directory: Path, url: str) -> None:
        directory.mkdir()
        self.directory, self.address = directory, f"127.0.0.1:{free_port()}"
        self.notes = directory / "notes"
        self.notes.touch()
        config = {
            "cluster": "code",
            "app": {"address": f"127.0.0.1:{free_port()}"},
            "api": {"address": self.address},
            "http": {"address": f"127.0.0.1:{free_port()}"},
            "postgres": {"url": url},
            "election": {
                "ping": "600ms", "lease": "1900ms", "server_lease": "2500ms",
                "poll": "500ms", "grace": "2s",
            },
        }  # fmt: skip
        file = directory / "baton.yaml"
        file.write_text(yaml.safe_dump(config))
        self.sidecar = Child(
            [sys.executable, "-m", "sidecar", "run", "--config", file], directory / "sidecar.log"
        )

    def app(self, *arguments: str, revision: int = 0) -> Child:
        number = len(list(self.directory.glob("app*.log")))
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "tests.acceptance.attached_app",
            self.notes,
            *arguments,
        ]
        environment = {
            **os.environ,
            "BATON_API_ADDRESS": self.address,
            "BATON_REVISION": str(revision),
        }
        return Child(command, self.directory / f"app{number}.log", environment)

    def noted(self, what: str, pid: int | None = None) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.notes.read_text().splitlines()]
        return [each for each in lines if each["what"] == what and pid in (None, each["pid"])]

    def wait_for(self, what: str, count: int = 1, pid: int | None = None) -> list[dict[str, Any]]:
        def enough() -> list[dict[str, Any]]:
            found = self.noted(what, pid)
            return found if len(found) >= count else []

        return wait_until(enough, 60, lambda: f"{count} {what}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(path.read_text()[-1500:] for path in self.directory.glob("*.log"))


@pytest.fixture
def open_all() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def pod(database_url: str, tmp_path: Path, open_all: ExitStack) -> Pod:
    pod = Pod(tmp_path / "pod", database_url)
    open_all.enter_context(pod.sidecar)
    return pod


def opened(pod: Pod) -> Any:
    # Any: the stubs are typed for grpc.aio.
    return grpc.insecure_channel(pod.address)


def sources(pod: Pod) -> dict[str, str]:
    with opened(pod) as channel:
        stub: Any = schedules_pb2_grpc.SchedulesStub(channel)
        page = stub.List(schedules_pb2.SchedulesListRequest(), timeout=5)
    names = schedules_pb2.ScheduleSource
    return {s.name: names.Name(s.source).removeprefix("SCHEDULE_SOURCE_") for s in page.schedules}


def test_work_declared_in_code_runs_without_any_file(pod: Pod, open_all: ExitStack) -> None:
    """G5: schedules come with the app; steps are stored over the stream; errors have a message."""
    open_all.enter_context(pod.app())
    pod.wait_for("often", 3)
    assert sources(pod) == {"often": "CODE", "failing": "CODE"}
    with opened(pod) as channel:
        schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)
        runs: Any = runs_pb2_grpc.RunsStub(channel)
        trigger = schedules_pb2.SchedulesTriggerRequest(name="failing")
        request = runs_pb2.RunsGetRequest(run_id=schedules.Trigger(trigger, timeout=5).run_id)

        def failed() -> runs_pb2.Run | None:
            run: runs_pb2.Run = runs.Get(request, timeout=5).run
            return run if run.outcome == runs_pb2.OUTCOME_FAILED else None

        run = wait_until(failed, 30, pod.logs)
        assert "the disk is full" in run.error
        succeeded = runs_pb2.RunsListRequest(name="often", outcome=runs_pb2.OUTCOME_SUCCEEDED)
        assert runs.List(succeeded, timeout=5).runs


def test_a_worker_that_is_killed_is_replaced_by_a_sibling(pod: Pod, open_all: ExitStack) -> None:
    """G1: one of four processes leads; when it is killed, another one does, in a new term."""
    workers = [open_all.enter_context(pod.app()) for _ in range(4)]
    first = pod.wait_for("become")[0]
    pod.wait_for("often", 2)
    leader = next(worker for worker in workers if worker.pid == first["pid"])
    leader.kill()
    second = pod.wait_for("become", 2)[1]
    assert second["pid"] in {worker.pid for worker in workers} - {leader.pid}
    assert second["epoch"] > first["epoch"]
    pod.wait_for("often", 2, pid=second["pid"])


def test_a_frozen_sidecar_costs_the_app_its_trust(pod: Pod, open_all: ExitStack) -> None:
    """G1: nobody can tell the app; its client runs the loss hook when the trust is over."""
    open_all.enter_context(pod.app())
    pod.wait_for("often", 1)
    pod.sidecar.freeze()
    try:
        lost = pod.wait_for("lose")[-1]
        assert lost["reason"] == "LEASE_LOST"
    finally:
        pod.sidecar.thaw()
    pod.wait_for("become", 2)


def test_a_new_build_declares_and_an_old_one_does_not_undo_it(
    pod: Pod, database_url: str, tmp_path: Path, open_all: ExitStack
) -> None:
    """A rollout in which only the new build has a handler: its ticks go there, and none fails."""
    old = open_all.enter_context(pod.app(revision=1))
    pod.wait_for("often", 1)
    other = Pod(tmp_path / "other", database_url)
    open_all.enter_context(other.sidecar)
    open_all.enter_context(other.app("also", revision=2))
    wait_until(lambda: "later" in sources(pod), 60, other.logs)
    os.kill(old.pid, signal.SIGTERM)
    old.wait()
    other.wait_for("later", 2)
    assert not pod.noted("later")
    with opened(other) as channel:
        runs: Any = runs_pb2_grpc.RunsStub(channel)
        failed = runs_pb2.RunsListRequest(name="later", outcome=runs_pb2.OUTCOME_FAILED)
        assert not runs.List(failed, timeout=5).runs
