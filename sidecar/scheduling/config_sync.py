"""Applies the schedules of the config file, or those of the app's code: creates and updates those
that it declares, and retires those that it no longer declares.

Guarantees:
- a schedule of the API is never changed, and the code never changes one of the file; a name clash
  is logged and the other schedules are applied; the clashing one is created once the other is gone;
- an older file is never applied over a newer one that some runner still has, in whatever order the
  runners read their files;
- an unchanged schedule keeps its watermark, so a reload neither loses nor repeats a tick.

The newer of two files is the one with the higher revision. If the revisions are equal, it is the
one that was first loaded later; changing the file of a running runner counts as a load. Each runner
marks its file as seen, again and again. If this runner finds no new mark of a newer file for
GONE_SECONDS, while Postgres answered the whole time, the newer file is abandoned and this runner's
file is applied, whatever its revision. So a rollback, or a reinstallation whose revisions start at
1 again, is not ignored for ever.
"""

import asyncio
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from sidecar.hints import Hints
from sidecar.model.definitions import Schedule
from sidecar.model.errors import SidecarError
from sidecar.model.stored_schedule import (
    Change,
    ConfigLoad,
    Source,
    StoredSchedule,
    created,
    retired,
    updated,
)
from sidecar.scheduling.ports import ConfigStore

log = structlog.get_logger()

REFRESH_SECONDS = 20.0
GONE_SECONDS = 3.2 * REFRESH_SECONDS


# A source leaves alone what these have: the API before the file, and the file before the code.
_STRONGER: Mapping[Source, frozenset[Source]] = {
    "api": frozenset(),
    "config": frozenset({"api"}),
    "code": frozenset({"api", "config"}),
}
_PLACES: Mapping[Source, str] = {
    "api": "the API",
    "config": "the configuration file",
    "code": "the app's code",
}
_FIELDS = sorted(field.name for field in dataclasses.fields(Schedule))


@dataclass(frozen=True, slots=True)
class Declared:
    """The content of one file."""

    schedules: tuple[Schedule, ...]
    revision: int
    digest: str

    @classmethod
    def of(cls, schedules: Sequence[Schedule], revision: int, prefix: str = "") -> "Declared":
        ordered = sorted(schedules, key=lambda schedule: schedule.name)
        plain = repr([[getattr(schedule, name) for name in _FIELDS] for schedule in ordered])
        digest = prefix + hashlib.sha256(plain.encode()).hexdigest()
        return cls(tuple(ordered), revision, digest)


@dataclass(frozen=True, slots=True)
class _NewerFile:
    """The last mark of the newer file that is applied, and the loop time when it was first read."""

    seen_at: datetime
    since: float


