"""Builds the state store, its copies in Redis, the watch, and the loader of a run's state."""

from dataclasses import dataclass

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.adapters.postgres.state import PostgresState
from sidecar.adapters.redis_cache import RedisCache
from sidecar.app.infrastructure import Infrastructure
from sidecar.execution.authority import Authorities
from sidecar.model.breaker import Breaker
from sidecar.model.definitions import State
from sidecar.state import (
    NoCopies,
    RedisCopies,
    StateLoader,
    StateStore,
    StateSweeper,
    StateWatch,
)
from sidecar.state.owned import OwnedStates


@dataclass(frozen=True, slots=True)
class States:
    store: StateStore
    watch: StateWatch
    sweeper: StateSweeper
    loader: OwnedStates
    cache: RedisCache | None
    copies: RedisCopies | None

    def reading_store(self, infrastructure: Infrastructure, database: Database) -> StateStore:
        """A store for reads on another database; it never asks the cache."""
        table = PostgresState(
            database,
            infrastructure.identity,
            heartbeat_seconds=infrastructure.settings.health.heartbeat_seconds,
        )
        return StateStore(
            table, NoCopies(), infrastructure.hints, self.loader.policy, monotonic=boottime
        )


def build(infrastructure: Infrastructure, authorities: Authorities) -> States:
    settings = infrastructure.settings
    table, table_of_runs = (
        PostgresState(
            database,
            infrastructure.identity,
            heartbeat_seconds=settings.health.heartbeat_seconds,
        )
        for database in (infrastructure.shared_database, infrastructure.database)
    )
    schedules = PostgresSchedules(infrastructure.database, infrastructure.identity)
    runs = PostgresRuns(infrastructure.database, infrastructure.identity)

    async def schedule_policy(name: str) -> State:
        return (await schedules.get(name)).definition.state

    owned = OwnedStates(
        StateLoader(table_of_runs), infrastructure.singletons, schedule_policy, runs
    )
    cache, copies = None, None
    if settings.redis.url:
        url = infrastructure.secrets.follow("redis.url", settings.redis.url).read
        cache = RedisCache(url, timeout_seconds=settings.redis.timeout_seconds)
        copies = RedisCopies(
            cache,
            table,
            Breaker(settings.breaker.failures, settings.breaker.open_seconds),
            ttl_seconds=settings.redis.ttl_seconds,
            budget_seconds=settings.redis.timeout_seconds,
            monotonic=boottime,
        )
    return States(
        store=StateStore(
            table,
            copies or NoCopies(),
            infrastructure.hints,
            owned.policy,
            monotonic=boottime,
            authorities=authorities,
        ),
        watch=StateWatch(table, infrastructure.hints, monotonic=boottime),
        sweeper=StateSweeper(table, infrastructure.hints, interval_seconds=30.0),
        loader=owned,
        cache=cache,
        copies=copies,
    )
