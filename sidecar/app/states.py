"""State: the store, its copies in Redis, the watch, and what a run starts from."""

from dataclasses import dataclass

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.listener import Subscription
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.adapters.postgres.state import PostgresState
from sidecar.adapters.redis_cache import RedisCache
from sidecar.app.ground import Ground
from sidecar.config import Singleton
from sidecar.model.breaker import Breaker
from sidecar.model.errors import NotFound
from sidecar.model.run import Delivery, Refused
from sidecar.model.state_schema import StatePolicy, initial_state
from sidecar.model.state_words import Owner
from sidecar.state import (
    NoCopies,
    RedisCopies,
    StateLoader,
    StateStore,
    StateSweeper,
    StateWatch,
)


@dataclass(frozen=True, slots=True)
class States:
    store: StateStore
    watch: StateWatch[Subscription]
    sweeper: StateSweeper
    loader: "OwnedStates"
    cache: RedisCache | None
    copies: RedisCopies | None


class OwnedStates:
    """What a run starts from, by the policy that its singleton or schedule declares."""

    def __init__(
        self,
        loader: StateLoader,
        singletons: tuple[Singleton, ...],
        schedules: PostgresSchedules,
    ) -> None:
        self._loader = loader
        self._singletons = {singleton.name: singleton.state for singleton in singletons}
        self._schedules = schedules

    async def load(self, delivery: Delivery) -> bytes:
        kind = delivery.kind.entity_type
        policy = delivery.state_policy or self._singletons[delivery.name]
        if not delivery.has_state:
            return initial_state(policy)
        return (await self._loader.load(kind, delivery.name, policy)).value

    async def policy(self, owner: Owner) -> StatePolicy | None:
        """None: this pod does not know the owner."""
        if owner.kind == "singleton":
            return self._singletons.get(owner.name)
        try:
            return (await self._schedules.get(owner.name)).definition.state
        except NotFound:
            return None


def build(ground: Ground, *, refused: Refused) -> States:
    settings = ground.settings
    truth = PostgresState(
        ground.database, ground.who, heartbeat_seconds=settings.health.heartbeat_seconds
    )
    schedules = PostgresSchedules(ground.database, ground.who)
    owned = OwnedStates(StateLoader(truth), settings.singletons, schedules)
    cache, copies = None, None
    if settings.redis.url:
        cache = RedisCache(settings.redis.url.read, timeout_seconds=settings.redis.timeout_seconds)
        copies = RedisCopies(
            cache,
            truth,
            Breaker(settings.breaker.failures, settings.breaker.open_seconds),
            ttl_seconds=settings.redis.ttl_seconds,
            budget_seconds=settings.redis.timeout_seconds,
            monotonic=boottime,
        )
    return States(
        store=StateStore(
            truth,
            copies or NoCopies(),
            ground.hints,
            owned.policy,
            monotonic=boottime,
            refused=refused,
        ),
        watch=StateWatch(truth, ground.hints, monotonic=boottime),
        sweeper=StateSweeper(truth, ground.hints, interval_seconds=30.0),
        loader=owned,
        cache=cache,
        copies=copies,
    )
