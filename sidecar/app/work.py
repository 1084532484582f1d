"""What a leader does: ticks become runs, runs are executed, singletons are kept alive, watched."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.ping_url import PingUrls
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.app.ground import Ground
from sidecar.app.states import States
from sidecar.callback import Callback
from sidecar.dispatch.completions import Completions
from sidecar.dispatch.dispatcher import Dispatcher, Tools
from sidecar.dispatch.leftovers import Leftovers
from sidecar.dispatch.reporting import count_recorded
from sidecar.dispatch.slots import Slots
from sidecar.health.switch import DeadMansSwitch
from sidecar.logs import bound
from sidecar.model.breaker import Breaker
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Answer, CallFailed, Delivery, Failed, Outcome
from sidecar.model.term import Tenure
from sidecar.scheduling.ticker import Ticker
from sidecar.singletons import Singletons
from sidecar.tracing import TracedApp, current_metadata

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Work:
    database: Database
    ticker: Ticker
    dispatcher: Dispatcher
    singletons: Singletons
    switch: DeadMansSwitch
    pings: PingUrls
    leftovers: Leftovers

    async def lead(self, tenure: Tenure) -> None:
        """Everything that is done under one term; it ends when it has wound down."""
        term = tenure.term
        with bound(group=term.group, epoch=term.epoch):
            async with self.database.warm():
                await self._lead(tenure)

    async def _lead(self, tenure: Tenure) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.ticker.lead(tenure), name="work.ticks")
            tasks.create_task(self.dispatcher.lead(tenure), name="work.runs")
            tasks.create_task(self.singletons.lead(tenure), name="work.singletons")
            tasks.create_task(self.switch.watch(tenure), name="work.switch")


def build(
    ground: Ground,
    states: States,
    *,
    others_ready: Callable[[], bool],
    step_down: Callable[[str], None],
    trusted: Callable[[Delivery], bool],
) -> Work:
    settings = ground.settings
    runs = PostgresRuns(ground.database, ground.who)
    connect_seconds = settings.app.connect_timeout_seconds
    execute = GrpcExecute(
        ground.link,
        cluster=settings.cluster,
        runner_id=ground.runner_id,
        connect_seconds=connect_seconds,
        trusted=trusted,
        trace=current_metadata,
    )
    pings = PingUrls()
    app = TracedApp(execute, ground.tracer)
    called = Callback(app, states.loader, runs, connect_seconds=connect_seconds, trusted=trusted)
    callback = _Announced(called, pings)

    def recorded(report: Report, result: Recorded) -> None:
        switch.recorded(report, result)
        if report.verdict.state is not None:
            states.store.returned(report.delivery.state_key, report.delivery.state_version)
        if result.outcome is Outcome.SUCCEEDED:
            pings.send(report.delivery.name, report.delivery.ping_url, "success")
        elif result.outcome is Outcome.FAILED:
            pings.send(report.delivery.name, report.delivery.ping_url, "failure")

    def life_recorded(report: Report, result: Recorded) -> None:
        count_recorded(report, result)
        recorded(report, result)

    dispatcher = Dispatcher(
        Tools(
            store=runs,
            callback=callback,
            hints=ground.hints,
            breaker=Breaker(settings.breaker.failures, settings.breaker.open_seconds),
            slots=Slots(settings.run_calls_max),
            chance=random.random,
            boottime=boottime,
            keep_seconds=settings.history.keep_seconds,
            recorded=recorded,
        )
    )
    switch = DeadMansSwitch(
        Heartbeats(ground.database, ground.who.now, settings.singletons),
        heartbeat_seconds=settings.health.heartbeat_seconds,
        stale_after_seconds=settings.health.stale_after_seconds,
        app_answers=lambda: ground.watch.status.healthy,
        others_ready=others_ready,
        step_down=step_down,
        clock=boottime,
    )
    return Work(
        database=ground.database,
        ticker=Ticker(
            PostgresSchedules(ground.database, ground.who),
            ground.hints,
            cluster=settings.cluster,
            queued=dispatcher.wake,
            changed=switch.changed,
        ),
        dispatcher=dispatcher,
        singletons=Singletons(
            settings.singletons,
            runs,
            callback,
            lambda tenure: Completions(runs, tenure),
            recorded=life_recorded,
        ),
        switch=switch,
        pings=pings,
        leftovers=Leftovers(runs, keep_seconds=settings.history.keep_seconds),
    )


class _Announced:
    """Tells the log and the ping URL that an attempt begins, and the log how it ended.

    Every line about the call carries its term, its run and whose run it is.
    """

    def __init__(self, callback: Callback, pings: PingUrls) -> None:
        self._callback = callback
        self._pings = pings

    async def execute(self, delivery: Delivery) -> Answer:
        ref, kind = delivery.ref, delivery.kind.entity_type
        with bound(
            run_id=ref.run_id, attempt=ref.attempt, entity_type=kind, entity_id=delivery.name
        ):
            log.debug("execute_begins")
            self._pings.send(delivery.name, delivery.ping_url, "start")
            answer = await self._callback.execute(delivery)
            if isinstance(answer, Failed | CallFailed):
                log.warning("execute_failed", code=answer.code, problem=answer.message)
            else:
                log.debug("execute_ended", answer=type(answer).__name__)
            return answer
