"""Definitions of singletons and schedules, with their retry and state settings.

The configuration file, the API and the database all produce these plain values.
`sidecar.config.work` defines the allowed values of each field and its description in the
configuration reference.

The `repr` of State and Retry is part of the digest of a file (`scheduling/config_sync.py`). Do not
rename these classes: two releases would compute different digests of one file during a rollout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class State:
    """The state settings of a singleton or schedule."""

    version: int = 1
    initial: Any = field(default_factory=dict)  # any JSON value
    schema: Mapping[str, Any] = field(default_factory=dict)  # empty: the state is opaque bytes
    ttl_seconds: float = 0.0  # 0: the state never expires


@dataclass(frozen=True, slots=True)
class Retry:
    """The number of attempts, including the first, and the waits between them."""

    attempts: int = 3
    initial_seconds: float = 1.0
    max_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Singleton:
    name: str
    group: str = "default"
    expected_interval_seconds: float = 0.0  # 0: only the heartbeat is checked
    restart_after_seconds: float = 5.0
    ping_url: str = field(default="", repr=False)
    state: State = field(default_factory=State)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Exactly one of `cron`, `every_seconds` and `at` defines the ticks."""

    name: str
    cron: str | None = None
    every_seconds: float | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    group: str = "default"
    enabled: bool = True
    payload: bytes = b""
    content_type: str = "application/json"
    start_at: datetime | None = None
    end_at: datetime | None = None
    expected_interval_seconds: float = 0.0  # 0: derived from the ticks
    skip_if_older_than_seconds: float = 86_400.0
    catch_up: Literal["latest", "all", "none"] = "latest"
    catch_up_max: int = 100
    overlap: Literal["allow", "skip", "queue", "replace"] = "allow"
    retry: Retry = field(default_factory=Retry)
    timeout_seconds: float = 0.0  # 0: no timeout
    jitter_seconds: float = 0.0
    ping_url: str = field(default="", repr=False)
    state: State = field(default_factory=State)
