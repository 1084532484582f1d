"""What a leader under attack must keep up: memory, probes, ticks."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.replica import Replica


def megabytes(replica: Replica) -> float:
    pages = Path(f"/proc/{replica.sidecar.pid}/statm").read_text().split()[1]
    return int(pages) * 4096 / 1e6


class Witness:
    """Looks at memory and probes while the `with` block runs."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.megabytes = 0.0
        self.slowest = 0.0
        self.failed = list[str]()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=look, daemon=True) for look in (self._memory, self._probes)
        ]

    def _memory(self) -> None:
        while not self._over.wait(0.05):
            self.megabytes = max(self.megabytes, megabytes(self._replica))

    def _probes(self) -> None:
        while not self._over.wait(0.1):
            for path in ("/livez", "/readyz"):
                began = time.monotonic()
                status, body = self._replica.http(path)
                self.slowest = max(self.slowest, time.monotonic() - began)
                if status != 200:
                    self.failed.append(f"{path}: {status} {body}")

    def __enter__(self) -> Witness:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(10)


def gap_seconds(cluster: Cluster, since: float) -> float:
    """The longest time between two ticks of a schedule that is due each second."""
    at = [event.at for event in cluster.events("execute", name="witness") if event.at > since - 1]
    return max(late - early for early, late in itertools.pairwise(at))
