"""What metrics say about runs."""

from collections.abc import Iterable

from sidecar import metrics
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Delivery, Outcome, RunKind


def count_start(delivery: Delivery) -> None:
    if delivery.kind is RunKind.SCHEDULE and delivery.ref.attempt == 1:
        metrics.TICK_LATENESS_SECONDS.observe(max(0.0, delivery.late_seconds))


def count_ended(ended: Iterable[Recorded]) -> None:
    """Runs that ended without an attempt of ours."""
    for recorded in ended:
        if recorded.kind is RunKind.SCHEDULE:
            metrics.TICKS.labels(recorded.outcome or "", recorded.reason or "").inc()


def count_recorded(report: Report, recorded: Recorded) -> None:
    delivery, outcome = report.delivery, recorded.outcome
    if outcome is None:
        return
    count_ended([recorded])
    kind: metrics.EntityType = "singleton" if delivery.kind is RunKind.SINGLETON else "cron"
    ended_at = recorded.finished_at.timestamp() if recorded.finished_at else 0.0
    metrics.ENTITIES.ended(
        delivery.name,
        kind,
        at=ended_at,
        seconds=recorded.seconds or 0.0,
        good=outcome is not Outcome.FAILED,
    )
    if outcome is Outcome.SUCCEEDED and kind == "cron":
        metrics.ENTITIES(delivery.name, kind).last_success = ended_at
