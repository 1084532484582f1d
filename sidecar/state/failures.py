"""What becomes of a failed read or write of state: a typed error, counted, and told in the log.

While Postgres is away every caller fails: the counter has them all, the log one line in ten
seconds for each reason.
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
        return self._told(StateLoadFailed(f"not read: {error}"))

    def persist(self, error: SidecarError) -> SidecarError:
        """What the caller is told of a write: only an absent Postgres makes it another error."""
        if isinstance(error, Fenced):
            metrics.FENCED_WRITES.labels("state").inc()
        if not isinstance(error, StoreUnavailable):
            return error
        if isinstance(error, AnswerLost):
            problem = f"unknown whether the write was stored ({error}): repeat it with the same"
            return self._told(StatePersistFailed(f"{problem} request_id"))
        return self._told(StatePersistFailed(f"not stored: {error}"))

    def _told(self, error: E) -> E:
        metrics.STATE_ERRORS.labels(error.reason).inc()
        now = self._monotonic()
        if now >= self._quiet_until.get(error.reason, 0.0):
            self._quiet_until[error.reason] = now + QUIET_SECONDS
            log.warning("state_call_failed", reason=error.reason, problem=str(error))
        return error
