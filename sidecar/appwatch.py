"""Is the app alive? Watches its connection and its health, and says so to the election (G9).

Guarantees:
- a broken connection is unhealthy at once: what answers next may be another process;
- `health_failures` failed checks in a row are unhealthy, one success is healthy again;
- before a fresh connection counts as healthy, the app has answered that every term it may still
  believe in is over, whoever gave it to it: an earlier life of this sidecar, perhaps.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from sidecar.model.errors import SidecarError
from sidecar.model.term import LossReason, Term

log = structlog.get_logger()

# OnLoseLeadership with this epoch means: whatever term you believe in.
ANY_EPOCH = 0


class Link(Protocol):
    async def wait_connected(self) -> None: ...
    async def wait_disconnected(self) -> None: ...
    async def check(self, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


@dataclass(frozen=True, slots=True)
class AppStatus:
    """What the last look at the app showed."""

    healthy: bool
    problem: str
    checked_at: float
    latency_seconds: float


class AppWatch:
    """Keeps `status` true and calls `on_change` with each change of health."""

    def __init__(
        self,
        link: Link,
        groups: Sequence[str],
        clock: Callable[[], float],
        *,
        interval: float,
        failures_max: int,
        callback_timeout: float,
    ) -> None:
        self.status = AppStatus(False, "not connected yet", clock(), 0.0)
        self.on_change: list[Callable[[bool], None]] = []
        self._link = link
        self._groups = groups
        self._clock = clock
        self._interval = interval
        self._failures_max = failures_max
        self._callback_timeout = callback_timeout

    async def run(self) -> None:
        while True:
            await self._link.wait_connected()
            watch = asyncio.create_task(self._check_for_ever(), name="appwatch.check")
            try:
                await self._link.wait_disconnected()
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            self._set(False, "connection lost", 0.0)

    async def _check_for_ever(self) -> None:
        """Check one connection until it is lost."""
        failures, greeted = 0, False
        while True:
            started_at = self._clock()
            try:
                await self._link.check(max(self._interval, 1.0))
                if not greeted:
                    await self._end_old_terms()
                    greeted = True
            except Exception as error:
                if not isinstance(error, SidecarError):
                    # A bug of ours: without this watch the app would stay what it was for ever.
                    log.exception("app_check_broke")
                failures += 1
                if failures >= self._failures_max or not greeted:
                    self._set(False, str(error), self._clock() - started_at)
            else:
                failures = 0
                self._set(True, "", self._clock() - started_at)
            await asyncio.sleep(max(0.0, self._interval - (self._clock() - started_at)))

    async def _end_old_terms(self) -> None:
        for group in self._groups:
            term = Term(group, 0, ANY_EPOCH)
            await self._link.lose_leadership(term, LossReason.SHUTDOWN, self._callback_timeout)

    def _set(self, healthy: bool, problem: str, latency: float) -> None:
        changed = healthy != self.status.healthy
        if changed or problem != self.status.problem:
            log.info("app_health", healthy=healthy, problem=problem)
        self.status = AppStatus(healthy, problem, self._clock(), latency)
        if changed:
            for listener in self.on_change:
                listener(healthy)
