"""Network namespaces: pods whose cable can be pulled, one way or both, without any proxy.

Root only. Each namespace is joined to the root side by a veth pair of its own, with addresses of
198.18.0.0/15, which is set aside for tests of networks. Nothing but our own links is touched.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from devtools.servers import PostgresServer

_NOBODY = "02:00:00:00:00:01"
_NUMBERS = count(os.getpid() % 400 * 64)


@cache
def why_not() -> str:
    """Why namespaces cannot be used here, in one line; empty if they can.

    In a test: `pytest.mark.skipif(bool(netns.why_not()), reason=netns.why_not())`.
    """
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need ip (apt-get install iproute2)"
    try:
        with Namespace():
            return ""
    except subprocess.CalledProcessError as failed:
        return f"network namespaces are not allowed here: {failed.stderr.strip()}"


class Namespace:
    """One namespace in a `with` block; processes run in it through `command`."""

    def __init__(self) -> None:
        number = next(_NUMBERS) % 32_768
        self.name = f"baton-{os.getpid()}-{number}"
        self.outer, self.inner = f"bat{number}o", f"bat{number}i"  # at most 15 characters
        base = (198 << 24) + (18 << 16) + number * 4
        self.outer_address, self.inner_address = _dotted(base + 1), _dotted(base + 2)
        self._bursts: Bursts | None = None

    def start(self) -> Self:
        _ip("netns", "add", self.name)
        try:
            _ip("link", "add", self.outer, "type", "veth", "peer", "name", self.inner,
                "netns", self.name)  # fmt: skip
            _ip("address", "add", f"{self.outer_address}/30", "dev", self.outer)
            _ip("link", "set", self.outer, "up")
            self._inside("address", "add", f"{self.inner_address}/30", "dev", self.inner)
            self._inside("link", "set", self.inner, "up")
            self._inside("link", "set", "lo", "up")
        except subprocess.CalledProcessError:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove it. Its processes must be gone; the veth pair goes with it."""
        subprocess.run(["ip", "link", "delete", self.outer], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)

    def command(self, command: Sequence[str | Path]) -> list[str | Path]:
        """The same command, run inside."""
        return ["ip", "netns", "exec", self.name, *command]

    def cut(self) -> None:
        """Packets vanish both ways, and no side is told."""
        self.cut_outgoing()
        self.cut_incoming()

    # By a permanent neighbour that does not exist: the link drops what is sent to it. Rules of a
    # firewall would need a program that may be missing; a route would tell the sender.

    def cut_outgoing(self) -> None:
        """Only what the inside sends vanishes."""
        self._inside("neighbour", "replace", self.outer_address, "lladdr", _NOBODY,
                     "dev", self.inner, "nud", "permanent")  # fmt: skip

    def cut_incoming(self) -> None:
        """Only what is sent to the inside vanishes."""
        _ip("neighbour", "replace", self.inner_address, "lladdr", _NOBODY,
            "dev", self.outer, "nud", "permanent")  # fmt: skip

    def lose(self, fraction: float) -> None:
        """So much of the time all packets vanish, both ways, in bursts; until `heal`."""
        self._bursts = Bursts(self, fraction).start()

    def unplug(self) -> None:
        """The link goes down inside: its processes are told that the network is unreachable."""
        self._inside("link", "set", self.inner, "down")

    def heal(self) -> None:
        """End every fault."""
        if self._bursts is not None:
            self._bursts.stop()
            self._bursts = None
        self._mend()

    def _mend(self) -> None:
        self._inside("link", "set", self.inner, "up")
        self._inside("neighbour", "flush", "dev", self.inner, "nud", "all")
        _ip("neighbour", "flush", "dev", self.outer, "nud", "all")

    def _inside(self, *arguments: str) -> None:
        _ip("-n", self.name, *arguments)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class Bursts:
    """Cuts a namespace off for moments of random length: TCP has to send again and again."""

    def __init__(self, namespace: Namespace, fraction: float) -> None:
        self._namespace, self._fraction = namespace, fraction
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._lose, name="bursts", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _lose(self) -> None:
        while not self._over.is_set():
            cycle = random.uniform(0.05, 0.4)
            self._namespace.cut()
            self._over.wait(cycle * self._fraction)
            self._namespace._mend()
            self._over.wait(cycle * (1 - self._fraction))


def admit(server: PostgresServer) -> None:
    """Let namespaces log in; it must listen on their outer addresses (`listen_addresses`)."""
    with (server.data_dir / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 198.18.0.0/15 scram-sha-256\n")
    os.kill(server.pid, signal.SIGHUP)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))
