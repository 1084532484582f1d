"""Waits for changes of jobs.

Guarantees: a wait costs one entry in a dict; all waits of this process share one poll, and there is
none without waits. A change is seen within `POLL_SECONDS[0]` while somebody has just begun to wait,
and within `POLL_SECONDS[1]` later; `look` makes it sooner.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sidecar.model.errors import LimitExceeded, SidecarError

log = structlog.get_logger()

WAITS_MAX = 10_000
POLL_SECONDS = (0.05, 0.5)
_SPACING_SECONDS = 0.005  # between two polls that `look` asked for
_AGE_DIVISOR = 10  # the older the youngest wait, the rarer the polls
_ASKED_MAX = 1000  # ids per statement


class Versions(Protocol):
    async def versions(self, job_ids: Sequence[int]) -> Mapping[int, str]:
        """The live ones of these jobs, with a value that every write changes."""
        ...


@dataclass(slots=True, eq=False)
class _Wait:
    job_id: int
    version: str | None  # None: only the end counts
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Watches:
    def __init__(self, store: Versions) -> None:
        self._store = store
        self._waits: dict[int, set[_Wait]] = {}
        self._count = 0
        self._awake = asyncio.Event()
        self._looked = False
        self._began_at = 0.0  # of the youngest wait

    async def ended(self, job_id: int, seconds: float) -> bool:
        """Whether the job is no longer live within `seconds`."""
        return await self._wait(job_id, None, seconds)

    async def changed(self, job_id: int, version: str, seconds: float) -> bool:
        """Whether the job has another version, or is no longer live, within `seconds`."""
        return await self._wait(job_id, version, seconds)

    def look(self) -> None:
        """Jobs have changed on this pod: do not wait for the next poll."""
        self._looked = True
        self._awake.set()

    async def run(self) -> None:
        """Poll while there are waits."""
        now = asyncio.get_running_loop().time
        polled_at = now()
        while True:
            due_at = polled_at + (_SPACING_SECONDS if self._looked else self._pause())
            if not self._waits or now() < due_at:
                with suppress(TimeoutError):
                    async with asyncio.timeout(due_at - now() if self._waits else None):
                        await self._awake.wait()
                self._awake.clear()
                continue
            self._looked, polled_at = False, now()
            try:
                await self._poll()
            except SidecarError as error:
                log.info("job_versions_not_read", reason=error.reason, problem=str(error))
                await asyncio.sleep(POLL_SECONDS[1])

    async def _wait(self, job_id: int, version: str | None, seconds: float) -> bool:
        if self._count >= WAITS_MAX:
            raise LimitExceeded(f"{WAITS_MAX} calls already wait for jobs in this sidecar")
        wait = _Wait(job_id, version)
        self._began_at = asyncio.get_running_loop().time()
        self._waits.setdefault(job_id, set()).add(wait)
        self._count += 1
        self._awake.set()
        try:
            async with asyncio.timeout(seconds):
                await wait.over.wait()
        except TimeoutError:
            return False
        finally:
            self._count -= 1
            self._waits[job_id].discard(wait)
            if not self._waits[job_id]:
                del self._waits[job_id]
        return True

    def _pause(self) -> float:
        shortest, longest = POLL_SECONDS
        age = asyncio.get_running_loop().time() - self._began_at
        return min(longest, max(shortest, age / _AGE_DIVISOR))

    async def _poll(self) -> None:
        job_ids = list(self._waits)
        for start in range(0, len(job_ids), _ASKED_MAX):
            asked = job_ids[start : start + _ASKED_MAX]
            # A wait that begins during the statement is not answered by it: the row may be older.
            waits = [wait for job_id in asked for wait in self._waits.get(job_id, ())]
            versions = await self._store.versions(asked)
            for wait in waits:
                version = versions.get(wait.job_id)
                if version is None or wait.version not in (None, version):
                    wait.over.set()
