"""Announces what happened to a run, of any kind: metrics, log, watchers, health, ping URLs.

Everything here follows a commit and never fails a run.
"""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import structlog

from sidecar import logs, metrics
from sidecar.model.run import Answer, CallFailed, Failed, Outcome, Run, RunKind
from sidecar.model.run_records import Completion, Recorded

log = structlog.get_logger()

# Called after a completion was committed.
Listener = Callable[[Completion, Recorded], None]


class States(Protocol):
    def returned(self, key: str, state_version: int) -> None:
        """A run returned this state, and it is stored: update caches and notify watchers."""


class Pings(Protocol):
    def send(self, name: str, url: str, event: Literal["start", "success", "failure"]) -> None: ...


class Announcer:
    def __init__(
        self, *, states: States | None = None, pings: Pings | None = None, health: Listener
    ) -> None:
        """`health` is told of every completion: the dead man's switch, or for jobs the watchers."""
        self._states = states
        self._pings = pings
        self._listener = health

    def claimed(self, run: Run) -> None:
        if run.kind is RunKind.SCHEDULE and run.ref.attempt == 1:
            metrics.TICK_LATENESS_SECONDS.observe(max(0.0, run.late_seconds))
        elif run.kind is RunKind.JOB and run.ref.attempt == 1:
            metrics.JOB_PICKUP_SECONDS.observe(max(0.0, run.late_seconds))

    def delivered(self, run: Run) -> None:
        if logs.debugging():
            log.debug("execute_started", **_fields(run))
        if run.ping_url:
            self._ping(run, "start")

    def answered(self, run: Run, answer: Answer) -> None:
        if isinstance(answer, Failed | CallFailed):
            fields = {"code": answer.code, "problem": answer.message}
            log.warning("execute_failed", **fields, **_fields(run))
        elif logs.debugging():
            log.debug("execute_answered", answer=type(answer).__name__, **_fields(run))

    def recorded(self, completion: Completion, recorded: Recorded) -> None:
        run = completion.run
        if completion.verdict.state is not None and self._states:
            self._states.returned(run.state_key, run.state_version)
        if run.kind is RunKind.JOB:
            _count_job(completion, recorded)
        else:
            self._count(run, recorded)
        self._listener(completion, recorded)
        if run.ping_url and recorded.outcome is Outcome.SUCCEEDED:
            self._ping(run, "success")
        elif run.ping_url and recorded.outcome is Outcome.FAILED:
            self._ping(run, "failure")

    def too_late(self, run: Run) -> None:
        metrics.LATE_COMPLETIONS_REFUSED.inc()
        log.warning("late_completion_refused", **_fields(run))

    def ended(self, ended: Iterable[Recorded]) -> None:
        """Runs that ended without an attempt of ours."""
        for recorded in ended:
            if recorded.kind is RunKind.SCHEDULE:
                metrics.TICKS.labels(recorded.outcome or "", recorded.reason or "").inc()

    def _count(self, run: Run, recorded: Recorded) -> None:
        outcome = recorded.outcome
        if outcome is None:
            return
        self.ended([recorded])
        kind: metrics.EntityType = "singleton" if run.kind is RunKind.SINGLETON else "cron"
        ended_at = recorded.finished_at.timestamp() if recorded.finished_at else 0.0
        metrics.ENTITIES.ended(
            run.name,
            kind,
            at=ended_at,
            seconds=recorded.seconds or 0.0,
            good=outcome is not Outcome.FAILED,
        )
        if outcome is Outcome.SUCCEEDED and kind == "cron":
            metrics.ENTITIES(run.name, kind).last_success = ended_at

    def _ping(self, run: Run, event: Literal["start", "success", "failure"]) -> None:
        if self._pings and run.ping_url:
            self._pings.send(run.name, run.ping_url, event)


def _count_job(completion: Completion, recorded: Recorded) -> None:
    if completion.verdict.used_retry:
        metrics.JOB_FAILURES.inc()
    if recorded.outcome is not None:
        metrics.JOBS_ENDED.labels(recorded.outcome.value).inc()
        metrics.JOB_DURATION_SECONDS.observe(recorded.seconds or 0.0)


def _fields(run: Run) -> dict[str, object]:
    """The run in log fields; the log context may be that of another group."""
    return {
        "group": run.group,
        "epoch": run.ref.epoch,
        "run_id": run.ref.run_id,
        "attempt": run.ref.attempt,
        "entity_type": run.kind.entity_type,
        "entity_id": run.name,
    }
