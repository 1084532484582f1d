"""Schedules and singletons that the app declares in its code, as `hello` carries them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from baton._durations import Span, span
from baton._specs import payload_bytes, retry_policy
from baton.v1 import schedules_pb2 as pb
from baton.v1.state_pb2 import StatePolicy
from baton.v1.stream_pb2 import DeclaredSingleton

_CATCH_UP = {
    "latest": pb.CATCH_UP_LATEST,
    "all": pb.CATCH_UP_ALL,
    "none": pb.CATCH_UP_NONE,
}
_OVERLAP = {
    "allow": pb.OVERLAP_ALLOW,
    "skip": pb.OVERLAP_SKIP,
    "queue": pb.OVERLAP_QUEUE,
    "replace": pb.OVERLAP_REPLACE,
}


class ScheduleOptions(TypedDict, total=False):
    """The keys of a schedule, as the configuration file has them."""

    cron: str
    every: Span
    at: datetime
    timezone: str
    group: str
    enabled: bool
    payload: Any
    content_type: str
    start_at: datetime
    end_at: datetime
    expected_interval: Span
    skip_if_older_than: Span
    catch_up: str
    catch_up_max: int
    overlap: str
    retry: pb.RetryPolicy | int
    timeout: Span
    jitter: Span
    ping_url: str
    state: Mapping[str, Any]


class SingletonOptions(TypedDict, total=False):
    """The keys of a singleton, as the configuration file has them."""

    group: str
    expected_interval: Span
    restart_after: Span
    state: Mapping[str, Any]


@dataclass
class Declared:
    """What the app declares; `revision` orders builds in a rollout."""

    revision: int = 0
    schedules: dict[str, pb.Schedule] = field(default_factory=dict)
    singletons: dict[str, DeclaredSingleton] = field(default_factory=dict)

    def schedule(self, name: str, options: ScheduleOptions) -> None:
        """Declares a schedule, if the options say when it runs."""
        timings = [key for key in ("cron", "every", "at") if key in options]
        if len(timings) > 1:
            raise ValueError(f"schedule {name!r}: {' and '.join(timings)} exclude each other")
        if timings:
            self.schedules[name] = _schedule(name, options)
        elif options:
            raise ValueError(f"schedule {name!r}: cron, every or at is missing")

    def singleton(self, name: str, options: SingletonOptions) -> None:
        """Declares a singleton, if there are any options."""
        if options:
            self.singletons[name] = DeclaredSingleton(
                name=name,
                group=options.get("group", ""),
                expected_interval=span(options.get("expected_interval")),
                restart_after=span(options.get("restart_after")),
                state=_state(options.get("state")),
            )


def _schedule(name: str, options: ScheduleOptions) -> pb.Schedule:
    schedule = pb.Schedule(
        name=name,
        group=options.get("group", ""),
        cron=options.get("cron"),
        every=span(options.get("every")),
        at=options.get("at"),
        timezone=options.get("timezone", ""),
        payload=payload_bytes(options.get("payload")),
        content_type=options.get("content_type", ""),
        start_at=options.get("start_at"),
        end_at=options.get("end_at"),
        expected_interval=span(options.get("expected_interval")),
        skip_if_older_than=span(options.get("skip_if_older_than")),
        catch_up_max=options.get("catch_up_max", 0),
        retry=retry_policy(options.get("retry")),
        timeout=span(options.get("timeout")),
        jitter=span(options.get("jitter")),
        ping_url=options.get("ping_url", ""),
        state=_state(options.get("state")),
    )
    if "enabled" in options:
        schedule.enabled = options["enabled"]
    if "catch_up" in options:
        schedule.catch_up = _chosen(name, "catch_up", options["catch_up"], _CATCH_UP)
    if "overlap" in options:
        schedule.overlap = _chosen(name, "overlap", options["overlap"], _OVERLAP)
    return schedule


def _state(state: Mapping[str, Any] | None) -> StatePolicy | None:
    """The keys `version`, `initial`, `schema` and `ttl` of an owned state."""
    if state is None:
        return None
    if unknown := set(state) - {"version", "initial", "schema", "ttl"}:
        raise ValueError(f"state: unknown key {unknown.pop()!r}")
    return StatePolicy(
        version=state.get("version", 0),
        initial=json.dumps(state["initial"]).encode() if "initial" in state else b"",
        schema=json.dumps(state["schema"]).encode() if "schema" in state else b"",
        ttl=span(state.get("ttl")),
    )


def _chosen(name: str, key: str, value: str, allowed: Mapping[str, Any]) -> Any:
    if value not in allowed:
        allowed_names = ", ".join(allowed)
        raise ValueError(f"schedule {name!r}: {key}: {value!r} is not one of {allowed_names}")
    return allowed[value]
