"""Holds the worker lease of this runner and passes an Authority to the work on jobs.

    register ──▶ beat every second ──▶ … ──▶ drained, lost or fenced ──▶ hand back what is left

Guarantees:
- the lease is trusted until the send time of the last acknowledged beat + 3 s; 0.3 s before that
  all work is cancelled, whatever hangs;
- a lease that was lost is never resumed: the next one has a new fencing token;
- what the work left running is handed back at once, after every call was cancelled (G18). If that
  fails, other workers rescue it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from sidecar.execution.authority import Authorities, Authority
from sidecar.model.errors import SidecarError
from sidecar.model.term import LossReason
from sidecar.model.worker_lease import BEAT_SECONDS, Beat, Lease, LeaseTrust
from sidecar.worker.rescuer import Rescuer

log = structlog.get_logger()

NEIGHBOURS = 16  # other workers that each one watches
REGISTER_RETRY_SECONDS = 1.0
BEAT_RETRY_SECONDS = 0.1
HAND_BACK_SECONDS = 2.0

Work = Callable[[Authority], Awaitable[None]]


class LeaseStore(Protocol):
    async def register(self) -> Lease: ...
    async def beat(self, lease: Lease, *, neighbours: int | None) -> Sequence[Beat] | None:
        """Renew the lease; the beats of other workers. None: the lease is over."""

    async def fence(self, worker_id: int, *, sequence: int | None = None) -> bool: ...
    async def return_jobs(self, worker_id: int, *, rescued: bool, cause: str) -> object: ...


class Worker:
    """`clock` counts suspended time. `watch_all`: whether this runner watches every worker, as the
    leader of the first group does."""

    def __init__(
        self,
        store: LeaseStore,
        rescuer: Rescuer,
        clock: Callable[[], float],
        *,
        authorities: Authorities | None = None,
        watch_all: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._rescuer = rescuer
        self._clock = clock
        self._authorities = authorities or Authorities()
        self._watch_all = watch_all
        self._authority: Authority | None = None
        self._stopping = asyncio.Event()
        self._drain_deadline = 0.0
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def run(self, *, while_leased: Work) -> None:
        """Hold a lease and do the work, again and again until `drain` is called."""
        self._stopped.clear()
        try:
            while not self._stopping.is_set():
                sent_at = self._clock()
                try:
                    lease = await self._store.register()
                except SidecarError as error:
                    log.warning("worker_not_registered", problem=str(error))
                    await asyncio.sleep(REGISTER_RETRY_SECONDS)
                    continue
                await self._hold(lease, LeaseTrust(sent_at), while_leased)
        finally:
            self._stopped.set()

    def drain(self, seconds: float) -> None:
        """Claim no more; hand back what has not ended within so many seconds, then stop."""
        self._drain_deadline = self._clock() + seconds
        self._stopping.set()
        if self._authority:
            self._begin_drain(self._authority)

    async def stopped(self) -> None:
        """Wait until everything was handed back after `drain`; at once if it never ran."""
        await self._stopped.wait()

    async def _hold(self, lease: Lease, trust: LeaseTrust, work: Work) -> None:
        over = asyncio.Event()

        def revoke(reason: LossReason) -> None:
            trust.over = True
            log.warning("worker_lease_revoked", worker=lease.worker_id, reason=reason.value)
            over.set()

        authority = Authority(lease, lambda: trust.trusted_seconds(self._clock()), revoke)
        self._authority = authority
        self._authorities.add(authority)
        if self._stopping.is_set():
            self._begin_drain(authority)
        log.info("worker_lease_begun", worker=lease.worker_id)
        try:
            await self._until_over(lease, trust, over, work(authority))
        finally:
            trust.over = True
            self._authority = None
            self._authorities.remove(lease)
            await self._hand_back(lease)

    def _begin_drain(self, authority: Authority) -> None:
        authority.drain_deadline = self._drain_deadline
        authority.draining.set()

    async def _until_over(
        self, lease: Lease, trust: LeaseTrust, over: asyncio.Event, work: Awaitable[None]
    ) -> None:
        """Do the work until it has drained or the lease is over; then it is cancelled first."""
        working = asyncio.ensure_future(work)
        others = [
            asyncio.create_task(self._beat(lease, trust, over), name="worker.beat"),
            asyncio.create_task(self._expire(trust, over), name="worker.trust"),
            asyncio.create_task(over.wait(), name="worker.over"),
        ]
        try:
            await asyncio.wait({working, others[-1]}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                log.warning("worker_lease_lost", worker=lease.worker_id)
        finally:
            trust.over = trust.over or not working.done()
            for task in (working, *others):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if not working.cancelled() and (error := working.exception()):
            log.error("worker_failed", exc_info=error)
            await asyncio.sleep(REGISTER_RETRY_SECONDS)

    async def _beat(self, lease: Lease, trust: LeaseTrust, over: asyncio.Event) -> None:
        while True:
            sent_at = self._clock()
            try:
                neighbours = None if self._watch_all() else NEIGHBOURS
                beats = await self._store.beat(lease, neighbours=neighbours)
            except SidecarError as error:
                log.warning("worker_beat_failed", worker=lease.worker_id, problem=str(error))
                await asyncio.sleep(BEAT_RETRY_SECONDS)
                continue
            if beats is None:
                log.warning("worker_fenced", worker=lease.worker_id)
                over.set()
                return
            trust.acknowledged(sent_at)
            self._rescuer.watch(beats, self._clock())
            await asyncio.sleep(max(0.0, sent_at + BEAT_SECONDS - self._clock()))

    async def _expire(self, trust: LeaseTrust, over: asyncio.Event) -> None:
        """A timer of its own: it fires whatever the beat waits for."""
        while (seconds := trust.ends_at - self._clock()) > 0:  # noqa: ASYNC110 - time passes
            await asyncio.sleep(seconds)
        over.set()

    async def _hand_back(self, lease: Lease) -> None:
        try:
            async with asyncio.timeout(HAND_BACK_SECONDS):
                await self._store.fence(lease.worker_id)
                await self._store.return_jobs(
                    lease.worker_id, rescued=False, cause="handed back by its worker"
                )
        except (SidecarError, TimeoutError) as error:
            log.warning("jobs_not_handed_back", worker=lease.worker_id, problem=str(error))
