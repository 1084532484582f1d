"""Several sidecars beside one app, for what grows with their number, their schedules, their rows.

The app serves all of them: what is measured is the sidecars and Postgres. It writes a line for each
callback: `unix-seconds become -` and `unix-seconds NAME due`.
    python -m tests.bench.fleet ADDRESS FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psycopg
import yaml
from grpc_health.v1 import health_pb2_grpc

from devtools.servers import free_port
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc
from tests.bench.schedules import Healthy
from tests.lab.processes import Child, wait_until

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class App(callback_pb2_grpc.AppCallbackServicer):
    """Notes what arrives and does nothing else."""

    def __init__(self, file: int) -> None:
        self._file = file

    def _note(self, name: str, due: str = "-") -> None:
        os.write(self._file, f"{time.time():.6f} {name} {due}\n".encode())

    async def OnBecomeLeader(self, request: Any, context: Any) -> Any:
        self._note("become")
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(self, request: Any, context: Any) -> Any:
        return callback_pb2.OnLoseLeadershipResponse()

    async def Execute(self, request: Any, context: Any) -> Any:
        at = request.scheduled_at
        self._note(request.name, f"{at.seconds + at.nanos / 1e9:.6f}")
        return callback_pb2.ExecuteResponse()


async def serve(address: str, path: str) -> None:
    server = grpc.aio.server()
    app = App(os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY))
    callback_pb2_grpc.add_AppCallbackServicer_to_server(app, server)
    health_pb2_grpc.add_HealthServicer_to_server(Healthy(), server)
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


@dataclass(frozen=True, slots=True)
class Line:
    at: float
    name: str
    due: float


class Sidecar:
    """One process and where it answers."""

    def __init__(self, directory: Path, number: int, config: dict[str, Any]) -> None:
        self.http_port = free_port()
        file = directory / f"s{number}.yaml"
        own = {
            "api": {"address": f"127.0.0.1:{free_port()}"},
            "http": {"address": f"127.0.0.1:{self.http_port}"},
        }
        file.write_text(yaml.safe_dump({**config, **own}))
        command: list[str | Path] = [sys.executable, "-m", "sidecar", "run", "--config", file]
        self.process = Child(command, directory / f"s{number}.log")

    def get(self, path: str) -> tuple[int, bytes]:
        try:
            with _DIRECT.open(f"http://127.0.0.1:{self.http_port}{path}", timeout=3) as answer:
                return answer.status, answer.read()
        except OSError:
            return 0, b""

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def leads(self) -> bool:
        status, body = self.get("/health")
        led = json.loads(body)["leadership"] if status == 200 else []
        return any(group["is_leader"] for group in led)

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def cpu_seconds(self) -> float:
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


class Fleet:
    """`number` sidecars of one cluster; see `running`."""

    def __init__(self, directory: Path, url: str, number: int, config: dict[str, Any]) -> None:
        self.url, self._file = url, directory / "lines"
        address = f"127.0.0.1:{free_port()}"
        self.app = Child(
            [sys.executable, "-m", "tests.bench.fleet", address, self._file], directory / "app.log"
        )
        whole = {"cluster": "bench", "postgres": {"url": url}, "app": {"address": address}}
        self.sidecars = [Sidecar(directory, n, {**whole, **config}) for n in range(number)]

    def start(self, seconds: float) -> float:
        """All sidecars at once; seconds until one leads and every one is ready."""
        began = time.time()
        for sidecar in self.sidecars:
            sidecar.process.start()
        wait_until(lambda: self.became(began), seconds, lambda: f"a leader\n{self._log()}")
        for sidecar in self.sidecars:
            wait_until(sidecar.ready, seconds, lambda: f"ready\n{self._log()}")
        return time.time() - began

    def stop(self) -> None:
        """A clean end, so that the next leader need not wait its grace."""
        for sidecar in self.sidecars:
            sidecar.process.terminate()
        for sidecar in self.sidecars:
            sidecar.process.wait(30)

    def lines(self) -> list[Line]:
        text = self._file.read_text() if self._file.exists() else ""
        parts = [line.split() for line in text.splitlines() if line.count(" ") == 2]
        return [Line(float(a), n, 0.0 if d == "-" else float(d)) for a, n, d in parts]

    def became(self, since: float) -> list[float]:
        return [line.at for line in self.lines() if line.name == "become" and line.at > since]

    def leader(self) -> Sidecar:
        def led() -> Sidecar | None:
            return next((sidecar for sidecar in self.sidecars if sidecar.leads()), None)

        return wait_until(led, 30, lambda: f"a leader that says so\n{self._log()}")

    def query(self, text: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def _log(self) -> str:
        return self.sidecars[0].process.output[-1000:]


@contextmanager
def running(directory: Path, url: str, number: int, config: dict[str, Any]) -> Iterator[Fleet]:
    """A fleet whose app serves; its sidecars are started by `start`, and gone afterwards."""
    fleet = Fleet(directory, url, number, config)
    with ExitStack() as stack:
        stack.enter_context(fleet.app)
        for sidecar in fleet.sidecars:
            stack.callback(sidecar.process.kill)
        yield fleet


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
