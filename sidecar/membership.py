"""Joins the cluster in Postgres, then keeps this runner's row alive.

    join (migrates first, if configured) ─▶ heartbeat every REGISTRY_SECONDS, until cancelled

Guarantees: a join that fails for any reason is retried with back-off until it succeeds; /readyz
shows a refusal (schema, encoding, permissions, another app with the same name); a failed heartbeat
is logged and the next one follows.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from sidecar.background import failures_logged
from sidecar.model.election_types import RunnerSeen
from sidecar.model.errors import IncompatibleSchema, ReadOnlyServer, SidecarError, StoreRefused
from sidecar.model.identity import Identity
from sidecar.model.spreading import DISCOVERY_SECONDS

log = structlog.get_logger()

REGISTRY_SECONDS = 5.0
_RETRY_SECONDS = (0.5, 5.0)  # first and longest pause between attempts to join


class Registry(Protocol):
    """The table of runners."""

    async def join(self, cluster: str, app_name: str, groups: Sequence[str]) -> Identity: ...
    async def beat(
        self,
        identity: Identity,
        *,
        campaigning: bool,
        config_revision: int,
        healthy: bool | None,
    ) -> Collection[RunnerSeen]: ...


class Gate(Protocol):
    """Makes /readyz fail with a reason."""

    def block(self, name: str, reason: str) -> None: ...
    def unblock(self, name: str) -> None: ...


class Election(Protocol):
    """The election of this runner."""

    @property
    def campaigning(self) -> bool: ...
    def discovering_peers(self, now: float) -> bool: ...
    def runners_seen(self, runners: Collection[RunnerSeen], now: float) -> None: ...


class Elector(Protocol):
    def handle(self, event: Callable[[float], None]) -> None: ...


@dataclass(slots=True, eq=False)
class ClusterMembership:
    """Joins and stays in the cluster. `migrate` updates the tables; None: this runner must not."""

    registry: Registry
    gate: Gate
    elector: Elector
    election: Election
    clock: Callable[[], float]
    cluster: str
    app_name: str
    groups: Sequence[str]
    config_revision: int
    migrate: Callable[[], Awaitable[object]] | None
    healthy: Callable[[], bool | None] = lambda: None  # whether the app answers; None: not said
    _beat_requested: asyncio.Event = field(default_factory=asyncio.Event)

    async def join(self) -> Identity:
        # Until Postgres has answered once, it may still refuse this runner.
        self.gate.block("join", "joining the cluster: Postgres has not answered yet")
        identity = await self._joined()
        self.gate.unblock("cluster")
        self.gate.unblock("join")
        log.info("cluster_joined", groups=sorted(identity.groups))
        return identity

    async def stay(self, identity: Identity) -> None:
        """Keep this runner's row alive, and pass the live runners to the election."""
        while True:
            self._beat_requested.clear()
            with failures_logged("registry"):
                runners = await self.registry.beat(
                    identity,
                    campaigning=self.election.campaigning,
                    config_revision=self.config_revision,
                    healthy=self.healthy(),
                )
                self.elector.handle(partial(self.election.runners_seen, runners))
            discovering = self.election.discovering_peers(self.clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(DISCOVERY_SECONDS if discovering else REGISTRY_SECONDS):
                    await self._beat_requested.wait()

    def beat_soon(self) -> None:
        """Send the next heartbeat now, because the content of this runner's row has changed."""
        self._beat_requested.set()

    async def _joined(self) -> Identity:
        pause, longest = _RETRY_SECONDS
        while True:
            try:
                return await self.registry.join(self.cluster, self.app_name, self.groups)
            except IncompatibleSchema as error:
                self.gate.block("cluster", str(error))
                if await self._migrated(error):
                    continue
            except SidecarError as error:
                self._refused("waiting_for_postgres", error)
            except Exception:  # the next attempt may succeed
                log.exception("join_failed")
            self.gate.unblock("join")
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads retries
            pause = min(longest, pause * 2)

    async def _migrated(self, why: IncompatibleSchema) -> bool:
        """Migrate, if configured; return whether the tables are up to date now."""
        if self.migrate is None:
            log.warning("waiting_for_migration", problem=str(why))
            return False
        try:
            applied = await self.migrate()
        except SidecarError as error:
            self._refused("migration_failed", error)
            return False
        except Exception:  # for example, the file of a secret cannot be read
            log.exception("migration_failed")
            return False
        log.info("migrated", applied=applied)
        return True

    def _refused(self, event: str, error: SidecarError) -> None:
        if isinstance(error, StoreRefused | ReadOnlyServer):
            self.gate.block("cluster", str(error))
            event = "postgres_refused" if event == "waiting_for_postgres" else event
        log.warning(event, problem=str(error), reason=error.reason)
