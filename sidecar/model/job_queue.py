"""The settings of a queue."""

from dataclasses import dataclass, field

from sidecar.model.definitions import Retry


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """0: no limit."""

    name: str
    max_running: int = 0  # per pod
    cluster_max_running: int = 0
    per_key: int = 1
    rate: float = 0.0  # starts per second
    retry: Retry = field(default_factory=Retry)
    timeout_seconds: float = 0.0
