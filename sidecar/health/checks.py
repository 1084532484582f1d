"""Checks of the sidecar's dependencies, each in its own task with its own time limit.

Guarantees: a check that hangs is down after its limit, delays no other check and is never started
twice at once; with the defaults an outage shows within 8 s. Reading results never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import structlog

from sidecar import metrics
from sidecar.logs import redacted, visible

log = structlog.get_logger()

Status = Literal["unknown", "up", "down"]
LOOP = "loop"
LOOP_LAG_SECONDS_MAX = 1.0
_LAG_INTERVAL_SECONDS = 0.5
_DETAIL_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Check:
    """`probe` returns if all is well and raises, with the reason, if not.

    It may return a latency in seconds that was measured elsewhere; otherwise its own time counts.
    """

    name: str
    probe: Callable[[], Awaitable[object]]
    interval_seconds: float = 2.0
    limit_seconds: float = 2.0
    failures: int = 2  # consecutive failures until it is down: one lost packet is no outage


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The last result of one check."""

    status: Status = "unknown"
    latency_seconds: float | None = None
    checked_at: float | None = None  # boottime
    detail: str = "not checked yet"


class Checks:
    """Repeats all checks and keeps their last results."""

    def __init__(self, checks: Sequence[Check], clock: Callable[[], float]) -> None:
        self._checks = tuple(checks)
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._results = {check.name: CheckResult() for check in checks}
        self._wanted = {check.name: asyncio.Event() for check in checks}

    def look(self, name: str) -> None:
        """Check now instead of at the next interval."""
        self._wanted[name].set()

    @property
    def results(self) -> dict[str, CheckResult]:
        return dict(self._results)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._measure_lag(), name="health.loop")
            for check in self._checks:
                tasks.create_task(self._repeat(check), name=f"health.{check.name}")

    async def _repeat(self, check: Check) -> None:
        while True:
            started = self._clock()
            task = asyncio.ensure_future(check.probe())
            try:
                await self._await(check, task, started)
            finally:
                task.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(check.interval_seconds):
                    await self._wanted[check.name].wait()
            self._wanted[check.name].clear()

    async def _await(self, check: Check, task: asyncio.Future[object], started: float) -> None:
        await asyncio.wait({task}, timeout=check.limit_seconds)
        while not task.done():
            self._failed(check, f"no answer within {check.limit_seconds:g} s")
            task.cancel()
            # Some calls return long after they were cancelled: report them as down until then, and
            # start no other.
            await asyncio.wait({task}, timeout=check.limit_seconds)
        with suppress(asyncio.CancelledError):
            error = task.exception()
            if error is None:
                known = task.result()
                seconds = known if isinstance(known, float) else self._clock() - started
                self._passed(check, seconds)
            else:
                self._failed(check, str(error) or type(error).__name__)

    def _passed(self, check: Check, seconds: float) -> None:
        self._failures[check.name] = 0
        self._record(check.name, CheckResult("up", seconds, self._clock(), ""))

    def _failed(self, check: Check, detail: str) -> None:
        self._failures[check.name] = self._failures.get(check.name, 0) + 1
        before = self._results[check.name]
        if self._failures[check.name] < check.failures and before.status == "up":
            return
        text = visible(redacted(detail))[:_DETAIL_CHARACTERS_MAX]
        self._record(check.name, CheckResult("down", None, self._clock(), text))

    def _record(self, name: str, result: CheckResult) -> None:
        before = self._results.get(name, CheckResult())
        self._results[name] = result
        metrics.DEPENDENCY_UP.labels(name).set(result.status == "up")
        if result.latency_seconds is not None:
            metrics.DEPENDENCY_SECONDS.labels(name).set(result.latency_seconds)
        if before.status != result.status:
            write = log.warning if result.status == "down" else log.info
            write(f"dependency_{result.status}", dependency=name, detail=result.detail)

    async def _measure_lag(self) -> None:
        """Measure how late the loop wakes a sleeper: a blocked loop delays pings and probes."""
        while True:
            asleep_at = self._clock()
            await asyncio.sleep(_LAG_INTERVAL_SECONDS)
            lag = max(0.0, self._clock() - asleep_at - _LAG_INTERVAL_SECONDS)
            metrics.LOOP_LAG_SECONDS.observe(lag)
            late = lag > LOOP_LAG_SECONDS_MAX
            detail = f"woke up {lag:.1f} s late" if late else ""
            self._record(LOOP, CheckResult("down" if late else "up", lag, self._clock(), detail))
