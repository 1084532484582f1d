"""Every metric, declared once: name, help, unit, labels, buckets.

Guarantees: labels come from closed sets, from the config, or through `entity_label`, which admits
at most `ENTITY_NAMES_MAX` names of callers and labels all others `other`; this package does no I/O.

Times are in seconds; `…_timestamp` and `singleton_last_execution` are Unix seconds; 0 or absent
means never.
"""

import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from sidecar.metrics.entities import OTHER as OTHER
from sidecar.metrics.entities import SPAN, Entities
from sidecar.metrics.entities import EntityType as EntityType
from sidecar.model.errors import (
    HeartbeatFailed,
    LeaderHandoffFailed,
    SchemaDecodeFailed,
    StateLoadFailed,
    StatePersistFailed,
)
from sidecar.model.run import Outcome
from sidecar.model.schedule import SkipReason
from sidecar.model.term import LossReason

ENTITY_NAMES_MAX: Final = 500

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TAKEOVER = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 30, 60)
_LATENESS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600, 86_400)

# `_created` series double the size of a scrape, and no dashboard or alert uses them.
disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

_STATE_FAILURES = (
    StateLoadFailed,
    StatePersistFailed,
    SchemaDecodeFailed,
    HeartbeatFailed,
    LeaderHandoffFailed,
)
_PING_FAILURES = ("timeout", "status", "connection", "queue_full")
_FENCED = (
    "tick",
    "claim",
    "completion",
    "singleton",
    "state",
    "checkpoint",
    "heartbeat",
    "deferred",
)

HEARTBEAT_FAILURES = Counter(
    "baton_heartbeat_failures_total", "Heartbeats that could not be written.", registry=REGISTRY
)
STATE_ERRORS = Counter(
    "singleton_state_errors_total",
    "Loads, writes, decodings of state, heartbeats and hand-overs that failed, by type of error.",
    ("reason",),
    registry=REGISTRY,
)

# Leadership.
IS_LEADER = Gauge(
    "baton_is_leader", "1 while this runner leads the group.", ("group",), registry=REGISTRY
)
EPOCH = Gauge(
    "baton_epoch", "Epoch of this runner's last term of the group.", ("group",), registry=REGISTRY
)
TAKEOVER_SECONDS = Histogram(
    "baton_takeover_seconds",
    "From the last sign of life of the old leader until the new leader's app acknowledged.",
    buckets=_TAKEOVER,
    registry=REGISTRY,
)
MIGRATION_SLA_EXCEEDED = Counter(
    "baton_migration_sla_exceeded_total",
    "Takeovers that took longer than election.takeover_sla.",
    registry=REGISTRY,
)
TERMS_ENDED = Counter(
    "baton_terms_ended_total",
    "Terms of this runner that ended, by reason.",
    ("reason",),
    registry=REGISTRY,
)
PING_SECONDS = Histogram(
    "baton_lease_ping_seconds",
    "How long Postgres took to acknowledge a ping of the lock session.",
    buckets=_QUICK,
    registry=REGISTRY,
)
FENCED_WRITES = Counter(
    "baton_fenced_writes_total",
    "Writes refused because a newer term exists, by kind of write.",
    ("write",),
    registry=REGISTRY,
)

# Schedules and runs.
TICK_LATENESS_SECONDS = Histogram(
    "baton_tick_lateness_seconds",
    "From a tick's due time to the start of its first attempt.",
    buckets=_LATENESS,
    registry=REGISTRY,
)
API_CONNECTIONS_REFUSED = Counter(
    "baton_api_connections_refused_total",
    "Connections to the API that were refused, delayed or closed, by the limit that they broke.",
    ("reason",),
    registry=REGISTRY,
)
TICKS = Counter(
    "baton_ticks_total",
    "Ticks with an outcome; reason is empty unless skipped.",
    ("outcome", "reason"),
    registry=REGISTRY,
)
RUN_BACKLOG = Gauge(
    "baton_run_backlog",
    "Runs and ticks of a group led here that are due for over a second and have not started.",
    ("group",),
    registry=REGISTRY,
)
RUN_BACKLOG_SECONDS = Gauge(
    "baton_run_backlog_seconds",
    "For how long the oldest of them has been due.",
    ("group",),
    registry=REGISTRY,
)
RUNS_IN_FLIGHT = Gauge(
    "baton_runs_in_flight", "Execute calls open towards the app.", registry=REGISTRY
)
ATTACHED_PROCESSES = Gauge(
    "baton_attached_processes", "Processes of the app that are attached.", registry=REGISTRY
)
LATE_COMPLETIONS_REFUSED = Counter(
    "baton_late_completions_refused_total",
    "Answers of the app that came after their attempt or term was over.",
    registry=REGISTRY,
)
# Jobs.
JOB_PICKUP_SECONDS = Histogram(
    "baton_job_pickup_seconds",
    "From when a job was due to the claim of its first attempt.",
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300),
    registry=REGISTRY,
)
JOB_DURATION_SECONDS = Histogram(
    "baton_job_duration_seconds",
    "Duration of the last attempt of jobs that ended.",
    registry=REGISTRY,
)
JOBS_ENDED = Counter(
    "baton_jobs_ended_total",
    "Jobs that ended on this pod, by outcome.",
    ("outcome",),
    registry=REGISTRY,
)
JOB_FAILURES = Counter(
    "baton_job_failures_total", "Attempts of jobs that failed.", registry=REGISTRY
)
JOBS_RESCUED = Counter(
    "baton_job_rescued_total", "Jobs taken back from a worker that was fenced.", registry=REGISTRY
)
WORKERS_FENCED = Counter(
    "baton_job_workers_fenced_total",
    "Workers that this pod fenced: their beats were silent.",
    registry=REGISTRY,
)
CALLBACK_SECONDS = Histogram(
    "baton_callback_seconds",
    "Calls into the app, by method and gRPC code.",
    ("method", "code"),
    buckets=SPAN,
    registry=REGISTRY,
)
BREAKER_OPEN = Gauge(
    "baton_breaker_open", "1 while the circuit breaker is open.", registry=REGISTRY
)

