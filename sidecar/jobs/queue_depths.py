"""Shows the depth of the queues as metrics, on the leader of the first group alone.

Guarantees: callers cannot grow the number of series: beyond `NAMES_MAX` names, queues share the
label `other`; a pod that does not lead shows nothing, so that a sum over pods counts each job once.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.model.errors import SidecarError
from sidecar.model.job_views import Queue

log = structlog.get_logger()

NAMES_MAX = 100
LOOK_SECONDS = 10.0


class QueueStats(Protocol):
    async def stats(self, queue: str) -> Sequence[Queue]: ...


class QueueDepths:
    """`leads` returns whether this pod leads the first group; `configured` names are never
    `other`."""

    def __init__(
        self,
        store: QueueStats,
        leads: Callable[[], bool],
        *,
        configured: Iterable[str] = (),
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._store = store
        self._leads = leads
        self._look_seconds = look_seconds
        self._label = metrics.CappedNames(NAMES_MAX)
        self._label.reserve(configured)
        self._shown: set[str] = set()

    async def run(self) -> None:
        while True:
            try:
                self.show(await self._store.stats("") if self._leads() else ())
            except SidecarError as error:
                log.info("queue_depths_not_read", problem=str(error))
            await asyncio.sleep(self._look_seconds)

    def show(self, queues: Sequence[Queue]) -> None:
        """Set the series of these queues, and remove those of all others."""
        totals: dict[str, list[Queue]] = {}
        for queue in queues:
            totals.setdefault(self._label(queue.name), []).append(queue)
        for name in self._shown - totals.keys():
            self._remove(name)
        self._shown = set(totals)
        for name, found in totals.items():
            for state in ("ready", "scheduled", "running"):
                depth = sum(getattr(queue, state) for queue in found)
                metrics.QUEUE_DEPTH.labels(name, state).set(depth)
            oldest = max(queue.oldest_wait_seconds or 0.0 for queue in found)
            metrics.QUEUE_OLDEST_SECONDS.labels(name).set(oldest)
            metrics.DEAD_JOBS.labels(name).set(sum(queue.dead for queue in found))

    def _remove(self, name: str) -> None:
        for state in ("ready", "scheduled", "running"):
            metrics.QUEUE_DEPTH.remove(name, state)
        metrics.QUEUE_OLDEST_SECONDS.remove(name)
        metrics.DEAD_JOBS.remove(name)
        self._label.release(name)
