"""Builds the gRPC services and the parts that serve them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from sidecar._proto.baton.v1 import (
    deferreds_pb2_grpc,
    ids_pb2_grpc,
    jobs_pb2_grpc,
    leadership_pb2_grpc,
    operations_pb2_grpc,
    runners_pb2_grpc,
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
from sidecar.adapters.grpc_server.reports import RunnersService
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.singletons import SingletonsService
from sidecar.adapters.grpc_server.state import StateService
from sidecar.adapters.grpc_server.stream import AppStreamService
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.executions import PostgresExecutions
from sidecar.adapters.postgres.job_catalogue import PostgresJobCatalogue
from sidecar.adapters.postgres.job_records import PostgresJobRecords
from sidecar.adapters.postgres.job_submissions import PostgresJobSubmissions
from sidecar.adapters.postgres.machines import Machines
from sidecar.adapters.postgres.reports import PostgresReports
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
    readers: Callable[[], Mapping[str, Any]]  # the services as pages read them


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
    deferreds = Deferreds(PostgresDeferreds(database, identity), hints, authorities=authorities)
    jobs = _jobs(infrastructure, leadership)
    ids = Ids(Machines(database, identity.now, lease_seconds=LEASE_SECONDS), boottime)
    reports = PostgresReports(infrastructure.reports_database, identity)
    reading = partial(
        _reading_services, infrastructure, leadership, switch, authorities=authorities
    )
    token = infrastructure.secrets.follow(
        "api.token_file", settings.api.token, SecretSource.read_token
    )
    server = ApiServer(settings.api.address, Token(token), outermost=infrastructure.interceptors)
    services = reading(database) | {
        "Leadership": LeadershipService(leadership, reports, warnings),
        "Operations": OperationsService(drain, drained),
        "State": StateService(states.store, states.watch),
        "Deferreds": DeferredsService(deferreds, reports),
        "Ids": IdsService(ids),
        "Runners": RunnersService(reports, infrastructure.runner_id),
        "Jobs": JobsService(jobs.jobs),
        "AppStream": AppStreamService(
            infrastructure.processes, _runs(infrastructure, database, authorities), declare
        ),
    }
    for name, servicer in services.items():
        server.add(_REGISTER[name], servicer, f"baton.v1.{name}")

    def readers() -> Mapping[str, Any]:
        store = states.reading_store(infrastructure, infrastructure.reports_database)
        found = reading(infrastructure.reports_database)
        found["State"] = StateService(store, states.watch)
        return {f"baton.v1.{name}": servicer for name, servicer in found.items()}

    return Api(server, deferreds, ids, jobs, readers)


def _runs(infrastructure: Infrastructure, database: Database, authorities: Authorities) -> Runs:
    identity = infrastructure.identity
    return Runs(
        PostgresRunRecords(database, identity),
        infrastructure.hints,
        authorities=authorities,
        jobs=PostgresJobRecords(database, identity),
    )


def _reading_services(
    infrastructure: Infrastructure,
    leadership: Leadership,
    switch: DeadMansSwitch,
    database: Database,
    *,
    authorities: Authorities,
) -> dict[str, Any]:
    """Services that keep nothing in memory: there may be several of each, on several databases."""
    settings, identity = infrastructure.settings, infrastructure.identity
    unhandled = infrastructure.transport.unhandled
    schedules = Schedules(
        PostgresSchedules(database, identity),
        infrastructure.hints,
        cluster=settings.cluster,
        history_seconds=settings.history.keep_seconds,
    )
    singletons = SingletonsService(
        infrastructure.singletons,
        PostgresExecutions(database, identity),
        leadership.get,
        switch.stale_reasons,
        unhandled,
    )
    return {
        "Schedules": SchedulesService(schedules, switch.stale_reasons, unhandled),
        "Runs": RunsService(
            _runs(infrastructure, database, authorities),
            PostgresReports(infrastructure.reports_database, identity),
        ),
        "Singletons": singletons,
    }


_REGISTER: dict[str, Callable[[Any, grpc.aio.Server], None]] = {
    "AppStream": stream_pb2_grpc.add_AppStreamServicer_to_server,
    "Deferreds": deferreds_pb2_grpc.add_DeferredsServicer_to_server,
    "Ids": ids_pb2_grpc.add_IdsServicer_to_server,
    "Jobs": jobs_pb2_grpc.add_JobsServicer_to_server,
    "Leadership": leadership_pb2_grpc.add_LeadershipServicer_to_server,
    "Operations": operations_pb2_grpc.add_OperationsServicer_to_server,
    "Runners": runners_pb2_grpc.add_RunnersServicer_to_server,
    "Runs": runs_pb2_grpc.add_RunsServicer_to_server,
    "Schedules": schedules_pb2_grpc.add_SchedulesServicer_to_server,
    "Singletons": singletons_pb2_grpc.add_SingletonsServicer_to_server,
    "State": state_pb2_grpc.add_StateServicer_to_server,
}


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
