"""Watches the app's connection and health, and reports each change to the election (G9).

Guarantees:
- a broken connection is unhealthy at once: the next connection may reach another process;
- `health_failures` failed checks in a row make the app unhealthy, one success makes it healthy;
- before a new connection counts as healthy, the app has acknowledged OnLoseLeadership for every
  group, which ends any term from before, even one granted by a previous sidecar process;
- an app that did not acknowledge a loss is unhealthy; as soon as it answers a health check,
  OnLoseLeadership is sent again, until the app acknowledges it (G1).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from sidecar.model.errors import AppNotServing, AppUnavailable, SidecarError
from sidecar.model.term import ANY_EPOCH, LossReason, Term
from sidecar.model.unacknowledged import UnacknowledgedLosses

log = structlog.get_logger()

_DIAGNOSE_SECONDS = 3.0


class Link(Protocol):
    async def wait_connected(self) -> None: ...
    async def wait_disconnected(self) -> None: ...
    async def check(self, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


@dataclass(frozen=True, slots=True)
class AppStatus:
    """The result of the last check."""

    healthy: bool
    problem: str
    checked_at: float
    latency_seconds: float


class AppWatch:
    """Keeps `status` current and calls each `on_change` when the app's health changes."""

    def __init__(
        self,
        link: Link,
        groups: Sequence[str],
        losses: UnacknowledgedLosses,
        clock: Callable[[], float],
        *,
        interval: float,
        failures_max: int,
        callback_timeout: float,
        diagnose: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        """`diagnose` returns why the connection cannot be established, or an empty string."""
        self.status = AppStatus(False, "not connected yet", clock(), 0.0)
        self.on_change: list[Callable[[bool], None]] = []
        self._link = link
        self._groups = groups
        self._losses = losses
        self._clock = clock
        self._interval = interval
        self._failures_max = failures_max
        self._callback_timeout = callback_timeout
        self._diagnose = diagnose

    async def check(self) -> float:
        """The latency of the last check; raises AppUnavailable if the app is not healthy."""
        if not self.status.healthy:
            raise AppUnavailable(self.status.problem)
        return self.status.latency_seconds

    async def run(self) -> None:
        while True:
            await self._wait_connected()
            watch = asyncio.create_task(self._check_forever(), name="app_watch.check")
            try:
                await self._link.wait_disconnected()
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            self._set(False, "connection lost", 0.0)

    async def _wait_connected(self) -> None:
        """Wait for the connection; meanwhile report what `diagnose` finds."""
        connecting = asyncio.create_task(self._link.wait_connected(), name="app_watch.connect")
        try:
            while not (await asyncio.wait({connecting}, timeout=_DIAGNOSE_SECONDS))[0]:
                if self._diagnose and (problem := await self._diagnose()):
                    self._set(False, problem, 0.0)
            await connecting
        finally:
            connecting.cancel()

    async def _check_forever(self) -> None:
        """Check the app on one connection; `run` cancels this when the connection is lost."""
        failures, old_terms_ended = 0, False
        while True:
            started_at = self._clock()
            try:
                await self._check()
                if not old_terms_ended:
                    await self._end_old_terms()
                    old_terms_ended = True
                await self._resend_losses()
            except Exception as error:
                if not isinstance(error, SidecarError):
                    # A bug here must not end the watch: the app's status would never change again.
                    log.exception("app_check_error")
                failures += 1
                if failures >= self._failures_max or not old_terms_ended or self._losses:
                    self._set(False, str(error), self._clock() - started_at)
            else:
                failures = 0
                self._set(True, "", self._clock() - started_at)
            await asyncio.sleep(max(0.0, self._interval - (self._clock() - started_at)))

    async def _check(self) -> None:
        try:
            await self._link.check(max(self._interval, 1.0))
        except AppNotServing:  # it responds, so it can acknowledge a loss
            await self._resend_losses()
            raise

    async def _resend_losses(self) -> None:
        for term, reason in self._losses.pending():
            what = f"OnLoseLeadership of group {term.group}, epoch {term.epoch}"
            self._set(False, f"{what} is not acknowledged", 0.0)
            await self._link.lose_leadership(term, reason, self._callback_timeout)
            self._losses.acknowledge(term)
            log.info("loss_acknowledged", group=term.group, epoch=term.epoch)

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
