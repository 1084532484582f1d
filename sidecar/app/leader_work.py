"""The work of a leader: turns ticks into runs, executes runs, keeps singletons running."""

import asyncio
import random
from dataclasses import dataclass

from sidecar.adapters.app.transport import Delivery
from sidecar.adapters.clock import boottime
from sidecar.adapters.ping_url import PingUrls
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.job_admission import PostgresJobAdmission
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.app.infrastructure import Infrastructure
from sidecar.app.states import States
from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authority
from sidecar.execution.pipeline import Executions, Pipeline
from sidecar.execution.slots import Slots
from sidecar.health.switch import DeadMansSwitch, Peers
from sidecar.jobs.admitter import Admitter
from sidecar.logs import bound
from sidecar.model.breaker import Breaker
from sidecar.scheduling.backlog import Backlogs
from sidecar.scheduling.dispatcher import Dispatcher
from sidecar.scheduling.retention import AbandonedGroups
from sidecar.scheduling.ticker import Ticker
from sidecar.singletons import Singletons


@dataclass(frozen=True, slots=True)
class LeaderWork:
    database: Database
    pipeline: Pipeline
    ticker: Ticker
    dispatcher: Dispatcher
    singletons: Singletons
    switch: DeadMansSwitch
    pings: PingUrls
    abandoned_groups: AbandonedGroups
    backlogs: Backlogs
    admitter: Admitter
    first_group: str  # its leader admits jobs

    async def run(self, authority: Authority) -> None:
        """Do all work of one term; returns when the term has drained."""
        term = authority.term
        with bound(group=term.group, epoch=term.epoch):
            async with self.database.warm(), self.pipeline.open(authority) as executions:
                await self._work(authority, executions)

    async def _work(self, authority: Authority, executions: Executions) -> None:
        runs = self.dispatcher.lead(authority, executions)
        singletons = self.singletons.lead(authority, executions)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.ticker.lead(authority), name="work.ticks")
            tasks.create_task(runs, name="work.runs")
            tasks.create_task(singletons, name="work.singletons")
            tasks.create_task(self.switch.watch(authority), name="work.switch")
            tasks.create_task(self.backlogs.watch(authority), name="work.backlog")
            if authority.term.group == self.first_group:
                tasks.create_task(self.admitter.lead(authority), name="work.jobs")


def build(infrastructure: Infrastructure, states: States, peers: Peers) -> LeaderWork:
    settings = infrastructure.settings
    runs = PostgresRuns(infrastructure.database, infrastructure.identity)
    schedules = PostgresSchedules(infrastructure.database, infrastructure.identity)
    backlogs = Backlogs(runs)
    pings = PingUrls()
    switch = DeadMansSwitch(
        Heartbeats(infrastructure.database, infrastructure.identity.now, infrastructure.singletons),
        heartbeat_seconds=settings.health.heartbeat_seconds,
        stale_after_seconds=settings.health.stale_after_seconds,
        app_answers=lambda: infrastructure.watch.status.healthy,
        peers=peers,
        clock=boottime,
        answering_seconds=infrastructure.database.answering_seconds,
        overloaded=lambda group: backlogs.now(group).size > 0,
    )
    slots = Slots(settings.run_calls_max)
    infrastructure.transport.on_capacity.append(slots.resize)
    pipeline = Pipeline(
        app=Delivery(infrastructure.transport),
        loader=states.loader,
        store=runs,
        announcer=Announcer(states=states.store, pings=pings, health=switch.recorded),
        breaker=Breaker(settings.breaker.failures, settings.breaker.open_seconds),
        slots=slots,
        chance=random.random,
        connect_seconds=settings.app.connect_timeout_seconds,
    )
    keep_seconds = settings.history.keep_seconds
    dispatcher = Dispatcher(
        runs,
        infrastructure.hints,
        boottime=boottime,
        chance=random.random,
        keep_seconds=keep_seconds,
        backlogs=backlogs,
    )
    ticker = Ticker(
        schedules,
        infrastructure.hints,
        cluster=settings.cluster,
        queued=dispatcher.wake,
        changed=switch.changed,
        backlogs=backlogs,
    )
    return LeaderWork(
        database=infrastructure.database,
        pipeline=pipeline,
        ticker=ticker,
        dispatcher=dispatcher,
        singletons=Singletons(infrastructure.singletons, runs),
        switch=switch,
        pings=pings,
        abandoned_groups=AbandonedGroups(runs, keep_seconds=keep_seconds),
        backlogs=backlogs,
        admitter=Admitter(
            PostgresJobAdmission(infrastructure.database, infrastructure.identity),
            infrastructure.hints,
        ),
        first_group=settings.groups[0],
    )
