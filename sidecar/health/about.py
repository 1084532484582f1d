"""What /health says about this runner: who it is, and who leads its groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sidecar.model.election_types import LeaderView


class Leadership(Protocol):
    def all(self) -> Sequence[LeaderView]: ...


@dataclass(frozen=True, slots=True)
class About:
    leadership: Leadership
    clock: Callable[[], float]
    version: str
    cluster: str
    runner_id: str
    host: str
    processes: Callable[[], Sequence[Mapping[str, Any]]] = tuple  # of the app, that are attached

    def __call__(self) -> Mapping[str, Any]:
        now = self.clock()
        return {
            "version": self.version,
            "cluster": self.cluster,
            "runner_id": self.runner_id,
            "host": self.host,
            "leadership": [_leader(view, now) for view in self.leadership.all()],
            "processes": list(self.processes()),
        }


def _leader(view: LeaderView, now: float) -> Mapping[str, Any]:
    return {
        "group": view.group,
        "is_leader": view.is_leader,
        "leader": view.runner_id or None,
        "epoch": view.epoch,
        "trusted_ms": round(max(0.0, view.trusted_until - now) * 1000),
        "draining": view.draining,
    }