# Dependencies.
CACHE_ERRORS = Counter(
    "baton_cache_errors_total", "Calls to Redis that failed or took too long.", registry=REGISTRY
)
DEPENDENCY_UP = Gauge(
    "baton_dependency_up",
    "1 while the check passes (app, postgres, redis, loop).",
    ("dependency",),
    registry=REGISTRY,
)
DEPENDENCY_SECONDS = Gauge(
    "baton_dependency_latency_seconds",
    "How long the last check took that passed.",
    ("dependency",),
    registry=REGISTRY,
)
READY = Gauge("baton_ready", "1 while /readyz succeeds.", registry=REGISTRY)
POOL_CONNECTIONS = Gauge(
    "baton_postgres_pool_connections", "Connections open in the pool.", registry=REGISTRY
)
LOOP_LAG_SECONDS = Histogram(
    "baton_event_loop_lag_seconds",
    "How late the event loop woke a sleeper.",
    buckets=_QUICK,
    registry=REGISTRY,
)
PING_URL_FAILURES = Counter(
    "baton_ping_url_failures_total",
    "Outgoing pings that failed or found the queue full.",
    ("cause",),
    registry=REGISTRY,
)
IDS_GENERATED = Counter("baton_ids_generated_total", "Snowflake ids generated.", registry=REGISTRY)
BUILD = Gauge(
    "baton_build_info",
    "Always 1; the version of sidecar and Python.",
    ("version", "python"),
    registry=REGISTRY,
)
BUILD.labels(version("baton-sidecar"), platform.python_version()).set(1)

# Jobs: what the API knows. `QUEUE_DEPTH` is set by one pod, the leader of the first group.
JOBS_SUBMITTED = Counter(
    "baton_jobs_submitted_total",
    "Jobs that Submit stored on this pod, without duplicates.",
    registry=REGISTRY,
)
QUEUE_DEPTH = Gauge(
    "baton_job_queue_depth",
    "Jobs of a queue, by state: ready, scheduled or running. On the leader of the first group.",
    ("queue", "state"),
    registry=REGISTRY,
)
QUEUE_OLDEST_SECONDS = Gauge(
    "baton_job_queue_oldest_seconds",
    "How long the oldest ready job of a queue has been due. On the leader of the first group.",
    ("queue",),
    registry=REGISTRY,
)
DEAD_JOBS = Gauge(
    "baton_job_dead",
    "Dead letters of a queue. On the leader of the first group.",
    ("queue",),
    registry=REGISTRY,
)


class CappedNames:
    """Admits a bounded number of names and labels the rest `other`.

    Names from the config are reserved and do not count. A released name makes room for another.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._reserved: set[str] = set()
        self._admitted: set[str] = set()

    def reserve(self, names: Iterable[str]) -> None:
        self._reserved.update(names)
        self._admitted -= self._reserved

    def __call__(self, name: str) -> str:
        if name in self._reserved or name in self._admitted:
            return name
        if len(self._admitted) >= self._cap:
            return OTHER
        self._admitted.add(name)
        return name

    def release(self, name: str) -> None:
        self._admitted.discard(name)


# The label for the name of a singleton or schedule; `reserve` it with what the config names.
entity_label = CappedNames(ENTITY_NAMES_MAX)
# The metrics of each singleton and schedule, by name.
ENTITIES: Final = Entities(lambda name: entity_label(name))
REGISTRY.register(ENTITIES)


def declare(groups: Iterable[str], singletons: Iterable[str], schedules: Iterable[str]) -> None:
    """Create series at 0 at the start: without a 0 before it, `increase` misses the first event.

    Names come from the config; all other labels come from closed sets.
    """
    for group in groups:
        IS_LEADER.labels(group).set(0)
        RUN_BACKLOG.labels(group).set(0)
        RUN_BACKLOG_SECONDS.labels(group).set(0)
    kinds: tuple[tuple[EntityType, Iterable[str]], ...] = (
        ("singleton", singletons),
        ("cron", schedules),
    )
    for kind, names in kinds:
        entity_label.reserve(names := tuple(names))
        for name in names:
            ENTITIES(name, kind).declare()
    for closed, labels in _closed():
        closed.labels(*labels)


def _closed() -> Iterator[tuple[Counter, tuple[str, ...]]]:
    """Counters whose labels come from closed sets, with each combination."""
    yield from ((TERMS_ENDED, (reason.value,)) for reason in LossReason)
    yield from ((STATE_ERRORS, (error.__name__,)) for error in _STATE_FAILURES)
    yield from ((FENCED_WRITES, (write,)) for write in _FENCED)
    yield from ((PING_URL_FAILURES, (cause,)) for cause in _PING_FAILURES)
    yield from ((TICKS, (outcome.value, "")) for outcome in (Outcome.SUCCEEDED, Outcome.FAILED))
    yield from (
        (TICKS, (Outcome.SKIPPED.value, reason.value))
        for reason in SkipReason
        if reason is not SkipReason.EXPIRED
    )


def delete_entity(name: str, kind: EntityType) -> None:
    """Delete all series of the entity; its name makes room for another."""
    ENTITIES.delete(name, kind)
    if entity_label(name) != OTHER:
        entity_label.release(name)
