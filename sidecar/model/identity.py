"""The identity of this sidecar: cluster, runner id, host, and their ids in Postgres."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex


@dataclass(frozen=True, slots=True)
class Identity:
    """Complete after the first reply of Postgres; constant for the life of the process."""

    cluster: str
    cluster_id: int
    runner_id: str
    host: str
    groups: Mapping[str, int]
    installation_id: str


def new_runner_id(prefix: str, host: str) -> str:
    """A new id per process: a restarted sidecar is a different runner."""
    return f"{prefix or host}-{token_hex(4)}"
