"""What a leader does, wired as `sidecar/app/work.py` wires it: all of it is the real code."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sidecar.callback import Callback
from sidecar.config.work import Singleton
from sidecar.dispatch.completions import Completions
from sidecar.dispatch.dispatcher import Dispatcher, Tools
from sidecar.dispatch.runs import Runs
from sidecar.dispatch.slots import Slots
from sidecar.health.switch import DeadMansSwitch
from sidecar.model.breaker import Breaker
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Delivery, Refused
from sidecar.model.term import Tenure
from sidecar.scheduling.catalogue import Schedules
from sidecar.scheduling.ticker import Ticker
from sidecar.singletons import Singletons
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
    others_ready: Callable[[], bool]
    step_down: Callable[[str], None]
    trusted: Callable[[Delivery], bool]
    refused: Refused
    recorded: Callable[[Report, Recorded], None]
    chance: Callable[[], float]


class Work:
    """The work of one sidecar process, over all its terms."""

    def __init__(self, process: Process, ports: Ports, singletons: Sequence[Singleton]) -> None:
        self.schedules = ports.schedules
        callback = Callback(ports.link, ports.runs, ports.runs, trusted=ports.trusted)
        self.runs = Runs(cast(Any, ports.runs), ports.hints, refused=ports.refused)
        self.catalogue = Schedules(cast(Any, ports.schedules), ports.hints, cluster=CLUSTER)
        self.switch = DeadMansSwitch(
            ports.schedules,
            heartbeat_seconds=HEARTBEAT_SECONDS,
            stale_after_seconds=STALE_SECONDS,
            app_answers=ports.app_answers,
            others_ready=ports.others_ready,
            step_down=ports.step_down,
            clock=process.clock,
        )

        def recorded(report: Report, result: Recorded) -> None:
            self.switch.recorded(report, result)
            ports.recorded(report, result)

        self._dispatcher = Dispatcher(
            Tools(
                store=ports.runs,
                callback=callback,
                hints=ports.hints,
                breaker=Breaker(5, 2.0),
                slots=Slots(_SLOTS),
                chance=ports.chance,
                boottime=process.clock,
                recorded=recorded,
            )
        )
        self._ticker = Ticker(
            ports.schedules, ports.hints, cluster=CLUSTER, queued=self._dispatcher.wake
        )
        self._singletons = Singletons(
            singletons,
            ports.runs,
            callback,
            lambda tenure: Completions(ports.runs, tenure),
            recorded=recorded,
        )

    async def lead(self, tenure: Tenure) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ticker.lead(tenure), name="work.ticks")
            tasks.create_task(self._dispatcher.lead(tenure), name="work.runs")
            tasks.create_task(self._singletons.lead(tenure), name="work.singletons")
            tasks.create_task(self.switch.watch(tenure), name="work.switch")
