"""Three candidates of one system, the faults done to whoever leads, and how long until the next.

A peer's candidate is a process behind a wire of its own, which writes a line when it begins to lead
(or, where there is no leader, when it runs a tick). The victim is the one that wrote last; the time
counts from the fault to the first line of another. A fault comes at a random moment of a second:
polls, pings and ticks have that period, and a round that begins with one must not end beside it.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from types import TracebackType
from typing import Protocol, Self

from devtools.servers import free_port
from tests.bench.peers import Peer
from tests.lab.cluster import Cluster
from tests.lab.processes import Child, boottime, wait_until
from tests.lab.proxy import FaultProxy
from tests.lab.replica import Replica, Setup

FAULTS = ("clean release", "kill -9", "SIGSTOP", "partition")
NEVER_SECONDS = 60.0
STOP_SECONDS = 20.0
PERIOD_SECONDS = 1.0  # of all that these systems do again and again
EACH_SECOND = {"one": {"count": 1, "seconds": list(range(60))}}


def settle(seconds: float) -> None:
    """Until at least then, and to a random moment of the period."""
    time.sleep(seconds + random.uniform(0, PERIOD_SECONDS))


class System(Protocol):
    """Something whose takeovers can be timed; a `with` block holds its processes."""

    def takeover(self, fault: str) -> float | None:
        """Seconds until another one leads, None for never; the victim is back afterwards."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Candidate:
    """One process of a peer."""

    def __init__(
        self, command: Sequence[str | Path], url: str, place: Path, env: Mapping[str, str]
    ) -> None:
        self._open = ExitStack()
        self.wires = [self._open.enter_context(FaultProxy.before(url))]
        self.file = place / "lines"
        listen = free_port()  # of runners that talk to each other: reached through a wire as well
        self.wires.append(self._open.enter_context(FaultProxy("127.0.0.1", listen)))
        ports = {"BENCH_LISTEN": str(listen), "BENCH_ADDRESS": str(self.wires[1].port)}
        arguments = [*command, self.wires[0].url(url), self.file]
        self.child = self._open.enter_context(
            Child(arguments, place / "log", env={**env, **ports}).start()
        )

    def lines(self) -> list[float]:
        """When it began to lead, each time."""
        text = self.file.read_text() if self.file.exists() else ""
        parts = [line.split() for line in text.splitlines() if line.count(" ") == 2]
        return [float(at) for at, kind, _ in parts if kind != "ready"]

    def strike(self, fault: str) -> None:
        match fault:
            case "clean release":
                self.child.terminate()
            case "kill -9":
                self.child.kill()
            case "SIGSTOP":
                self.child.freeze()
            case _:
                for wire in self.wires:
                    wire.silence()

    def recover(self, fault: str) -> None:
        """The fault ends, and the process begins anew at its old address."""
        if fault == "clean release":
            with suppress(TimeoutExpired):
                self.child.wait(STOP_SECONDS)
        self.child.kill()
        for wire in self.wires:
            wire.heal()
        self.child.start()

    def stop(self) -> None:
        self._open.close()


class PeerSystem:
    """Three candidates of a peer on one database."""

    def __init__(
        self, command: Sequence[str | Path], url: str, directory: Path, settle_seconds: float
    ) -> None:
        self._command, self._url, self._settle = command, url, settle_seconds
        self._directory = directory
        self._candidates: list[Candidate] = []

    def __enter__(self) -> Self:
        try:
            self._join()  # the first one alone: it makes the tables
            wait_until(self._candidates[0].lines, 60, self._logs)
            self._join()
            self._join()
        except BaseException:
            self._stop()
            raise
        return self

    def _join(self) -> None:
        place = self._directory / f"c{len(self._candidates)}"
        place.mkdir(parents=True)
        env = {"BENCH_PLAN": json.dumps(EACH_SECOND)}
        self._candidates.append(Candidate(self._command, self._url, place, env))

    def takeover(self, fault: str) -> float | None:
        victim = self._settled_leader()
        others = [candidate for candidate in self._candidates if candidate is not victim]
        since = time.time()
        victim.strike(fault)
        deadline = time.monotonic() + NEVER_SECONDS
        found: list[float] = []
        while not found and time.monotonic() < deadline:
            time.sleep(0.02)
            found = [at for other in others for at in other.lines() if at > since]
        victim.recover(fault)
        return min(found) - since if found else None

    def _settled_leader(self) -> Candidate:
        """The one that wrote last, once all have had the time to join."""
        settle(self._settle)
        assert all(candidate.child.running for candidate in self._candidates), self._logs()
        return max(self._candidates, key=lambda candidate: max(candidate.lines(), default=0.0))

    def _logs(self) -> str:
        tails = (candidate.child.output[-150:] for candidate in self._candidates)
        return f"all three run, and one leads: {' | '.join(tails)}"

    def _stop(self) -> None:
        for candidate in self._candidates:
            candidate.stop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()


class BatonSystem:
    """Three replicas of Baton: what counts is when the next app was told to lead."""

    def __init__(self, url: str, directory: Path, profile: str) -> None:
        config = {"cluster": f"bench-{profile}"}
        self._cluster = Cluster(directory, 3, Setup(url, profile=profile, config=config))

    def __enter__(self) -> Self:
        self._cluster.start()
        return self

    def takeover(self, fault: str) -> float | None:
        leader = self._cluster.wait_for_leader()
        settle(2.5)
        since = boottime()
        _STRIKES[fault](leader)
        taken = self._cluster.wait_for_takeover(since, leader, timeout=NEVER_SECONDS)
        if fault == "clean release":
            leader.sidecar.wait()
        leader.sidecar.kill()
        leader.heal()
        leader.sidecar.start()
        time.sleep(1.5)
        return taken.seconds

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cluster.stop()


_STRIKES: Mapping[str, Callable[[Replica], object]] = {
    "clean release": lambda replica: replica.sidecar.terminate(),
    "kill -9": lambda replica: replica.sidecar.kill(),
    "SIGSTOP": lambda replica: replica.sidecar.freeze(),
    "partition": lambda replica: replica.isolate(),
}


def peer_command(
    peer: Peer, profile: str, mode: str, url: str, directory: Path
) -> list[str | Path]:
    """What starts one process, but for its URL and file; the schema is there afterwards."""
    command = peer.command()
    if peer.needs_setup:
        directory.mkdir(parents=True, exist_ok=True)
        with Child([*command, "setup", profile, url, "-"], directory / "setup.log") as setup:
            assert setup.wait(60) == 0, setup.output[-500:]
    return [*command, mode, profile]
