"""Somebody who asks /readyz of some replicas again and again, as a kubelet does; keeps count."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Replica

_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """Status 0: nobody answered in time."""

    at: float
    replica: str
    status: int
    body: str
    seconds: float


class Probes:
    """Asks for as long as the `with` block lasts."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.answers: list[Answer] = []
        self._replicas = replicas
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(replica,), name=f"probe.{replica.name}")
            for replica in replicas
        ]

    def red(self, replica: Replica | None = None, since: float = 0.0) -> list[Answer]:
        """Answers other than 200."""
        return [
            answer
            for answer in list(self.answers)
            if answer.status != 200
            and answer.at >= since
            and (replica is None or answer.replica == replica.name)
        ]

    def ask_all(self) -> None:
        """Returns when every replica was asked after the call and has answered."""
        now = boottime()

        def asked() -> bool:
            recent = {answer.replica for answer in list(self.answers) if answer.at >= now}
            return recent >= {replica.name for replica in self._replicas}

        wait_until(asked, 30, "an answer of every replica")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, replica: Replica) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            at, started = boottime(), time.monotonic()
            status, body = replica.http("/readyz")
            seconds = time.monotonic() - started
            self.answers.append(Answer(at, replica.name, status, body, seconds))


def wait_ready(replica: Replica, ready: bool, seconds: float) -> str:
    """The body of /readyz, once it says so."""

    def answer() -> str:
        status, body = replica.http("/readyz")
        return body if status == (200 if ready else 503) else ""

    what = "ready" if ready else "not ready"
    return wait_until(
        answer, seconds, lambda: f"{what}: {replica.http('/readyz')}\n{replica.describe()}"
    )
