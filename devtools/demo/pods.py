"""The pods of the demo: each is an example app and a real sidecar, as processes on this machine.

Guarantees: every process ends with the demo, even if the demo is killed; only its owner can read a
config file, which contains the password of the database.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import devtools
from devtools.demo.model import BILLING, COORDINATOR, DEFAULT, FLAKY, GROUPS, ORDER_FLOW, REPORT
from devtools.servers import free_port

REPOSITORY = Path(devtools.__file__).parents[1]
EXAMPLE = REPOSITORY / "clients" / "python" / "examples" / "orders.py"
REPORT_SECONDS = 2
STEP_SECONDS = 0.6

# Asks the kernel to kill it when its parent (the first argument) dies, then executes the command. A
# preexec_fn would need a real fork, which is unsafe with gRPC's threads.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.getppid() == int(sys.argv[1]) or os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
_STOP_SECONDS = 5.0
_SCHEDULES: Sequence[Mapping[str, Any]] = (
    # All missed ticks are run later, so that no change of leader skips one.
    {"name": REPORT, "every": f"{REPORT_SECONDS}s", "group": DEFAULT, "catch_up": "all"},
    {"name": FLAKY, "every": "10s", "group": BILLING,
     "retry": {"attempts": 3, "initial": "1s", "max": "2s"}},
    {"name": ORDER_FLOW, "every": "5m", "group": DEFAULT},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Servers:
    """The URLs of Postgres and Redis, and the schema to use."""

    postgres_url: str
    redis_url: str
    schema: str


class Process:
    """A child process that logs to a file; the kernel kills it when this process dies."""

    def __init__(self, command: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> None:
        self._command, self._log, self._env = command, log, env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_tail(self) -> str:
        """The last lines of its log."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-8:])

    def start(self) -> None:
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*launch, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,  # Ctrl-C reaches the demo only; it stops the pods
            )

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)

    async def wait_or_kill(self, seconds: float) -> None:
        """Wait until it exits; kill it after `seconds`."""
        for _ in range(round(seconds / 0.05)):
            if not self.running:
                return
            await asyncio.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Pod:
    """One replica: an app and its sidecar."""

    def __init__(self, name: str, directory: Path, servers: Servers, ledger: Path) -> None:
        self.name = name
        self.stopping = False
        self.api_address = f"127.0.0.1:{free_port()}"
        self._config_file = directory / f"{name}.yaml"
        self._write_config(config(name, self.api_address, servers))
        self.app = Process(
            [sys.executable, EXAMPLE, "--sidecar", self.api_address],
            directory / f"{name}-app.log",
            {
                **_environment(EXAMPLE.parents[1]),
                "ORDERS_LEDGER": str(ledger),
                "ORDERS_STEP_SECONDS": str(STEP_SECONDS),
            },
        )
        self.sidecar = Process(
            [sys.executable, "-m", "sidecar", "run", "--config", self._config_file],
            directory / f"{name}-sidecar.log",
            _environment(REPOSITORY),
        )

    @property
    def running(self) -> bool:
        return self.sidecar.running and self.app.running

    def start(self) -> None:
        self.stopping = False
        self.app.start()
        self.sidecar.start()

    def crash(self) -> None:
        """Kill both at once with SIGKILL."""
        self.sidecar.send(signal.SIGKILL)
        self.app.send(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM to the sidecar, as a kubelet does first."""
        self.stopping = True
        self.sidecar.send(signal.SIGTERM)

    async def stop(self) -> None:
        """Shut down the sidecar, then the app, and wait until both have exited."""
        self.terminate()
        await self.sidecar.wait_or_kill(_STOP_SECONDS)
        self.app.send(signal.SIGTERM)
        await self.app.wait_or_kill(_STOP_SECONDS)

    def kill(self) -> None:
        self.sidecar.kill()
        self.app.kill()

    def log_tails(self) -> str:
        """The last lines of the logs of both processes."""
        return "\n".join(
            f"--- {self.name} {what} ({'running' if process.running else 'exited'})\n"
            + process.log_tail
            for what, process in (("app", self.app), ("sidecar", self.sidecar))
        )

    def _write_config(self, values: Mapping[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(self._config_file, flags, 0o600), "w") as file:
            yaml.safe_dump(dict(values), file, sort_keys=False)


def config(name: str, api_address: str, servers: Servers) -> dict[str, Any]:
    """The config of a pod: only what differs from the defaults."""
    return {
        "cluster": "orders",
        "runner": {"id_prefix": name},
        "app": {"address": f"127.0.0.1:{free_port()}"},  # nothing listens there: the app attaches
        "api": {"address": api_address},
        "http": {"address": f"127.0.0.1:{free_port()}"},
        "postgres": {"url": servers.postgres_url, "schema": servers.schema},
        "redis": {"url": servers.redis_url},
        "web": {"address": ""},
        "groups": list(GROUPS),
        "singletons": [{"name": COORDINATOR, "group": DEFAULT}],
        "schedules": [dict(schedule) for schedule in _SCHEDULES],
    }


def _environment(path: Path) -> dict[str, str]:
    """This environment without BATON_…, which would override the file; imports from `path`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    return {
        **ours,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(path), ours.get("PYTHONPATH")])),
    }
