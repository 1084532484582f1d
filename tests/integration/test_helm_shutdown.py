"""A pod ends in the order of Kubernetes, with real processes in the place of the containers.

The kubelet starts all preStop hooks at once and sends SIGTERM to a container when its hook is done;
a native sidecar gets its SIGTERM only after the last app container has ended.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from devtools.servers import free_port
from tests.integration.helm_lab import (
    Resource,
    container,
    environment,
    of_kind,
    snapshot,
    write_config,
    write_secrets,
)
from tests.lab.processes import Child, wait_until

EXAMPLE = Path(__file__).parents[2] / "clients/python/examples/orders.py"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy


class Pod:
    """The default rendering's containers as processes: what they run, their files, variables."""

    def __init__(self, directory: Path, database_url: str) -> None:
        rendered = snapshot("default")
        directory.mkdir()
        write_secrets(directory, database_url)
        write_config(rendered, directory)
        deployment = of_kind(rendered, "Deployment")
        self._directory, self._port = directory, free_port()
        self._spec = container(deployment, "baton")
        self.grace_seconds = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self._variables = self._of(self._spec) | {"BATON_HTTP_ADDRESS": f"127.0.0.1:{self._port}"}
        self.sidecar = self._baton("sidecar", *self._spec["args"])
        app_variables = self._of(container(deployment, "app"))
        self.app = Child([sys.executable, EXAMPLE], directory / "app.log", app_variables)
        self._migrate = container(of_kind(rendered, "Job"), "migrate")

    def migrate(self) -> None:
        """The Job: with its variables, without a file."""
        command = [sys.executable, "-m", "sidecar", *self._migrate["args"]]
        done = subprocess.run(
            command, env=self._of(self._migrate), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, running: ExitStack) -> None:
        """The app starts once the sidecar's startup probe succeeds."""
        running.enter_context(self.sidecar)
        self._wait_for("startupProbe")
        running.enter_context(self.app)

    def wait_until_ready(self) -> None:
        self._wait_for("readinessProbe")

    def end(self, *, rude_app: bool = False) -> float:
        """What the kubelet does; how many seconds it takes. A rude app ends at once."""
        since = time.monotonic()
        program, *arguments = self._spec["lifecycle"]["preStop"]["exec"]["command"]
        assert program == "baton"
        with self._baton("hook", *arguments) as hook:
            if rude_app:
                self.app.kill()
            else:
                self.app.terminate()
                assert self.app.wait(self.grace_seconds) == 0, self.app.output
            assert hook.wait(self.grace_seconds) == 0, hook.output
        assert self.sidecar.running, self.sidecar.output
        self.sidecar.terminate()
        assert self.sidecar.wait(self.grace_seconds) == 0, self.sidecar.output
        return time.monotonic() - since

    @property
    def leads(self) -> bool:
        """Whether the last thing that the app was told is that it leads."""
        return bool(self._told()) and "no longer" not in self._told()[-1]

    @property
    def told_at(self) -> datetime:
        """When the app was last told of a change, as its log says."""
        return datetime.strptime(self._told()[-1][:23], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)

    def _told(self) -> list[str]:
        return [line for line in self.app.output.splitlines() if "leader of default" in line]

    def _baton(self, log: str, *arguments: str) -> Child:
        command = [sys.executable, "-m", "sidecar", *arguments]
        return Child(command, self._directory / f"{log}.log", self._variables)

    def _of(self, spec: Resource) -> dict[str, str]:
        return environment(spec, self._directory)

    def _wait_for(self, probe: str) -> None:
        path = self._spec[probe]["httpGet"]["path"]
        wait_until(lambda: self._answers(path), 30, lambda: self.sidecar.output)

    def _answers(self, path: str) -> bool:
        try:
            with _DIRECT.open(f"http://127.0.0.1:{self._port}{path}", timeout=3) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@pytest.fixture
def pods(tmp_path: Path, database_url: str) -> Iterator[list[Pod]]:
    pods = [Pod(tmp_path / name, database_url) for name in ("a", "b")]
    pods[0].migrate()
    with ExitStack() as running:
        for pod in pods:
            pod.start(running)
        for pod in pods:
            pod.wait_until_ready()
        yield pods


def _leader_and_standby(pods: list[Pod]) -> tuple[Pod, Pod]:
    wait_until(lambda: any(pod.leads for pod in pods), 30, lambda: _outputs(pods))
    leader, standby = sorted(pods, key=lambda pod: not pod.leads)
    return leader, standby


def test_a_pod_that_ends_hands_over_before_its_app_and_its_sidecar_end(pods: list[Pod]) -> None:
    """G8: the next app leads at once, because the app of the ending pod could still be told."""
    old, new = _leader_and_standby(pods)
    seconds = old.end()
    assert not old.leads, old.app.output
    assert "no longer leader of default" in old.app.output
    wait_until(lambda: new.leads, 15, lambda: _outputs(pods))
    gap = (new.told_at - old.told_at).total_seconds()
    print(f"the pod ended within {seconds:.1f} s, nobody led for {gap:.3f} s")
    assert 0 <= gap < 3, _outputs(pods)  # after an unclean end the grace alone takes 3.2 s
    assert seconds < old.grace_seconds / 2


def test_a_pod_whose_app_does_not_wait_ends_as_well(pods: list[Pod]) -> None:
    """G8, G9: the hook and the sidecar end in time and without an error; the next app leads."""
    old, new = _leader_and_standby(pods)
    assert old.end(rude_app=True) < old.grace_seconds / 2
    wait_until(lambda: new.leads, 10, lambda: _outputs(pods))


def _outputs(pods: list[Pod]) -> str:
    return "\n".join(pod.app.output + pod.sidecar.output for pod in pods)
