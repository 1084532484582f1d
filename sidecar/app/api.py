"""The gRPC services, each on the step that it speaks for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sidecar._proto.baton.v1 import (
    deferreds_pb2_grpc,
    ids_pb2_grpc,
    leadership_pb2_grpc,
    operations_pb2_grpc,
    runs_pb2_grpc,
    schedules_pb2_grpc,
    singletons_pb2_grpc,
    state_pb2_grpc,
)
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_server.deferreds import DeferredsService
from sidecar.adapters.grpc_server.ids import IdsService
from sidecar.adapters.grpc_server.leadership import LeadershipService, OperationsService
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.schedules import SchedulesService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.singletons import SingletonsService
from sidecar.adapters.grpc_server.state import StateService
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.executions import PostgresExecutions
from sidecar.adapters.postgres.machines import Machines
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.adapters.tokens import Token
from sidecar.app.ground import Ground
from sidecar.app.states import States
from sidecar.deferreds import Deferreds
from sidecar.dispatch.runs import Runs
from sidecar.health.switch import DeadMansSwitch
from sidecar.ids import LEASE_SECONDS, Ids
from sidecar.leadership import Leadership
from sidecar.model.run import Refused
from sidecar.scheduling.catalogue import Schedules


@dataclass(frozen=True, slots=True)
class Api:
    server: ApiServer
    deferreds: Deferreds
    ids: Ids


def build(
    ground: Ground,
    states: States,
    leadership: Leadership,
    switch: DeadMansSwitch,
    *,
    refused: Refused,
    drain: Callable[[], None],
    drained: Callable[[], Awaitable[None]],
) -> Api:
    settings, database, who = ground.settings, ground.database, ground.who
    schedules = Schedules(
        PostgresSchedules(database, who),
        ground.hints,
        cluster=settings.cluster,
        history_seconds=settings.history.keep_seconds,
    )
    runs = Runs(PostgresRunRecords(database, who), ground.hints, refused=refused)
    deferreds = Deferreds(PostgresDeferreds(database, who), ground.hints, refused=refused)
    ids = Ids(Machines(database, who.now, lease_seconds=LEASE_SECONDS), boottime)
    singletons = SingletonsService(
        settings.singletons, PostgresExecutions(database, who), leadership.get, switch.stale_reasons
    )
    server = ApiServer(
        settings.api.address, Token(settings.api.token), outermost=ground.interceptors
    )
    for register, servicer, name in (
        (
            leadership_pb2_grpc.add_LeadershipServicer_to_server,
            LeadershipService(leadership),
            "Leadership",
        ),
        (
            operations_pb2_grpc.add_OperationsServicer_to_server,
            OperationsService(drain, drained),
            "Operations",
        ),
        (
            schedules_pb2_grpc.add_SchedulesServicer_to_server,
            SchedulesService(schedules, switch.stale_reasons),
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
    ):
        server.add(register, servicer, f"baton.v1.{name}")
    return Api(server, deferreds, ids)
