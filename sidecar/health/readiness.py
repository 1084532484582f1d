"""What the probes answer: live, started, ready, and the whole document of /health.

Guarantees: every answer is computed from memory. /readyz fails while starting or draining, while
something blocks this runner (tables of another version, another app's cluster), and for what
`health.readiness` selects: `app`, `singletons` (stale singletons and schedules led here),
`postgres`, `redis`. What is not selected shows as degraded in /health, and so do warnings: a
changed configuration file that is refused or needs a restart, a secret file that cannot be read,
more runs due than can be started.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import structlog

from sidecar import metrics
from sidecar.health.checks import Checks
from sidecar.health.switch import DeadMansSwitch
from sidecar.model.backlog import Backlog
from sidecar.model.health import Readiness, Vitals

log = structlog.get_logger()

ENTITIES_SHOWN_MAX = 1_000
STALE_SHOWN_MAX = 50
_PUBLISH_SECONDS = 1.0


class Health:
    """Answers the probes; `app/` blocks and unblocks it."""

    def __init__(
        self,
        checks: Checks,
        switch: DeadMansSwitch,
        *,
        readiness: Collection[str],
        about: Callable[[], Mapping[str, Any]],
        warnings: Callable[[], Iterable[str]] = tuple,
        backlogs: Callable[[], Iterable[tuple[str, Backlog]]] = tuple,
        clock: Callable[[], float],
    ) -> None:
        self._checks = checks
        self._switch = switch
        self._readiness = frozenset(readiness)
        self._about = about
        self._warnings = warnings
        self._backlogs = backlogs
        self._clock = clock
        self._blockers: dict[str, str] = {"start": "starting"}
        self._was_ready: bool | None = None

    def servers_listen(self) -> None:
        """The config is read and the servers listen: /startupz succeeds from now on."""
        self.unblock("start")

    def drain(self) -> None:
        self.block("drain", "draining: leadership is being handed over")

    def block(self, name: str, reason: str) -> None:
        """Not ready for this reason until `unblock(name)`."""
        self._blockers[name] = reason

    def unblock(self, name: str) -> None:
        self._blockers.pop(name, None)

    async def run(self) -> None:
        """Run the checks, and publish readiness in metrics and log."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._checks.run(), name="health.checks")
            tasks.create_task(self._publish(), name="health.publish")

    def live(self) -> Readiness:
        return Readiness.of({"ping": ()})  # the answer itself proves that the loop runs

    def started(self) -> Readiness:
        blocked = (self._blockers[name] for name in ("start",) if name in self._blockers)
        return Readiness.of({"start": blocked})

    def ready(self) -> Readiness:
        checks: dict[str, Iterable[str]] = {
            name: (reason,) for name, reason in self._blockers.items()
        }
        for name, result in self._checks.results.items():
            if name in self._readiness:
                checks[name] = () if result.status == "up" else (f"{name}: {result.detail}",)
        if "singletons" in self._readiness:
            stale = self._switch.stale(STALE_SHOWN_MAX)
            checks["singletons"] = stale
            return Readiness.of(checks, more=self._switch.stale_count - len(stale))
        return Readiness.of(checks)

    def report(self) -> dict[str, Any]:
        """The document of /health."""
        verdict = self.ready()
        entities = list(islice(self._switch.entities(), ENTITIES_SHOWN_MAX))
        return {
            "status": self._status(verdict),
            "ready": verdict.good,
            "reasons": [*verdict.reasons, *([f"and {verdict.more} more"] if verdict.more else [])],
            "warnings": list(self._warnings()),
            **self._about(),
            "backlog": [_backlog(group, backlog) for group, backlog in self._backlogs()],
            "dependencies": self._dependencies(),
            "singletons": [_shown(*each) for each in entities if each[0].kind == "singleton"],
            "schedules": [_shown(*each) for each in entities if each[0].kind == "schedule"],
        }

    def _status(self, verdict: Readiness) -> str:
        if not verdict.good:
            return "unready"
        down = any(result.status == "down" for result in self._checks.results.values())
        degraded = down or self._switch.stale_count or any(self._warnings())
        return "degraded" if degraded else "ok"

    def _dependencies(self) -> dict[str, dict[str, Any]]:
        now = self._clock()
        return {
            name: {
                "status": result.status,
                "latency_ms": _milliseconds(result.latency_seconds),
                "age_ms": _milliseconds(now - result.checked_at if result.checked_at else None),
                "detail": result.detail,
            }
            for name, result in self._checks.results.items()
        }

    async def _publish(self) -> None:
        while True:
            verdict = self.ready()
            metrics.READY.set(verdict.good)
            if verdict.good != self._was_ready:
                self._was_ready = verdict.good
                log.info("readiness_changed", ready=verdict.good, reasons=verdict.reasons[:10])
            await asyncio.sleep(_PUBLISH_SECONDS)


def _backlog(group: str, backlog: Backlog) -> dict[str, Any]:
    return {
        "group": group,
        "runs": backlog.size,
        "oldest_seconds": round(backlog.seconds, 1),
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _shown(vitals: Vitals, stale: str, led_here: bool) -> dict[str, Any]:
    return {
        "name": vitals.name,
        "group": vitals.group,
        "led_here": led_here,
        "last_run_at": _instant(vitals.last_run_at) or "never",
        "last_success_at": _instant(vitals.last_success_at) or "never",
        "last_heartbeat_at": _instant(vitals.heartbeat_at) or "never",
        "next_run_at": _instant(vitals.next_run_at),
        "expected_interval_seconds": vitals.expected_seconds or None,
        "stale": stale or None,
    }


def _instant(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
