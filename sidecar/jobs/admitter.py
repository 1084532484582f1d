"""Runs on the leader of the first group: admits parked jobs, expires late ones, ends batches.

Guarantees: of the jobs with one name and key, one is admitted at a time, in the order of their ids
(G16); queues stay within their limits and rates. Nothing else admits a job.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from sidecar.execution.authority import Authority, until_draining
from sidecar.hints import Hints
from sidecar.jobs.ports import AdmissionStore
from sidecar.model.database_clock import DatabaseClock
from sidecar.model.errors import Fenced, StoreRefused, StoreUnavailable
from sidecar.model.queue_limits import QueueLimits, Rates
from sidecar.model.term import LossReason

log = structlog.get_logger()

TOPIC = "jobs"
POLL_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.02
EXPIRE_MAX = 1000
WORK_SHARE = 10  # at most one part in so many of the time is spent on admissions


@dataclass(slots=True)
class Admitter:
    store: AdmissionStore
    hints: Hints

    async def lead(self, authority: Authority) -> None:
        """Admit jobs until cancelled or draining."""
        try:
            await until_draining(authority, _Admissions(self, authority).run())
        except Fenced:
            authority.revoke(LossReason.FENCED)


@dataclass(slots=True, eq=False)
class _Admissions:
    shared: Admitter
    authority: Authority
    rates: Rates = field(default_factory=Rates)
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    limited: frozenset[str] = frozenset()

    async def run(self) -> None:
        hints = self.shared.hints.subscribe(TOPIC)
        try:
            idle_seconds = 0.0
            while True:
                woken = await hints.wait(idle_seconds)
                began = _now()
                try:
                    idle_seconds = await self._admit()
                except (StoreUnavailable, StoreRefused) as error:
                    log.warning("admission_waits_for_postgres", problem=str(error))
                    idle_seconds = POLL_SECONDS
                if woken:  # a commit that did not notify may follow
                    idle_seconds = min(idle_seconds, LOOK_AGAIN_SECONDS)
                # Leave time for other queries, however many keys there are.
                await asyncio.sleep(min(POLL_SECONDS, WORK_SHARE * (_now() - began)) / 2)
        finally:
            self.shared.hints.unsubscribe(TOPIC, hints)

    async def _admit(self) -> float:
        """Admit what may start; return how many seconds to wait."""
        store, term = self.shared.store, self.authority.term
        with suppress(StoreUnavailable):
            await store.expire(limit=EXPIRE_MAX)
        if await store.complete_batches(term):
            self.shared.hints.notify(TOPIC)
        limits = await store.limits()
        await self._park(limits)
        asked = _now()
        rooms = {each.queue: self.rates.room(each, asked) for each in limits}
        admitted = await store.admit(term, rooms)
        self.clock.learn(admitted.now, asked=asked, answered=_now())
        for queue, count in admitted.counts.items():
            self.rates.admitted(queue, count)
        if admitted.counts:
            self.shared.hints.notify(TOPIC)
            return 0.0
        times = [self.rates.next_token_seconds(each, _now()) for each in limits]
        times.append(
            self.clock.seconds_until(admitted.next_due_at, _now()) + 0.001
            if admitted.next_due_at
            else None
        )
        return min([POLL_SECONDS, *(seconds for seconds in times if seconds)])

    async def _park(self, limits: Sequence[QueueLimits]) -> None:
        limited = frozenset(each.queue for each in limits)
        if new := limited - self.limited:
            await self.shared.store.park(self.authority.term, sorted(new))
        self.limited = limited


def _now() -> float:
    return asyncio.get_running_loop().time()
