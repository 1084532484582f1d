"""What all other parts depend on: identity, Postgres, hints, the link to the app, the tracer."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from sidecar import logs
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.app.transport import AppTransport, Callback
from sidecar.adapters.app_probe import diagnose
from sidecar.adapters.clock import boottime
from sidecar.adapters.files import SecretFiles
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import PostgresHints, channel_name
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource, Settings
from sidecar.election.app_watch import AppWatch
from sidecar.execution.calls import CallPerRun
from sidecar.model.election_types import Timers
from sidecar.model.errors import StoreUnavailable
from sidecar.model.identity import Identity, new_runner_id
from sidecar.model.process import DeclaredSingletons
from sidecar.model.unacknowledged import UnacknowledgedLosses
from sidecar.tracing import NoTracer, Tracer

VERSION = version("baton-sidecar")
# A page must delay neither a tick nor a ping: it shares no connection with them, gives up soon,
# and a pod that nobody looks at holds none.
REPORTS_CONNECTIONS = 2
REPORTS_SECONDS = 2.0
REPORTS_UNUSED_SECONDS = 30.0


class JoinedIdentity:
    """The identity that the join returned; reading it before the join raises StoreUnavailable."""

    def __init__(self) -> None:
        self._identity: Identity | None = None

    def set(self, identity: Identity) -> None:
        self._identity = identity

    def now(self) -> Identity:
        if self._identity is None:
            raise StoreUnavailable("this sidecar has not joined its cluster in Postgres yet")
        return self._identity

    async def __call__(self) -> Identity:
        return self.now()


@dataclass(frozen=True, slots=True)
class Infrastructure:
    settings: Settings
    secrets: SecretFiles
    runner_id: str
    host: str
    direct_url: Callable[[], str]
    channel: str
    timers: Timers
    identity: JoinedIdentity
    database: Database  # for ticks, claims, completions, heartbeats and probes
    shared_database: Database  # for everything else: the API, the config file, cleanup
    reports_database: Database  # for what people look at: connections and limits of its own
    hints: PostgresHints
    membership: Membership
    link: AppLink
    singletons: DeclaredSingletons
    processes: AttachedProcesses
    transport: AppTransport
    losses: UnacknowledgedLosses
    watch: AppWatch
    tracer: Tracer
    interceptors: tuple[Any, ...]


def build(settings: Settings) -> Infrastructure:
    host = socket.gethostname()
    runner_id = new_runner_id(settings.runner.id_prefix, host)
    logs.bind(cluster=settings.cluster, runner=runner_id)
    postgres, timers, secrets = settings.postgres, timers_of(settings), SecretFiles()
    direct_url = secrets.follow("postgres.direct_url", postgres.direct_url).read
    channel = channel_name(postgres.schema, settings.cluster)
    database = Database(
        secrets.follow("postgres.url", postgres.url).read,
        schema=postgres.schema,
        size=postgres.pool_max,
        statement_seconds=timers.lease,
    )
    link = AppLink(
        settings.app.address,
        Token(secrets.follow("app.token_file", settings.app.token, SecretSource.read_token)),
        cluster=settings.cluster,
        runner_id=runner_id,
    )
    losses = UnacknowledgedLosses()
    tracer, interceptors = _tracing(settings, runner_id)
    processes = AttachedProcesses(
        Messages(cluster=settings.cluster, runner_id=runner_id),
        tracer,
        settings.groups,
        interval=settings.app.health_interval_seconds,
        failures_max=settings.app.health_failures,
        callback_timeout=timers.callback_timeout,
    )
    execute = GrpcExecute(link, tracer, cluster=settings.cluster, runner_id=runner_id)
    callback = Callback(link, CallPerRun(execute), settings.run_calls_max)
    transport = AppTransport(callback, processes)
    return Infrastructure(
        settings=settings,
        secrets=secrets,
        runner_id=runner_id,
        host=host,
        direct_url=direct_url,
        channel=channel,
        timers=timers,
        identity=JoinedIdentity(),
        database=database,
        shared_database=database.share(),
        reports_database=Database(
            secrets.follow("postgres.url", postgres.url).read,
            schema=postgres.schema,
            size=REPORTS_CONNECTIONS,
            statement_seconds=REPORTS_SECONDS,
            unused_seconds=REPORTS_UNUSED_SECONDS,
        ),
        hints=PostgresHints(database, direct_url, channel=channel),
        membership=Membership(database, runner_id=runner_id, host=host, version=VERSION),
        link=link,
        singletons=DeclaredSingletons(settings.singletons),
        processes=processes,
        transport=transport,
        losses=losses,
        watch=AppWatch(
            transport,
            settings.groups,
            losses,
            boottime,
            interval=settings.app.health_interval_seconds,
            failures_max=settings.app.health_failures,
            callback_timeout=timers.callback_timeout,
            diagnose=partial(diagnose, settings.app.address),
        ),
        tracer=tracer,
        interceptors=interceptors,
    )


def timers_of(settings: Settings) -> Timers:
    election = settings.election
    return Timers(
        ping=election.ping_seconds,
        lease=election.lease_seconds,
        server_lease=election.server_lease_seconds,
        poll=election.poll_seconds,
        grace=election.grace_seconds,
        drain=election.drain_seconds,
        callback_timeout=election.callback_timeout_seconds,
    )


def _tracing(settings: Settings, runner_id: str) -> tuple[Tracer, tuple[Any, ...]]:
    if not settings.tracing.endpoint:
        return NoTracer(), ()
    # Imported only if tracing is on: OpenTelemetry takes megabytes of memory.
    from sidecar.adapters.otel import OtelTracer, TraceCalls

    endpoint = settings.tracing.endpoint
    tracer = OtelTracer.to(endpoint, cluster=settings.cluster, runner_id=runner_id)
    return tracer, (TraceCalls(tracer),)
