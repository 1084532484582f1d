"""What a leader does, wired as `sidecar/app/leader_work.py` does it: all of it is the real code."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authorities, Authority
from sidecar.execution.calls import CallPerRun
from sidecar.execution.pipeline import Executions, Pipeline
from sidecar.execution.runs import Runs
from sidecar.execution.slots import Slots
from sidecar.health.switch import DeadMansSwitch, Peers
from sidecar.model.breaker import Breaker
from sidecar.model.definitions import Singleton
from sidecar.model.run_records import Completion, Recorded
from sidecar.scheduling.catalogue import Schedules
from sidecar.scheduling.dispatcher import Dispatcher
from sidecar.scheduling.ticker import Ticker
from sidecar.singletons import Singletons
from tests.lab.execution import Connected
from tests.simulation.apps import ModelLink
from tests.simulation.loop import Process
from tests.simulation.settings import HEARTBEAT_SECONDS, STALE_SECONDS
from tests.simulation.tables import CLUSTER
from tests.simulation.work_client import ModelHints, ModelRuns, ModelSchedules

_SLOTS = 16


@dataclass(frozen=True, slots=True)
class Ports:
    """What the outside is made of in this world."""

    runs: ModelRuns
    schedules: ModelSchedules
    hints: ModelHints
    link: ModelLink
    app_answers: Callable[[], bool]
    peers: Peers
    authorities: Authorities
    recorded: Callable[[Completion, Recorded], None]
    chance: Callable[[], float]


class Work:
    """The work of one sidecar process, over all its terms."""

    def __init__(self, process: Process, ports: Ports, singletons: Sequence[Singleton]) -> None:
        self.schedules = ports.schedules
        self.runs = Runs(cast(Any, ports.runs), ports.hints, authorities=ports.authorities)
        self.catalogue = Schedules(cast(Any, ports.schedules), ports.hints, cluster=CLUSTER)
        self.switch = DeadMansSwitch(
            ports.schedules,
            heartbeat_seconds=HEARTBEAT_SECONDS,
            stale_after_seconds=STALE_SECONDS,
            app_answers=ports.app_answers,
            peers=ports.peers,
            clock=process.clock,
        )

        def recorded(completion: Completion, result: Recorded) -> None:
            self.switch.recorded(completion, result)
            ports.recorded(completion, result)

        self._pipeline = Pipeline(
            app=CallPerRun(Connected(ports.link)),
            loader=ports.runs,
            store=ports.runs,
            announcer=Announcer(health=recorded),
            breaker=Breaker(5, 2.0),
            slots=Slots(_SLOTS),
            chance=ports.chance,
        )
        self._dispatcher = Dispatcher(
            ports.runs, ports.hints, boottime=process.clock, chance=ports.chance
        )
        self._ticker = Ticker(
            ports.schedules, ports.hints, cluster=CLUSTER, queued=self._dispatcher.wake
        )
        self._singletons = Singletons(singletons, ports.runs)

    async def lead(self, authority: Authority) -> None:
        async with self._pipeline.open(authority) as executions:
            await self._lead(authority, executions)

    async def _lead(self, authority: Authority, executions: Executions) -> None:
        runs = self._dispatcher.lead(authority, executions)
        singletons = self._singletons.lead(authority, executions)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ticker.lead(authority), name="work.ticks")
            tasks.create_task(runs, name="work.runs")
            tasks.create_task(singletons, name="work.singletons")
            tasks.create_task(self.switch.watch(authority), name="work.switch")
