"""The file declares schedules: what it names is made or changed, what it no longer names is
retired.

Guarantees: schedules of the API are never touched, a clash of names is told and the rest goes on,
and what the file names is made once the API's is gone; an older file is never applied over a newer
one that some runner still has, whichever runner reads its file first; what stays the same keeps its
watermark, so that no tick is lost or repeated by a reload.

Which of two files is newer: the one with the higher revision; of one revision, the one loaded first
later, where changing a running runner's file counts as a load. A newer file of which this runner
saw no sign of life for GONE_SECONDS, while Postgres answered all the time, is nobody's: then the
file of the living applies, whatever its revision. So a rollback, or a reinstallation that counts
its revisions from 1 again, is not ignored for ever.
"""

import asyncio
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from sidecar.config.work import Schedule
from sidecar.model.errors import SidecarError
from sidecar.model.stored_schedule import Change, ConfigLoad, created, retired, updated
from sidecar.scheduling.ports import ConfigStore, Hints, Stored

log = structlog.get_logger()

REFRESH_SECONDS = 20.0
GONE_SECONDS = 3.2 * REFRESH_SECONDS


_FIELDS = sorted(field.name for field in dataclasses.fields(Schedule))


@dataclass(frozen=True, slots=True)
class Declared:
    """What one file says."""

    schedules: tuple[Schedule, ...]
    revision: int
    digest: str

    @classmethod
    def of(cls, schedules: Sequence[Schedule], revision: int) -> "Declared":
        ordered = sorted(schedules, key=lambda schedule: schedule.name)
        plain = repr([[getattr(schedule, name) for name in _FIELDS] for schedule in ordered])
        return cls(tuple(ordered), revision, hashlib.sha256(plain.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class _Newer:
    """A newer file stands: its last sign of life, and since when there was no other."""

    seen_at: datetime
    since: float


class ConfigSync:
    def __init__(
        self,
        store: ConfigStore,
        hints: Hints,
        *,
        cluster: str,
        gone_seconds: float = GONE_SECONDS,
    ) -> None:
        self._store = store
        self._hints = hints
        self._cluster = cluster
        self._gone_seconds = gone_seconds
        self._declared: Declared | None = None
        self._anew = False  # the file was changed, and nobody was told yet
        self._newer: _Newer | None = None
        self._refused: Declared | None = None  # told once, though it is tried again and again
        self._clashing: frozenset[str] = frozenset()  # the API has one of this name: the same
        self._changed = asyncio.Event()

    def declare(self, schedules: Sequence[Schedule], revision: int) -> None:
        """A file was read, at the start or anew; `run` applies it."""
        declared = Declared.of(schedules, revision)
        self._anew = self._anew or self._declared not in (None, declared)
        self._declared = declared
        self._changed.set()

    async def run(self) -> None:
        """Apply what was declared, and go on saying that this runner has it."""
        applied = False
        while True:
            if self._changed.is_set():
                self._changed.clear()
                applied = False
            try:
                if self._declared:
                    applied = await self._refreshed(self._declared, applied=applied)
            except SidecarError as error:
                log.warning("config_not_applied", problem=str(error))
                applied = False
            except Exception:  # whatever a file holds, it must not end the process
                log.exception("config_not_applied")
                applied = False
            try:
                async with asyncio.timeout(REFRESH_SECONDS if applied else REFRESH_SECONDS / 4):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def sync(self, schedules: Sequence[Schedule], revision: int) -> bool:
        """Apply this file now; False if a newer one stands."""
        return await self._apply(Declared.of(schedules, revision))

    async def _refreshed(self, declared: Declared, *, applied: bool) -> bool:
        if applied and await self._stands(declared):
            return True
        return await self._apply(declared)

    async def _stands(self, declared: Declared) -> bool:
        """Whether there is nothing to apply, a name that is free by now included.

        Only asked: to apply a file holds every schedule that it names, and their ticks wait.
        """
        if self._clashing - await self._store.names_of_api(self._clashing):
            return False
        return await self._store.config_seen(declared.digest, declared.revision)

    async def _apply(self, declared: Declared) -> bool:
        changes: list[Change[Schedule]] = []

        def decide(stored: Sequence[Stored], now: datetime) -> Sequence[Change[Schedule]]:
            changes[:] = self._decided(declared, stored, now)
            return changes

        # Forgotten if this fails: a watch with gaps shows nothing.
        newer, self._newer = self._newer, None
        load = ConfigLoad(
            declared.digest,
            declared.revision,
            tuple(schedule.name for schedule in declared.schedules),
            anew=self._anew,
            abandoned=newer.seen_at if newer and self._is_gone(newer) else None,
        )
        seen_at = await self._store.apply_config(load, decide)
        self._anew, applied = False, seen_at is None
        if seen_at is not None:
            known = newer and newer.seen_at == seen_at
            self._newer = newer if known else _Newer(seen_at, _now())
        if changes and applied:
            log.info("config_applied", revision=declared.revision, changed=len(changes))
            self._hints.notify("schedules")
        elif not applied and declared != self._refused:
            log.info("config_not_applied", revision=declared.revision, problem="a newer one stands")
            self._refused = declared
        return applied

    def _is_gone(self, newer: "_Newer") -> bool:
        return _now() - newer.since >= self._gone_seconds

    def _decided(
        self, declared: Declared, stored: Sequence[Stored], now: datetime
    ) -> list[Change[Schedule]]:
        standing = {s.name: s for s in stored}
        wanted = {schedule.name for schedule in declared.schedules}
        self._tell_clashes(
            frozenset(s.name for s in stored if s.source == "api" and s.retired_at is None)
        )
        changes = [
            change
            for schedule in declared.schedules
            if (change := self._wanted(standing.get(schedule.name), schedule, now))
        ]
        gone = (s for s in stored if s.source == "config" and s.retired_at is None)
        return changes + [retired(s, self._cluster, now) for s in gone if s.name not in wanted]

    def _tell_clashes(self, clashing: frozenset[str]) -> None:
        for name in sorted(clashing - self._clashing):
            log.error(
                "schedule_name_clash",
                schedule=name,
                problem="the API made one of this name: delete that, or rename the one in the file",
            )
        self._clashing = clashing

    def _wanted(
        self, standing: Stored | None, schedule: Schedule, now: datetime
    ) -> Change[Schedule] | None:
        if standing is None:
            return created(schedule, "config", self._cluster, now)
        if standing.source == "api" and standing.retired_at is not None:
            # Another one of the same name: what that one missed is none of its business. What was
            # passed over by its retirement has its rows, also if the clock was set back since.
            start = max(now, standing.watermark)
            fresh = created(schedule, "config", self._cluster, start)
            return replace(fresh, after=replace(fresh.after, id=standing.id))
        if standing.source == "api":
            return None
        if standing.definition == schedule and standing.retired_at is None:
            return None
        return updated(standing, schedule, self._cluster, now)


def _now() -> float:
    return asyncio.get_running_loop().time()
