"""What this cluster has to do: schedules of every policy, singletons, and operators who meddle."""

from collections.abc import Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from sidecar.model.definitions import Retry, Schedule, Singleton
from sidecar.model.run import Outcome
from sidecar.model.stored_schedule import Change, StoredSchedule, resumed
from tests.simulation.run_statements import RunStatements
from tests.simulation.schedule_statements import ScheduleStatements
from tests.simulation.tables import CLUSTER, RunRow, Tables
from tests.simulation.work import Work
from tests.simulation.work_client import ModelRuns, ModelSchedules
from tests.simulation.world import World

_EVERY_SECONDS = (1.0, 2.0, 2.5, 4.0)
_BACKFILL_SPAN = timedelta(seconds=6)


class Planted(Protocol):
    """What a planted bug may replace here."""

    @property
    def run_statements(self) -> type[RunStatements]: ...
    @property
    def schedule_statements(self) -> type[ScheduleStatements]: ...
    @property
    def runs(self) -> type[ModelRuns]: ...
    @property
    def schedules(self) -> type[ModelSchedules]: ...


class Workload:
    """Made from the seed; `groups` maps names to ids."""

    def __init__(self, world: World, tables: Tables, groups: dict[str, int]) -> None:
        self._world = world
        self._tables = tables
        self._groups = groups
        self.singletons = [
            Singleton(f"singleton-{group}", group, restart_after_seconds=1.0)
            for group in groups
            if world.chance(0.4)
        ]

    def plant(self, parts: Planted) -> None:
        """Build the statements, with or without a bug, and store the schedules."""
        self.runs_class, self.schedules_class = parts.runs, parts.schedules
        self.run_statements = parts.run_statements(self._tables)
        self.schedule_statements = parts.schedule_statements(
            self._tables, self._groups, self.singletons
        )
        for number in range(self._world.random.randint(1, 2) + len(self._groups)):
            self.schedule_statements.create(self._schedule(number))

    def _schedule(self, number: int) -> Schedule:
        choice, chance = self._world.random.choice, self._world.chance
        schedule = Schedule(
            f"schedule-{number}",
            every_seconds=choice(_EVERY_SECONDS),
            group=choice([*self._groups]),
            catch_up=choice(("latest", "all", "none")),
            catch_up_max=choice((3, 10)),
            overlap=choice(("allow", "skip", "queue", "replace")),
            skip_if_older_than_seconds=choice((5.0, 30.0, 86_400.0)),
            retry=Retry(choice((1, 3, 3, 5)), 0.3, 1.0),
            timeout_seconds=choice((2.0, 4.0)),
            jitter_seconds=choice((0.0, 0.0, 0.5)),
        )
        if chance(0.1):
            return replace(schedule, every_seconds=None, cron="*/3 * * * * *")
        if chance(0.1):
            at = self._tables.now + timedelta(seconds=self._world.between((5.0, 25.0)))
            return replace(schedule, every_seconds=None, at=at)
        return schedule

    # ── operators ───────────────────────────────────────────────────────────────────────────────

    def meddle(self, work: Work) -> tuple[str, Coroutine[Any, Any, object]]:
        """Something that people do through any pod: what, and its call."""
        stored = self._world.random.choice([*self._tables.schedules.values()])
        name, catalogue, runs = stored.name, work.catalogue, work.runs
        match self._world.random.randrange(6):
            case 0 if stored.paused:
                return "resume", catalogue.resume(name)
            case 0:
                return "pause", catalogue.pause(name, "")
            case 1 if stored.definition.every_seconds and self._world.chance(0.6):
                return "retime", catalogue.update(self._retimed(stored.definition))
            case 1:
                group = self._world.random.choice([*self._groups])
                return "regroup", catalogue.update(replace(stored.definition, group=group))
            case 2:
                segment, now = self._tables.segments[stored.id][-1], self._tables.now
                since = max(segment.after, now - _BACKFILL_SPAN)
                until = max(now - timedelta(seconds=self._world.random.random()), since)
                return "backfill", catalogue.backfill(name, since + datetime.resolution, until)
            case 3 if found := self._runs(stored, None):
                return "cancel", runs.cancel(self._world.random.choice(found).id, "")
            case 4 if found := self._runs(stored, Outcome.FAILED):
                return "retry", runs.retry(self._world.random.choice(found).id)
            case _:
                return "trigger", catalogue.trigger(name, payload=None, request_id="")

    def resume(self) -> None:
        """Whatever is paused goes on."""
        for stored in [*self._tables.schedules.values()]:
            if stored.paused:
                self.schedule_statements.change(stored.name, _resumed)

    def _retimed(self, definition: Schedule) -> Schedule:
        return replace(definition, every_seconds=self._world.random.choice(_EVERY_SECONDS))

    def _runs(self, stored: StoredSchedule, outcome: Outcome | None) -> list[RunRow]:
        runs = self._tables.runs.values()
        return [r for r in runs if r.schedule_id == stored.id and r.outcome is outcome]


def _resumed(stored: StoredSchedule, now: datetime) -> Change:
    return resumed(stored, CLUSTER, now)
