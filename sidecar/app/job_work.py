"""The work of a worker: claims and executes jobs while this runner holds its worker lease."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from sidecar.adapters.app.job_delivery import JobDelivery
from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.job_admission import PostgresJobAdmission
from sidecar.adapters.postgres.jobs import PostgresJobs
from sidecar.adapters.postgres.state import PostgresState
from sidecar.adapters.postgres.workers import PostgresWorkers
from sidecar.app.infrastructure import Infrastructure
from sidecar.app.states import States
from sidecar.execution.announcer import Announcer
from sidecar.execution.authority import Authorities, Authority
from sidecar.execution.pipeline import Pipeline
from sidecar.execution.slots import Slots
from sidecar.jobs.claimer import Claimer, JobSettings
from sidecar.jobs.retention import JobRetention
from sidecar.jobs.states import JobStates
from sidecar.model.breaker import Breaker
from sidecar.worker.lease import Worker
from sidecar.worker.rescuer import Rescuer


@dataclass(frozen=True, slots=True)
class JobWork:
    database: Database
    app: JobDelivery
    pipeline: Pipeline
    claimer: Claimer
    worker: Worker
    retention: JobRetention

    async def run(self) -> None:
        """Hold a worker lease from the first job handler on, until `worker.drain`."""
        # A pod whose app has no job handler costs Postgres nothing.
        await self.app.has_handlers()
        await self.worker.run(while_leased=self._work)

    async def _work(self, authority: Authority) -> None:
        async with self.database.warm(), self.pipeline.open(authority) as executions:
            await self.claimer.work(authority, executions)


def build(
    infrastructure: Infrastructure,
    states: States,
    authorities: Authorities,
    *,
    leads_first_group: Callable[[], bool],
    recorded: Callable[[], None],
) -> JobWork:
    """`recorded` is called after jobs of this pod have changed."""
    settings, hints = infrastructure.settings, infrastructure.hints
    database, identity = infrastructure.database, infrastructure.identity
    jobs, workers = PostgresJobs(database, identity), PostgresWorkers(database, identity)
    table = PostgresState(database, identity, heartbeat_seconds=settings.health.heartbeat_seconds)
    app, slots = JobDelivery(infrastructure.processes), Slots(1)
    app.on_change.append(lambda: slots.resize(app.capacity))
    pipeline = Pipeline(
        app=app,
        loader=JobStates(table, jobs),
        store=jobs,
        announcer=Announcer(states=states.store, health=lambda *_: recorded()),
        breaker=Breaker(settings.breaker.failures, settings.breaker.open_seconds),
        slots=slots,
        chance=random.random,
        connect_seconds=settings.app.connect_timeout_seconds,
    )
    claiming = JobSettings(settings.jobs.max_running, settings.jobs.reserve, settings.jobs.weights)
    return JobWork(
        database=database,
        app=app,
        pipeline=pipeline,
        claimer=Claimer(jobs, app, hints, boottime, claiming),
        worker=Worker(
            workers,
            Rescuer(workers, hints),
            boottime,
            authorities=authorities,
            watch_all=leads_first_group,
        ),
        retention=JobRetention(
            PostgresJobAdmission(database, identity), keep_seconds=settings.jobs.keep_seconds
        ),
    )
