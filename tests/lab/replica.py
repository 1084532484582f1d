"""One pod of the lab: a toy app and the real sidecar beside it, with wires that can be cut.

The wires are fault proxies: `session_wire` carries the election session and LISTEN
(`postgres.direct_url`), `pool_wire` everything else (`postgres.url`), `redis_wire` the cache. A
replica in a network namespace has no wires; its namespace is cut instead.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from devtools.servers import free_port
from tests.lab.netns import Namespace
from tests.lab.processes import Child
from tests.lab.proxy import FaultProxy
from tests.lab.toy_app import Control

PROFILES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "fast": {
        "ping": "600ms",
        "lease": "1900ms",
        "server_lease": "2500ms",
        "poll": "500ms",
        "grace": "2s",
    },
    # For tests in which no term may end: it takes this machine three seconds of standing still.
    "steady": {
        "ping": "500ms",
        "lease": "3900ms",
        "server_lease": "4s",
        "poll": "500ms",
        "grace": "4100ms",
    },
}
_HTTP_SECONDS = 3.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy


@dataclass(frozen=True, slots=True)
class Setup:
    """What all replicas of a cluster share; `config` is laid over the file, mapping by mapping."""

    database_url: str
    redis_url: str = ""
    profile: str = "default"
    groups: tuple[str, ...] = ("default",)
    config: Mapping[str, Any] = field(default_factory=dict)
    pool_url: str = ""  # what the pool connects to, if it is not the server itself
    stream: bool = False  # the apps attach instead of serving AppCallback
    handlers: tuple[str, ...] = ()  # attached apps have these besides those in `config`
    unhandled: tuple[str, ...] = ()  # attached apps do not have these
    web: bool = False  # whether the sidecars serve JSON over HTTP
    load: Path | None = None  # where the apps write down what they ask of State; None: nothing


class Replica:
    """Starts with `start`; then its parts can be broken one by one: `app`, `sidecar`, the wires."""

    def __init__(
        self, name: str, directory: Path, setup: Setup, namespace: Namespace | None = None
    ) -> None:
        directory.mkdir(parents=True)
        self.name, self.setup, self.namespace = name, setup, namespace
        self.history = directory / "history.jsonl"
        self.config_file = directory / "baton.yaml"
        self.app_address, self.api_address = _loopback(), _loopback()
        self.http_port = free_port()
        self.web_address = _loopback() if setup.web else ""
        self._control_file, self._control = directory / "control.json", Control()
        self.stream_wire: FaultProxy | None = None  # between the attached app and its sidecar
        self.session_wire: FaultProxy | None = None
        self.pool_wire: FaultProxy | None = None
        self.redis_wire: FaultProxy | None = None
        self._open = ExitStack()
        if setup.stream and namespace is None:
            self.stream_wire = self._open.enter_context(
                FaultProxy.before(f"tcp://{self.api_address}")
            )
        self.app = self.another_app(name)
        self.sidecar = self._child(
            directory / "sidecar.log", ["sidecar", "run", "--config", self.config_file]
        )
        if not self.web_address and "web" not in setup.config:
            # Not in the file: the last release does not know the key.
            self.sidecar.env["BATON_WEB_ADDRESS"] = ""

    def another_app(self, name: str) -> Child:
        """A process of the app beside this sidecar; not started yet."""
        setup = self.setup
        load: list[str | Path] = ["--load", setup.load] if setup.load else []
        port = self.stream_wire.port if self.stream_wire else 0
        sidecar = f"127.0.0.1:{port}" if port else self.api_address
        return self._child(
            self.history.parent / f"app-{name}.log",
            ["tests.lab.toy_app", "--name", name, "--address", self.app_address, "--history",
             self.history, "--control", self._control_file, "--sidecar", sidecar,
             "--groups", ",".join(setup.groups),
             *load, *_attached(setup)],
        )  # fmt: skip

    def start(self, *, sidecar: bool = True) -> None:
        """Lay the wires, write the config and start both processes."""
        if self.namespace is None:
            self.session_wire = self._wire(self.setup.database_url)
            self.pool_wire = self._wire(self.setup.pool_url or self.setup.database_url)
            if self.setup.redis_url:
                self.redis_wire = self._wire(self.setup.redis_url)
        self.config_file.write_text(yaml.safe_dump(self.config(), sort_keys=False))
        self._open.enter_context(self.app)
        if sidecar:
            self._open.enter_context(self.sidecar)

    def stop(self) -> None:
        """Kill both processes and take the wires away."""
        self.sidecar.kill()
        self.app.kill()
        self._open.close()

    def kill(self) -> None:
        """The pod dies: both processes at once."""
        self.sidecar.kill()
        self.app.kill()

    def freeze(self) -> None:
        """The node hangs: both processes stand still, connections stay open."""
        self.sidecar.freeze()
        self.app.freeze()

    def thaw(self) -> None:
        self.app.thaw()
        self.sidecar.thaw()

    def isolate(self) -> None:
        """A partition: nothing passes between this pod and the servers, and nobody is told."""
        if self.namespace is not None:
            self.namespace.cut()
        for wire in self.wires:
            wire.silence()

    def heal(self) -> None:
        if self.namespace is not None:
            self.namespace.heal()
        for wire in self.wires:
            wire.heal()

    @property
    def wires(self) -> list[FaultProxy]:
        wires = (self.session_wire, self.pool_wire, self.redis_wire)
        return [wire for wire in wires if wire is not None]

    def tell(self, **changes: Any) -> None:
        """Change how the toy app behaves; see `toy_app.Control`."""
        self._control = replace(self._control, **changes)
        self._control.write(self._control_file)

    def http(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        """Status and body of a request to the sidecar's HTTP port; 0: nobody answers there."""
        host = "127.0.0.1" if self.namespace is None else self.namespace.inner_address
        try:
            url = f"http://{host}:{self.http_port}{path}"
            request = urllib.request.Request(url, headers={"Accept": accept})
            with _DIRECT.open(request, timeout=_HTTP_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def log(self) -> list[dict[str, Any]]:
        """The sidecar's log so far, line by line."""
        lines = self.sidecar.output.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def describe(self) -> str:
        """The last lines of both processes, for the message of a failed test."""
        parts = [
            f"--- {self.name} {what} ({'running' if child.running else 'ended'})\n"
            + "\n".join(child.output.splitlines()[-8:])
            for what, child in (("app", self.app), ("sidecar", self.sidecar))
        ]
        return "\n".join(parts)

    def config(self) -> dict[str, Any]:
        """The sidecar's configuration, as it stands in its file."""
        database = self.setup.database_url
        base: dict[str, Any] = {
            "cluster": "lab",
            "runner": {"id_prefix": self.name},
            "app": {"address": self.app_address},
            "api": {"address": self.api_address},
            "http": {"address": f"{'0.0.0.0' if self.namespace else '127.0.0.1'}:{self.http_port}"},
            "postgres": {
                "url": self._through(self.pool_wire, database),
                "direct_url": self._through(self.session_wire, database),
            },
            "election": dict(PROFILES[self.setup.profile]),
            "groups": list(self.setup.groups),
        }
        if self.web_address:
            base["web"] = {"address": self.web_address}
        if self.setup.redis_url:
            base["redis"] = {"url": self._through(self.redis_wire, self.setup.redis_url)}
        return _laid_over(base, self.setup.config)

    def _through(self, wire: FaultProxy | None, url: str) -> str:
        if wire is not None:
            return wire.url(url)
        if self.namespace is None:
            return url
        parts = urlsplit(url)
        user, _, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}@{self.namespace.outer_address}:{parts.port}").geturl()

    def _wire(self, url: str) -> FaultProxy:
        return self._open.enter_context(FaultProxy.before(url))

    def _child(self, log: Path, module: list[str | Path]) -> Child:
        command: list[str | Path] = [sys.executable, "-m", *module]
        return Child(self.namespace.command(command) if self.namespace else command, log)


def _attached(setup: Setup) -> list[str | Path]:
    if not setup.stream:
        return []
    work = [*setup.config.get("singletons", ()), *setup.config.get("schedules", ())]
    names = {*(each["name"] for each in work), *setup.handlers, "toy"} - {*setup.unhandled}
    return ["--attach", ",".join(sorted(names))]


def _loopback() -> str:
    return f"127.0.0.1:{free_port()}"


def _laid_over(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`: mappings are merged, everything else is replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        result[key] = _laid_over(old, value) if both else value  # type: ignore[arg-type]
    return result
