"""Gauges and log lines of the dead man's switch, for what is led here."""

from collections.abc import Iterable
from datetime import datetime

import structlog

from sidecar import metrics
from sidecar.metrics import EntityType
from sidecar.model.errors import HeartbeatFailed, SidecarError
from sidecar.model.health import EntityKey, EntityKind, Judgement, Stale, Vitals
from sidecar.model.term import Term
from sidecar.slices import in_slices

log = structlog.get_logger()

# Lines per judgement: an overloaded group may have thousands of stale schedules.
LOGGED_MAX = 20
_AT_ONCE = 200
_TYPES: dict[EntityKind, EntityType] = {"singleton": "singleton", "schedule": "cron"}


def heartbeat_failed(term: Term, cause: SidecarError) -> None:
    error = HeartbeatFailed(f"group {term.group}: {cause}")
    metrics.HEARTBEAT_FAILURES.inc()
    metrics.STATE_ERRORS.labels(error.reason).inc()
    log.warning("heartbeat_failed", group=term.group, epoch=term.epoch, error=error)


def report_changes(before: set[EntityKey], stale: Iterable[Stale], now: datetime) -> None:
    after = {each.vitals.key: each for each in stale}
    arisen, recovered = sorted(after.keys() - before), sorted(before - after.keys())
    for number, (kind, name) in enumerate(arisen):
        metrics.ENTITIES.is_stale(name, _TYPES[kind], True)
        if number < LOGGED_MAX:
            log.warning("entity_stale", kind=kind, name=name, reason=after[kind, name].reason(now))
    for number, (kind, name) in enumerate(recovered):
        metrics.ENTITIES.is_stale(name, _TYPES[kind], False)
        if number < LOGGED_MAX:
            log.info("entity_recovered", kind=kind, name=name)
    if max(len(arisen), len(recovered)) > LOGGED_MAX:
        log.warning("entities_stale", stale=len(after), new=len(arisen), recovered=len(recovered))


async def publish(
    before: Iterable[Vitals], entities: Iterable[Vitals], judgement: Judgement
) -> None:
    """Set the gauges of what is led here from Postgres, so that a new leader starts right."""
    stale = {each.vitals.key for each in judgement.stale}
    known = {each.key: each for each in before}
    async for vitals in in_slices(entities, _AT_ONCE):
        if known.get(vitals.key) == vitals:
            continue
        metrics.ENTITIES.is_stale(vitals.name, _TYPES[vitals.kind], vitals.key in stale)
        shown = metrics.ENTITIES(vitals.name, _TYPES[vitals.kind])
        if vitals.heartbeat_at:
            shown.heartbeat_at = vitals.heartbeat_at.timestamp()
        # Postgres has the start of a run: do not move back a gauge that has its end.
        for sign in filter(None, (vitals.last_run_at, vitals.last_success_at)):
            shown.last_execution = max(shown.last_execution or 0.0, sign.timestamp())
        if vitals.last_success_at:
            shown.last_success = vitals.last_success_at.timestamp()
        # None: paused, not overdue.
        shown.next_run = vitals.next_run_at.timestamp() if vitals.next_run_at else None


def delete_gone(before: Iterable[Vitals], after: Iterable[Vitals]) -> None:
    for kind, name in {each.key for each in before} - {each.key for each in after}:
        metrics.delete_entity(name, _TYPES[kind])


async def publish_heartbeats(entities: Iterable[Vitals], at: datetime) -> None:
    async for vitals in in_slices(entities, _AT_ONCE):
        metrics.ENTITIES(vitals.name, _TYPES[vitals.kind]).heartbeat_at = at.timestamp()


def forget(entities: Iterable[Vitals]) -> None:
    for vitals in entities:
        metrics.ENTITIES.forget(vitals.name, _TYPES[vitals.kind])
