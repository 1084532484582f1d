"""Turns a failed read or write of state into a typed error, counts it and logs it.

While Postgres is unavailable every caller fails: the counter counts each failure, the log has one
line in ten seconds for each reason.
"""

from collections.abc import Callable
from typing import TypeVar

import structlog

from sidecar import metrics
from sidecar.model.errors import (
    AnswerLost,
    Fenced,
    SidecarError,
    StateLoadFailed,
    StatePersistFailed,
    StoreUnavailable,
)

log = structlog.get_logger()
E = TypeVar("E", bound=SidecarError)

QUIET_SECONDS = 10.0


class Failures:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._quiet_until: dict[str, float] = {}

    def load(self, error: StoreUnavailable) -> StateLoadFailed:
        return self._report(StateLoadFailed(f"not read: {error}"))

    def persist(self, error: SidecarError) -> SidecarError:
        """The error for the caller of a write; only StoreUnavailable becomes another error."""
        if isinstance(error, Fenced):
            metrics.FENCED_WRITES.labels("state").inc()
        if not isinstance(error, StoreUnavailable):
            return error
        if isinstance(error, AnswerLost):
            problem = f"unknown whether the write was stored ({error}): repeat it with the same"
            return self._report(StatePersistFailed(f"{problem} request_id"))
        return self._report(StatePersistFailed(f"not stored: {error}"))

    def _report(self, error: E) -> E:
        metrics.STATE_ERRORS.labels(error.reason).inc()
        now = self._monotonic()
        if now >= self._quiet_until.get(error.reason, 0.0):
            self._quiet_until[error.reason] = now + QUIET_SECONDS
            log.warning("state_call_failed", reason=error.reason, problem=str(error))
        return error
