"""What everything else stands on: who we are, Postgres, hints, the app's link, the tracer."""

import socket
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from sidecar import logs
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import Hints, channel_name
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.tokens import Token
from sidecar.appwatch import AppWatch
from sidecar.config import Settings
from sidecar.model.election_words import Timers
from sidecar.model.errors import StoreUnavailable
from sidecar.model.identity import Identity, new_runner_id
from sidecar.tracing import NoTracer, Tracer

VERSION = version("baton-sidecar")


class Who:
    """The identity, once Postgres has given it; until then asking is `StoreUnavailable`."""

    def __init__(self) -> None:
        self._identity: Identity | None = None

    def known(self, identity: Identity) -> None:
        self._identity = identity

    def now(self) -> Identity:
        if self._identity is None:
            raise StoreUnavailable("this sidecar has not joined its cluster in Postgres yet")
        return self._identity

    async def __call__(self) -> Identity:
        return self.now()


@dataclass(frozen=True, slots=True)
class Ground:
    settings: Settings
    runner_id: str
    host: str
    channel: str
    timers: Timers
    who: Who
    database: Database
    hints: Hints
    membership: Membership
    link: AppLink
    watch: AppWatch
    tracer: Tracer
    interceptors: tuple[Any, ...]


def lay(settings: Settings) -> Ground:
    host = socket.gethostname()
    runner_id = new_runner_id(settings.runner.id_prefix, host)
    logs.bind(cluster=settings.cluster, runner=runner_id)
    postgres, timers = settings.postgres, timers_of(settings)
    channel = channel_name(postgres.schema, settings.cluster)
    database = Database(
        postgres.url.read,
        schema=postgres.schema,
        size=postgres.pool_max,
        statement_seconds=timers.lease,
    )
    link = AppLink(
        settings.app.address,
        Token(settings.app.token),
        cluster=settings.cluster,
        runner_id=runner_id,
    )
    tracer, interceptors = _tracing(settings, runner_id)
    return Ground(
        settings=settings,
        runner_id=runner_id,
        host=host,
        channel=channel,
        timers=timers,
        who=Who(),
        database=database,
        hints=Hints(database, postgres.direct_url.read, channel=channel),
        membership=Membership(database, runner_id=runner_id, host=host, version=VERSION),
        link=link,
        watch=AppWatch(
            link,
            settings.groups,
            boottime,
            interval=settings.app.health_interval_seconds,
            failures_max=settings.app.health_failures,
            callback_timeout=timers.callback_timeout,
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
    # Imported only where it is used: OpenTelemetry costs every pod megabytes.
    from sidecar.adapters.otel import OtelTracer, TraceCalls

    endpoint = settings.tracing.endpoint
    tracer = OtelTracer.to(endpoint, cluster=settings.cluster, runner_id=runner_id)
    return tracer, (TraceCalls(tracer),)
