"""What the leader runs: singletons and schedules, as declared in the file.

See `settings` for how keys, attributes and the environment relate.
"""

# ruff: noqa: RUF009 - these calls return dataclass fields of frozen values

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sidecar.config import addresses, kinds
from sidecar.config.checks import media_type, time_zone
from sidecar.config.declare import REQUIRED, json, scalar, section

_HTTP_URL = kinds.Text(addresses.HTTP_ALLOWED, addresses.http_url)
_PING = "Called after each success, for an outside dead man's switch."


@dataclass(frozen=True, slots=True)
class State:
    version: int = scalar(
        1,
        kinds.Whole(1, 2**31 - 1),
        "Version of the schema; a new one starts from the older state.",
    )
    initial: Any = json(
        "The state before the first run: any JSON value of at most 1 MiB that fits the schema."
    )
    schema: Mapping[str, Any] = json(
        "JSON Schema (2020-12) of the state, its patterns as RE2 takes them; empty: anything."
    )
    ttl_seconds: float = scalar(
        0.0, kinds.Duration("1s", "3650d", "no end"), "Life of the state after its last write."
    )


@dataclass(frozen=True, slots=True)
class Singleton:
    name: str = scalar(REQUIRED, kinds.Name(), "Unique among the singletons.")
    group: str = scalar("default", kinds.Name(), "One of `groups`: its leader runs it.")
    expected_interval_seconds: float = scalar(
        0.0,
        kinds.Duration("1s", "3650d", "only the heartbeat is checked"),
        "Stale after twice this time without a sign of life from the handler.",
    )
    restart_after_seconds: float = scalar(
        5.0,
        kinds.Duration("10ms", "1d", "at once"),
        "Pause before a handler that returned is called again.",
    )
    ping_url: str = scalar("", _HTTP_URL, _PING, show=False)
    state: State = section(State, "The state kept for it.")


@dataclass(frozen=True, slots=True)
class Retry:
    attempts: int = scalar(3, kinds.Whole(1, 100), "Attempts in all; 1: no retry.")
    initial_seconds: float = scalar(
        1.0, kinds.Duration("10ms", "1d"), "Pause after the first failure; it doubles each time."
    )
    max_seconds: float = scalar(60.0, kinds.Duration("10ms", "7d"), "The longest pause.")


@dataclass(frozen=True, slots=True)
class Schedule:
    name: str = scalar(REQUIRED, kinds.Name(), "Unique among the schedules.")
    cron: str | None = scalar(
        None,
        kinds.Text("5 fields, 6 with seconds first, or @daily and the like"),
        "When to run, as a cron expression; `H` is a hashed field.",
    )
    every_seconds: float | None = scalar(
        None,
        kinds.Duration("100ms", "3650d"),
        "Run at `start_at` (else the Unix epoch) + n × this.",
    )
    at: datetime | None = scalar(None, kinds.Instant(), "Run once, at this time.")
    timezone: str = scalar(
        "UTC", kinds.Text("an IANA name such as Europe/Berlin", time_zone), "The zone of `cron`."
    )
    group: str = scalar("default", kinds.Name(), "One of `groups`: its leader runs it.")
    enabled: bool = scalar(True, kinds.Boolean(), "False: its ticks are skipped as paused.")
    payload: bytes = scalar(b"", kinds.Payload(), "Handed to each run.")
    content_type: str = scalar(
        "application/json", kinds.Text("a media type", media_type), "Media type of the payload."
    )
    start_at: datetime | None = scalar(None, kinds.Instant(), "No tick before this time.")
    end_at: datetime | None = scalar(None, kinds.Instant(), "No tick from this time on.")
    expected_interval_seconds: float = scalar(
        0.0,
        kinds.Duration("1s", "3650d", "derived from the schedule"),
        "Stale after twice this time without a success.",
    )
    skip_if_older_than_seconds: float = scalar(
        86_400.0, kinds.Duration("1s", "3650d"), "An older tick is skipped as misfire."
    )
    catch_up: Literal["latest", "all", "none"] = scalar(
        "latest", kinds.Choice(("latest", "all", "none")), "Which of several missed ticks run."
    )
    catch_up_max: int = scalar(
        100, kinds.Whole(1, 1000), "With `catch_up: all`, at most the newest so many."
    )
    overlap: Literal["allow", "skip", "queue", "replace"] = scalar(
        "allow",
        kinds.Choice(("allow", "skip", "queue", "replace")),
        "What a tick does while an earlier run goes on.",
    )
    retry: Retry = section(Retry, "What happens after a failed attempt.")
    timeout_seconds: float = scalar(
        0.0, kinds.Duration("10ms", "365d", "none"), "Limit for one attempt."
    )
    jitter_seconds: float = scalar(
        0.0, kinds.Duration("1ms", "1d", "none"), "Spreads the start of each run over this time."
    )
    ping_url: str = scalar("", _HTTP_URL, _PING, show=False)
    state: State = section(State, "The state kept for it.")
