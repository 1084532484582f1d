"""Builds the gRPC services and the parts that serve them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from sidecar._proto.baton.v1 import (
    deferreds_pb2_grpc,
    ids_pb2_grpc,
    jobs_pb2_grpc,
    leadership_pb2_grpc,
    operations_pb2_grpc,
    runs_pb2_grpc,
    schedules_pb2_grpc,
    singletons_pb2_grpc,
    state_pb2_grpc,
    stream_pb2_grpc,
)
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_server.deferreds import DeferredsService
from sidecar.adapters.grpc_server.ids import IdsService
from sidecar.adapters.grpc_server.jobs import JobsService
from sidecar.adapters.grpc_server.leadership import LeadershipService, OperationsService
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.singletons import SingletonsService
from sidecar.adapters.grpc_server.state import StateService
from sidecar.adapters.grpc_server.stream import AppStreamService
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.executions import PostgresExecutions
from sidecar.adapters.postgres.job_catalogue import PostgresJobCatalogue
from sidecar.adapters.postgres.job_records import PostgresJobRecords
from sidecar.adapters.postgres.job_submissions import PostgresJobSubmissions
from sidecar.adapters.postgres.machines import Machines
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.adapters.tokens import Token
from sidecar.app.infrastructure import Infrastructure
from sidecar.app.states import States
from sidecar.config import SecretSource
from sidecar.deferreds import Deferreds
from sidecar.election.leadership import Leadership
from sidecar.execution.authority import Authorities
from sidecar.execution.runs import Runs
from sidecar.health.switch import DeadMansSwitch
from sidecar.ids import LEASE_SECONDS, Ids
from sidecar.jobs.catalogue import Jobs
from sidecar.jobs.queue_depths import QueueDepths
from sidecar.jobs.queue_sync import QueueSync
from sidecar.jobs.submissions import Submissions
from sidecar.jobs.wakeup import Wakeup
from sidecar.jobs.watches import Watches
from sidecar.model.process import ProcessHello
from sidecar.scheduling.catalogue import Schedules


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the API shares with the worker: it is woken by `wakeup`, and calls `watches.look`."""

    jobs: Jobs
    records: PostgresJobCatalogue
    wakeup: Wakeup
    watches: Watches
    queues: QueueSync
    depths: QueueDepths


@dataclass(frozen=True, slots=True)
class Api:
    server: ApiServer
    deferreds: Deferreds
    ids: Ids
    jobs: JobParts


def build(
    infrastructure: Infrastructure,
    states: States,
    leadership: Leadership,
    switch: DeadMansSwitch,
    *,
    warnings: Callable[[], Iterable[str]],
    authorities: Authorities,
    declare: Callable[[ProcessHello], Awaitable[None]],
    drain: Callable[[], None],
    drained: Callable[[], Awaitable[None]],
) -> Api:
    settings, database = infrastructure.settings, infrastructure.shared_database
    identity, hints = infrastructure.identity, infrastructure.hints
    schedules = Schedules(
        PostgresSchedules(database, identity),
        hints,
        cluster=settings.cluster,
        history_seconds=settings.history.keep_seconds,
    )
    runs = Runs(
        PostgresRunRecords(database, identity),
        hints,
        authorities=authorities,
        jobs=PostgresJobRecords(database, identity),
    )
    deferreds = Deferreds(PostgresDeferreds(database, identity), hints, authorities=authorities)
    jobs = _jobs(infrastructure, leadership)
    ids = Ids(Machines(database, identity.now, lease_seconds=LEASE_SECONDS), boottime)
    singletons = SingletonsService(
        infrastructure.singletons,
        PostgresExecutions(database, identity),
        leadership.get,
        switch.stale_reasons,
        infrastructure.transport.unhandled,
    )
    token = infrastructure.secrets.follow(
        "api.token_file", settings.api.token, SecretSource.read_token
    )
    server = ApiServer(settings.api.address, Token(token), outermost=infrastructure.interceptors)
    for register, servicer, name in (
        (
            leadership_pb2_grpc.add_LeadershipServicer_to_server,
            LeadershipService(leadership, warnings),
            "Leadership",
        ),
        (
            operations_pb2_grpc.add_OperationsServicer_to_server,
            OperationsService(drain, drained),
            "Operations",
        ),
        (
            schedules_pb2_grpc.add_SchedulesServicer_to_server,
            SchedulesService(schedules, switch.stale_reasons, infrastructure.transport.unhandled),
            "Schedules",
        ),
        (runs_pb2_grpc.add_RunsServicer_to_server, RunsService(runs), "Runs"),
        (singletons_pb2_grpc.add_SingletonsServicer_to_server, singletons, "Singletons"),
        (
            state_pb2_grpc.add_StateServicer_to_server,
            StateService(states.store, states.watch),
            "State",
        ),
        (
            deferreds_pb2_grpc.add_DeferredsServicer_to_server,
            DeferredsService(deferreds),
            "Deferreds",
        ),
        (ids_pb2_grpc.add_IdsServicer_to_server, IdsService(ids), "Ids"),
        (jobs_pb2_grpc.add_JobsServicer_to_server, JobsService(jobs.jobs), "Jobs"),
        (
            stream_pb2_grpc.add_AppStreamServicer_to_server,
            AppStreamService(infrastructure.processes, runs, declare),
            "AppStream",
        ),
    ):
        server.add(register, servicer, f"baton.v1.{name}")
    return Api(server, deferreds, ids, jobs)


def _jobs(infrastructure: Infrastructure, leadership: Leadership) -> JobParts:
    database, identity = infrastructure.shared_database, infrastructure.identity
    records = PostgresJobCatalogue(database, identity)
    wakeup, watches = Wakeup(infrastructure.hints), Watches(records)
    submissions = Submissions(PostgresJobSubmissions(database, identity), wakeup)
    settings = infrastructure.settings
    return JobParts(
        jobs=Jobs(records, submissions, watches, wakeup),
        records=records,
        wakeup=wakeup,
        watches=watches,
        queues=QueueSync(records),
        depths=QueueDepths(
            records,
            lambda: leadership.get(settings.groups[0]).is_leader,
            configured=[queue.name for queue in settings.jobs.queues],
        ),
    )
