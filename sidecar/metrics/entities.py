"""The metrics of each singleton and schedule, by name.

Guarantees: ten thousand entities are cheap. An entity costs some hundred bytes and microseconds,
while prometheus_client's children need a lock for each value; a scrape shows the same series.
Durations have buckets for the first `HISTOGRAMS_MAX` entities that ran; the rest share one
histogram. Entities with the label `other` share its counters; of its gauges only `baton_stale` is
meaningful: 1 while one of them is stale.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

EntityType = Literal["singleton", "cron"]

OTHER: Final = "other"
HISTOGRAMS_MAX: Final = 500
# A callback may take milliseconds, a run hours, an execution of a singleton days.
SPAN: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)
_LIMITS = (*(str(float(limit)) for limit in SPAN), "+Inf")
_LABELS = ("singleton", "type")


class Entity:
    """One singleton or schedule; a value of None is not shown."""

    __slots__ = (
        "errors",
        "executions",
        "heartbeat_at",
        "histogram",
        "last_execution",
        "last_success",
        "next_run",
        "stale",
    )

    def __init__(self) -> None:
        self.executions: int | None = None
        self.errors: int | None = None
        self.histogram: Histogram | None = None
        self.forget()

    def forget(self) -> None:
        """No longer led here: its gauges must not freeze at their last value."""
        self.last_execution: float | None = None
        self.last_success: float | None = None
        self.next_run: float | None = None
        self.heartbeat_at: float | None = None
        self.stale: bool | None = None

    def declare(self) -> None:
        """Show zeros: without a 0 before it, `increase` misses the first event."""
        self.executions = self.executions or 0
        self.errors = self.errors or 0


class Histogram:
    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(_LIMITS)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(SPAN, seconds)] += 1
        self.total += seconds


_Key = tuple[str, EntityType]


class Entities(Collector):
    """All entities, as a collector of prometheus_client. `label` bounds the names."""

    def __init__(self, label: Callable[[str], str]) -> None:
        self.label = label
        self._entities: dict[_Key, Entity] = {}
        self._stale_others: dict[EntityType, set[str]] = {"singleton": set(), "cron": set()}
        self._histograms = 0

    def __call__(self, name: str, kind: EntityType) -> Entity:
        key = self.label(name), kind
        entity = self._entities.get(key)
        if entity is None:
            entity = self._entities[key] = Entity()
        return entity

    def ended(self, name: str, kind: EntityType, *, at: float, seconds: float, good: bool) -> None:
        """An execution ended; `good` unless it failed."""
        entity = self(name, kind)
        entity.declare()
        entity.executions = (entity.executions or 0) + 1
        entity.errors = (entity.errors or 0) + (not good)
        entity.last_execution = at
        self._histogram(entity, kind).observe(seconds)

    def is_stale(self, name: str, kind: EntityType, stale: bool) -> None:
        """Set whether the dead man's switch considers the entity stale."""
        if stale and self.label(name) == OTHER:
            self._stale_others[kind].add(name)
        else:
            self._stale_others[kind].discard(name)  # it may have been one of `other` before
        self(name, kind).stale = stale

    def forget(self, name: str, kind: EntityType) -> None:
        """The entity is no longer led here."""
        if self.label(name) == OTHER:  # shared with other entities
            self.is_stale(name, kind, False)
        elif entity := self._entities.get((name, kind)):
            entity.forget()

    def delete(self, name: str, kind: EntityType) -> None:
        """Delete all series of the entity."""
        if self.label(name) == OTHER:
            self.is_stale(name, kind, False)
            return
        entity = self._entities.pop((self.label(name), kind), None)
        if entity and entity.histogram:
            self._histograms -= 1

    def clear(self) -> None:
        self._entities.clear()
        for names in self._stale_others.values():
            names.clear()
        self._histograms = 0

    def describe(self) -> Iterable[Metric]:
        return self._families([])

    def collect(self) -> Iterable[Metric]:
        return self._families(list(self._entities.items()))  # a copy: scrapes run in a thread

    def _histogram(self, entity: Entity, kind: EntityType) -> Histogram:
        if entity.histogram is None:
            if self._histograms < HISTOGRAMS_MAX:
                self._histograms += 1
            else:
                entity = self._entities.setdefault((OTHER, kind), Entity())
            entity.histogram = entity.histogram or Histogram()
        return entity.histogram

    def _stale(self, key: _Key, entity: Entity) -> bool | None:
        if key[0] != OTHER or entity.stale is None:
            return entity.stale
        return bool(self._stale_others[key[1]])

    def _families(self, known: list[tuple[_Key, Entity]]) -> Iterator[Metric]:
        yield _durations(known)
        yield _counters(
            "singleton_executions",
            "Executions that ended, with any outcome.",
            ((key, e.executions) for key, e in known),
        )
        yield _counters(
            "singleton_errors",
            "Executions that ended in an error.",
            ((key, e.errors) for key, e in known),
        )
        own = [(key, entity) for key, entity in known if key[0] != OTHER]
        yield _gauges(
            "singleton_last_execution",
            "Unix time of the last execution, or of the last sign of life of a singleton.",
            ((key, e.last_execution) for key, e in own),
        )
        yield _gauges(
            "baton_stale",
            "1 while a singleton or schedule led here is stale (dead man's switch).",
            ((key, self._stale(key, e)) for key, e in known),
        )
        yield _gauges(
            "baton_heartbeat_timestamp",
            "Unix time of the last heartbeat written for a singleton or schedule led here.",
            ((key, e.heartbeat_at) for key, e in own),
        )
        crons = [(key[:1], entity) for key, entity in own if key[1] == "cron"]
        yield _gauges(
            "baton_schedule_next_run_timestamp",
            "Unix time of the next tick of a schedule led here.",
            ((key, e.next_run) for key, e in crons),
            labels=("schedule",),
        )
        yield _gauges(
            "baton_schedule_last_success_timestamp",
            "Unix time of the last success of a schedule led here.",
            ((key, e.last_success) for key, e in crons),
            labels=("schedule",),
        )


_Values = Iterable[tuple[tuple[str, ...], float | None]]


def _durations(known: list[tuple[_Key, Entity]]) -> Metric:
    family = HistogramMetricFamily(
        "singleton_duration_seconds",
        "How long an execution of a singleton or schedule took.",
        labels=_LABELS,
    )
    for key, entity in known:
        if seen := entity.histogram:
            buckets = list(zip(_LIMITS, map(float, accumulate(seen.counts)), strict=True))
            family.add_metric(key, buckets, seen.total)
    return family


def _counters(name: str, about: str, values: _Values) -> Metric:
    family = CounterMetricFamily(name, about, labels=_LABELS)
    for key, value in values:
        if value is not None:
            family.add_metric(key, value)
    return family


def _gauges(name: str, about: str, values: _Values, labels: tuple[str, ...] = _LABELS) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values:
        if value is not None:
            family.add_metric(key, float(value))
    return family
