"""Rescues the jobs of workers that died, froze or were cut off.

Guarantees: a worker is fenced only after its beat was silent for longer than its trust lasts, on
this runner's own clock; its jobs are returned only after it was fenced (G14). Any number of workers
may rescue at once; each job is returned once.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.hints import Hints
from sidecar.model.errors import SidecarError
from sidecar.model.worker_lease import Beat, Silence

log = structlog.get_logger()


class Returned(Protocol):
    @property
    def count(self) -> int: ...
    @property
    def dead(self) -> int: ...


class RescueStore(Protocol):
    async def fence(self, worker_id: int, *, sequence: int | None = None) -> bool: ...
    async def return_jobs(self, worker_id: int, *, rescued: bool, cause: str) -> Returned: ...


class Rescuer:
    def __init__(self, store: RescueStore, hints: Hints) -> None:
        self._store = store
        self._hints = hints
        self._silence = Silence()
        self._rescues: dict[int, asyncio.Task[None]] = {}

    def watch(self, beats: Iterable[Beat], now: float) -> None:
        """Beats that were received now; silent workers are rescued beside the caller."""
        for beat in self._silence.silent(beats, now):
            if beat.worker_id not in self._rescues:
                task = asyncio.create_task(self._rescue(beat), name="worker.rescue")
                self._rescues[beat.worker_id] = task
                task.add_done_callback(self._forget(beat.worker_id))

    def _forget(self, worker_id: int) -> Callable[["asyncio.Task[None]"], None]:
        def forget(task: "asyncio.Task[None]") -> None:
            del self._rescues[worker_id]
            if not task.cancelled() and (error := task.exception()):
                log.error("rescue_failed", worker=worker_id, exc_info=error)

        return forget

    async def _rescue(self, beat: Beat) -> None:
        worker = beat.worker_id
        try:
            if not beat.fenced:
                if not await self._store.fence(worker, sequence=beat.sequence):
                    return  # it beat again, or another one was faster
                metrics.WORKERS_FENCED.inc()
                log.warning("worker_fenced", worker=worker)
            returned = await self._store.return_jobs(
                worker, rescued=True, cause="its worker died or lost its lease"
            )
        except SidecarError as error:  # the next beat tries again
            log.warning("rescue_waits_for_postgres", worker=worker, problem=str(error))
            return
        if returned.count or returned.dead:
            metrics.JOBS_RESCUED.inc(returned.count)
            log.warning("jobs_rescued", worker=worker, jobs=returned.count, dead=returned.dead)
            self._hints.notify("jobs")
