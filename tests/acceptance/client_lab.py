"""Pods whose apps are built on the Python client."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import grpc

from tests.acceptance.ledger import Ledger
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Replica, Setup

T = TypeVar("T")

LEADS = 'baton_is_leader{group="default"} 1.0'


def patiently(call: Callable[[], T], timeout: float = 60) -> T:
    """What `call` returns, once the pod it asks has joined: it may just have been started."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return call()
        except (grpc.RpcError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


class ClientCluster(Cluster):
    """Replicas whose app is `module`, which takes --address, --sidecar and --ledger."""

    def __init__(self, directory: Path, n: int, setup: Setup, module: str) -> None:
        super().__init__(directory, n, setup)
        self.ledger = Ledger(directory / "ledger.jsonl")
        for replica in self.replicas:
            replica.app.command = [
                sys.executable, "-m", module, "--address", replica.app_address,
                "--sidecar", replica.api_address, "--ledger", self.ledger.path,
            ]  # fmt: skip

    def leading(self, timeout: float = 60, but: Replica | None = None) -> Replica:
        """A living replica that says it leads; `but` is not asked."""

        def found() -> Replica | None:
            for replica in self.replicas:
                if replica is but or not (replica.sidecar.running and replica.app.running):
                    continue
                if LEADS in replica.http("/metrics")[1]:
                    return replica
            return None

        return wait_until(found, timeout, self._missing("a leader"))

    def resign(self, asked: Replica) -> None:
        """Ask for a hand-over, on any pod: it must know who leads."""
        patiently(lambda: baton("resign", "default", "--address", asked.api_address))

    def hand_to(self, wanted: Replica) -> None:
        """Ask for hand-overs until this pod leads: one that just resigned lets others go first."""
        for _ in range(6):
            leader = self.leading()
            if leader is wanted:
                return
            self.resign(leader)
            wait_until(lambda old=leader: LEADS not in old.http("/metrics")[1], 60)  # type: ignore[misc]
        raise AssertionError(f"{wanted.name} does not get to lead")

    def revive(self) -> None:
        """Start every process that has ended."""
        for replica in self.replicas:
            for child in (replica.app, replica.sidecar):
                if not child.running:
                    child.start()
