"""Workers without sidecars: the real tables, leases, claims and the pipeline, beside fake apps."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.job_admission import PostgresJobAdmission
from sidecar.adapters.postgres.job_records import PostgresJobRecords
from sidecar.adapters.postgres.jobs import PostgresJobs
from sidecar.adapters.postgres.state import PostgresState
from sidecar.adapters.postgres.workers import PostgresWorkers
from sidecar.execution.authority import Authority
from sidecar.execution.slots import Slots
from sidecar.jobs.admitter import Admitter
from sidecar.jobs.claimer import Claimer, JobSettings
from sidecar.jobs.states import JobStates
from sidecar.model.identity import Identity
from sidecar.model.job import JobSpec, Submitted
from sidecar.model.job_records import ClaimRequest, JobClaim
from sidecar.model.run import Answer, Run
from sidecar.model.worker_lease import Lease
from sidecar.worker.lease import Worker
from sidecar.worker.rescuer import Rescuer
from tests.integration.runs_lab import FakeApp, Lab, Row, laboratory
from tests.lab.execution import a_pipeline

Handler = Callable[[Run], Awaitable[Answer]]
QUOTAS = (1000, 1000, 1000, 1000)


@dataclass
class FakeJobApp(FakeApp):
    """An app that has handlers for some jobs."""

    names: frozenset[str] = frozenset({"work"})
    capacity: int = 64
    on_change: list[Callable[[], None]] = field(default_factory=list)

    def become(self, *names: str) -> None:
        self.names = frozenset(names)
        for changed in list(self.on_change):
            changed()


@dataclass
class Pod:
    """One worker; `work` runs until the block of `JobsLab.pod` ends, or `crash` is called."""

    app: FakeJobApp
    worker: Worker
    tasks: list["asyncio.Task[Any]"]

    async def running(self, count: int = 1, seconds: float = 20.0) -> None:
        """Wait until so many jobs are running in the app."""
        async with asyncio.timeout(seconds):
            while self.app.running < count:  # noqa: ASYNC110 - the fake counts
                await asyncio.sleep(0.01)

    def crash(self) -> None:
        """Nothing is handed back, and no beat follows."""
        self.worker._store = _Gone()
        for task in self.tasks:
            task.cancel()


class _Gone:
    def __getattr__(self, name: str) -> Any:
        async def never(*args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

        return never


@dataclass
class JobsLab:
    lab: Lab
    identity: Identity

    async def who(self) -> Identity:
        return self.identity

    @property
    def jobs(self) -> PostgresJobs:
        return PostgresJobs(self.lab.database, self.who)

    @property
    def records(self) -> PostgresJobRecords:
        return PostgresJobRecords(self.lab.database, self.who)

    @property
    def workers(self) -> PostgresWorkers:
        return PostgresWorkers(self.lab.database, self.who)

    @property
    def admission(self) -> PostgresJobAdmission:
        return PostgresJobAdmission(self.lab.database, self.who)

    async def sql(self, text: str, **parameters: Any) -> list[Row]:
        return await self.lab.sql(text, **parameters)

    async def submit(self, *jobs: JobSpec) -> list[Submitted]:
        return await self.jobs.submit(jobs)

    async def enqueue(self, arguments: str = "'work'") -> int:
        (row,) = await self.sql(f"SELECT baton.enqueue('test', {arguments}) AS id")
        self.lab.hints.notify("jobs")  # as the commit does, to those who listen
        return int(row["id"])

    async def claim(
        self, lease: Lease, quotas: Sequence[int] = QUOTAS, names: Sequence[str] = ("work",)
    ) -> JobClaim:
        return await self.jobs.claim(lease, ClaimRequest(frozenset(names), quotas))

    async def rows(self, job_ids: Sequence[int] | None = None) -> list[Row]:
        return await self.sql(
            """SELECT * FROM baton.jobs
               WHERE %(ids)s::bigint[] IS NULL OR job_id = ANY (%(ids)s) ORDER BY job_id""",
            ids=None if job_ids is None else list(job_ids),
        )

    async def ended(self, count: int = 1, seconds: float = 60.0) -> list[Row]:
        async with asyncio.timeout(seconds):
            while True:
                (row,) = await self.sql(
                    """SELECT (SELECT count(*) FROM baton.job_ended)
                            + (SELECT count(*) FROM baton.job_dead) AS count"""
                )
                if row["count"] >= count:
                    return await self.sql("SELECT * FROM baton.jobs WHERE state = 'ended'")
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def pod(
        self,
        handler: Handler | None = None,
        *,
        name: str = "pod",
        drain_seconds: float = 0.0,
        settings: JobSettings | None = None,
        **app: Any,
    ) -> AsyncIterator[Pod]:
        """A worker on its own runner; drained at the end."""
        other = replace(self, identity=replace(self.identity, runner_id=name))
        fake = FakeJobApp(handler, **app)
        store, hints = other.jobs, self.lab.hints
        states = PostgresState(self.lab.database, other.who, heartbeat_seconds=30.0)
        pipeline = a_pipeline(
            fake, store, loader=JobStates(states, store), slots=Slots(fake.capacity)
        )
        claimer = Claimer(store, fake, hints, boottime, settings or JobSettings())
        workers = other.workers
        worker = Worker(workers, Rescuer(workers, hints), boottime)

        async def work(authority: Authority) -> None:
            async with pipeline.open(authority) as executions:
                await claimer.work(authority, executions)

        pod = Pod(fake, worker, [asyncio.create_task(worker.run(while_leased=work))])
        try:
            yield pod
        finally:
            worker.drain(drain_seconds)
            (result,) = await asyncio.gather(*pod.tasks, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    @asynccontextmanager
    async def leader(self) -> AsyncIterator[None]:
        """Admissions under a term of the first group."""
        authority = await self.lab.authority()
        task = asyncio.create_task(Admitter(self.admission, self.lab.hints).lead(authority))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def jobs_laboratory(url: str) -> AsyncIterator[JobsLab]:
    async with laboratory(url) as lab:
        yield JobsLab(lab, lab.identity)