class ConfigSync:
    def __init__(
        self,
        store: ConfigStore,
        hints: Hints,
        *,
        cluster: str,
        source: Source = "config",
        gone_seconds: float = GONE_SECONDS,
    ) -> None:
        self._store = store
        self._source = source
        self._others = _STRONGER[source]
        self._hints = hints
        self._cluster = cluster
        self._gone_seconds = gone_seconds
        self._declared: Declared | None = None
        self._file_changed = False  # since the last successful `apply_config`
        self._newer: _NewerFile | None = None
        # A refusal and a clash are logged once, though the file is applied repeatedly.
        self._refused: Declared | None = None
        self._clashing: frozenset[str] = frozenset()
        self._changed = asyncio.Event()

    def declare(self, schedules: Sequence[Schedule], revision: int) -> None:
        """Set the file that `run` applies: the one read at the start, or a changed one."""
        declared = self._declaration(schedules, revision)
        self._file_changed = self._file_changed or self._declared not in (None, declared)
        self._declared = declared
        self._changed.set()

    async def run(self) -> None:
        """Apply the declared file, and keep marking it as seen by this runner."""
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
            except Exception:  # no content of a file may end the process
                log.exception("config_not_applied")
                applied = False
            try:
                async with asyncio.timeout(REFRESH_SECONDS if applied else REFRESH_SECONDS / 4):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def sync(self, schedules: Sequence[Schedule], revision: int) -> bool:
        """Apply this file now; False if a newer one is applied."""
        return await self._apply(self._declaration(schedules, revision))

    def _declaration(self, schedules: Sequence[Schedule], revision: int) -> Declared:
        # The digests of files have no prefix: other releases must compute the same.
        return Declared.of(schedules, revision, "" if self._source == "config" else "code:")

    async def _refreshed(self, declared: Declared, *, applied: bool) -> bool:
        if applied and await self._is_current(declared):
            return True
        return await self._apply(declared)

    async def _is_current(self, declared: Declared) -> bool:
        """Return whether the file is applied already and no clashing name has become free.

        This check saves needless applies: an apply locks every schedule of the file, and their
        ticks wait for it.
        """
        if self._clashing - await self._store.names_of(self._others, self._clashing):
            return False
        return await self._store.config_seen(self._source, declared.digest, declared.revision)

    async def _apply(self, declared: Declared) -> bool:
        changes: list[Change] = []

        def decide(stored: Sequence[StoredSchedule], now: datetime) -> Sequence[Change]:
            changes[:] = self._decided(declared, stored, now)
            return changes

        # Reset in case this fails: after a gap, a missing mark does not prove that a file is
        # abandoned.
        newer, self._newer = self._newer, None
        load = ConfigLoad(
            self._source,
            declared.digest,
            declared.revision,
            tuple(schedule.name for schedule in declared.schedules),
            anew=self._file_changed,
            abandoned=newer.seen_at if newer and self._is_gone(newer) else None,
        )
        seen_at = await self._store.apply_config(load, decide)
        self._file_changed, applied = False, seen_at is None
        if seen_at is not None:
            known = newer and newer.seen_at == seen_at
            self._newer = newer if known else _NewerFile(seen_at, _now())
        if changes and applied:
            log.info(
                "config_applied",
                source=self._source,
                revision=declared.revision,
                changed=len(changes),
            )
            self._hints.notify("schedules")
        elif not applied and declared != self._refused:
            log.warning(
                "config_not_applied",
                source=self._source,
                revision=declared.revision,
                problem="a newer one is applied and still in use",
            )
            self._refused = declared
        return applied

    def _is_gone(self, newer: _NewerFile) -> bool:
        return _now() - newer.since >= self._gone_seconds

    def _decided(
        self, declared: Declared, stored: Sequence[StoredSchedule], now: datetime
    ) -> list[Change]:
        existing = {s.name: s for s in stored}
        wanted = {schedule.name for schedule in declared.schedules}
        self._log_clashes(
            {s.name: s.source for s in stored if s.source in self._others and s.retired_at is None}
        )
        changes = [
            change
            for schedule in declared.schedules
            if (change := self._wanted(existing.get(schedule.name), schedule, now))
        ]
        gone = (s for s in stored if s.source == self._source and s.retired_at is None)
        return changes + [retired(s, self._cluster, now) for s in gone if s.name not in wanted]

    def _log_clashes(self, clashing: Mapping[str, Source]) -> None:
        for name in sorted(clashing.keys() - self._clashing):
            theirs, ours = _PLACES[clashing[name]], _PLACES[self._source]
            log.error(
                "schedule_name_clash",
                schedule=name,
                problem=f"{theirs} and {ours} both have a schedule of this name: the one of"
                f" {theirs} is used; delete or rename one of them",
            )
        self._clashing = frozenset(clashing)

    def _wanted(
        self, existing: StoredSchedule | None, schedule: Schedule, now: datetime
    ) -> Change | None:
        if existing is None:
            return created(schedule, self._source, self._cluster, now)
        if existing.source in self._others and existing.retired_at is None:
            return None
        if existing.source != self._source:
            return self._taken_over(existing, schedule, now)
        if existing.definition == schedule and existing.retired_at is None:
            return None
        return updated(existing, schedule, self._cluster, now)

    def _taken_over(self, existing: StoredSchedule, schedule: Schedule, now: datetime) -> Change:
        """The name was that of a weaker source, or of a retired schedule.

        A retired one only shares the name: the new one does not catch up on the ticks that it
        missed. Ticks up to its watermark have their rows, even if the clock was set back since;
        hence the maximum.
        """
        if existing.retired_at is None:
            change = updated(existing, schedule, self._cluster, now)
            return replace(change, after=replace(change.after, source=self._source))
        start = max(now, existing.watermark)
        fresh = created(schedule, self._source, self._cluster, start)
        return replace(fresh, after=replace(fresh.after, id=existing.id))


def _now() -> float:
    return asyncio.get_running_loop().time()
