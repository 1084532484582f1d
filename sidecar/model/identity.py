"""Who this sidecar is: cluster, runner id, host, and the numbers Postgres knows them by."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex


@dataclass(frozen=True, slots=True)
class Identity:
    """Known once Postgres answered; the same for the life of the process."""

    cluster: str
    cluster_id: int
    runner_id: str
    host: str
    groups: Mapping[str, int]
    installation_id: str


def new_runner_id(prefix: str, host: str) -> str:
    """Unique per process life: a restarted sidecar is another runner."""
    return f"{prefix or host}-{token_hex(4)}"
