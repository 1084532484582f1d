"""Several replicas on one Postgres, and the questions a test asks of them.

All times are taken from the histories of the toy apps: what counts is what an app was told, not
what a sidecar says of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.lab import checker, history
from tests.lab.history import Event
from tests.lab.netns import Namespace
from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.stalls import Stalls


@dataclass(frozen=True, slots=True)
class Takeover:
    """Who was told to lead next, and how long after the fault by a clock that stalls stop."""

    replica: Replica
    seconds: float
    epoch: int


class Cluster:
    """`n` replicas, r0, r1 …; started by the `with` block and gone after it."""

    def __init__(
        self, directory: Path, n: int, setup: Setup, namespaces: Sequence[Namespace] = ()
    ) -> None:
        places: list[Namespace | None] = [*namespaces, *[None] * (n - len(namespaces))]
        self.replicas = [
            Replica(f"r{i}", directory / f"r{i}", setup, place) for i, place in enumerate(places)
        ]
        self._history = history.Reader(replica.history for replica in self.replicas)
        self.stalls = Stalls()
        self._open = ExitStack()

    def start(self, *, sidecars: bool = True) -> Self:
        self._open.enter_context(self.stalls)
        for replica in self.replicas:
            self._open.callback(replica.stop)
            replica.start(sidecar=sidecars)
        return self

    def stop(self) -> None:
        self._open.close()

    def __getitem__(self, index: int) -> Replica:
        return self.replicas[index]

    def others(self, replica: Replica) -> list[Replica]:
        return [other for other in self.replicas if other is not replica]

    def events(self, kind: str = "", phase: str = "arrived", **wanted: object) -> list[Event]:
        """What happened so far: everything, or what `history.select` selects."""
        events = self._history.events()
        return history.select(events, kind, phase, **wanted) if kind else events

    def leader(self, group: str = "default") -> Replica | None:
        """The replica whose app believes, right now, that it leads."""
        events, now = self.events(), boottime()
        for belief in checker.beliefs(events):
            if belief.group == group and belief.start <= now < belief.end:
                return self._named(belief.app)
        return None

    def wait_for_leader(self, group: str = "default", timeout: float = 60) -> Replica:
        """The leader, once it has answered OnBecomeLeader."""

        def ready() -> Replica | None:
            leader = self.leader(group)
            terms = self.events("become", group=group, app=leader.name) if leader else []
            answered = {event.call for event in self.events("become", "ended", outcome="ok")}
            return leader if terms and terms[-1].call in answered else None

        return wait_until(ready, timeout, self._missing(f"a leader of {group}"))

    def wait_until_known(self, group: str = "default", timeout: float = 60) -> Replica:
        """The leader, once every sidecar has told its app who leads: all are up and compete."""
        leader = self.wait_for_leader(group, timeout)
        epoch = self.events("become", group=group, app=leader.name)[-1].epoch
        for replica in self.replicas:
            self.wait_for("watch", app=replica.name, group=group, epoch=epoch, timeout=timeout)
        return leader

    def wait_for_takeover(
        self, since: float, old: Replica, group: str = "default", timeout: float = 60
    ) -> Takeover:
        """The first other app that was told to lead after `since` (of `boottime`)."""

        def told() -> list[Event]:
            terms = self.events("become", group=group, ignored=False)
            return [event for event in terms if event.at > since and event.app != old.name]

        first = wait_until(told, timeout, self._missing(f"a takeover of {group}"))[0]
        return Takeover(self._named(first.app), self.seconds(since, first.at), first.epoch)

    def seconds(self, since: float, until: float) -> float:
        """How long it took, but for the time in which this machine stood still."""
        return until - since - self.stalls.between(since, until)

    def takeover(
        self, fault: Callable[[Replica], object], group: str = "default", timeout: float = 60
    ) -> Takeover:
        """Do `fault` to the leader; who takes over, counted from the instant before the fault."""
        leader = self.wait_for_leader(group)
        since = boottime()
        fault(leader)
        return self.wait_for_takeover(since, leader, group, timeout)

    def wait_for(
        self, kind: str, count: int = 1, timeout: float = 60, **wanted: Any
    ) -> list[Event]:
        """The events of that kind, once there are so many."""

        def enough() -> list[Event]:
            events = self.events(kind, **wanted)
            return events if len(events) >= count else []

        return wait_until(enough, timeout, self._missing(f"{count} × {kind} {wanted}"))

    def check(self, *kinds: str) -> None:
        """G1, G2 and the order of callbacks hold in all that happened; see `checker`."""
        checker.assert_holds(self.events(), kinds=kinds or ("become",))

    def _named(self, name: str) -> Replica:
        return next(replica for replica in self.replicas if replica.name == name)

    def _missing(self, what: str) -> Callable[[], str]:
        return lambda: "\n".join([what, *(replica.describe() for replica in self.replicas)])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
