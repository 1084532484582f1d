"""One sidecar process: the flow from start to stop.

The order of a stop is a promise: not ready, no new work, drain, OnLoseLeadership, clean release,
then the API, then the rest.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import structlog

from sidecar import metrics
from sidecar.adapters import http_server
from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.app import api, ground, states, work
from sidecar.config import Settings
from sidecar.election import Elector
from sidecar.health.checks import Check, Checks
from sidecar.health.standing import Health
from sidecar.leadership import Leadership
from sidecar.model.election import Election
from sidecar.model.errors import AppUnavailable, IncompatibleSchema, SidecarError, StoreRefused
from sidecar.model.identity import Identity
from sidecar.model.spreading import LOOK_AGAIN_SECONDS
from sidecar.model.term import LossReason
from sidecar.scheduling.config_sync import ConfigSync

log = structlog.get_logger()

_REGISTRY_SECONDS = 5.0
# A bit more than the registry's rhythm: a healthy Postgres is not asked for this alone. A silent
# one must show within 10 s, two failed probes included.
_FRESH_SECONDS = 5.2
_PRUNE_SECONDS = 300.0
_JOIN_SECONDS = (0.5, 5.0)  # pause between two tries: first, longest
_FAREWELL_SECONDS = 1.0


class Sidecar:
    """Everything, joined."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ground = ground.lay(settings)
        self._states = states.build(
            self._ground, refused=lambda run: self._elector.write_refused(run)
        )
        self._work = work.build(
            self._ground,
            self._states,
            others_ready=lambda: any(runner.campaigning for runner in self._election.runners),
            step_down=lambda group: self._elector.resign(group, LossReason.STALE),
            trusted=lambda run: self._elector.trusts(run.group, run.ref.epoch),
        )
        self._election = Election(
            self._ground.runner_id,
            self._ground.timers,
            random.random,
            campaign=settings.election.campaign,
            rebalance=settings.election.rebalance,
        )
        self._elector = Elector(
            self._election,
            self._lock(),
            self._ground.link,
            self._work.lead,
            boottime,
            takeover_sla=settings.election.takeover_sla_seconds,
        )
        self._leadership = Leadership(
            self._elector,
            self._ground.membership,
            lambda: self._ground.who.now().groups,
            self._ground.hints.notify,
            groups=settings.groups,
            host=self._ground.host,
        )
        self._api = api.build(
            self._ground,
            self._states,
            self._leadership,
            self._work.switch,
            refused=self._elector.write_refused,
            drain=self.drain,
            drained=self._elector.stopped,
        )
        checks = Checks(self._checks(), boottime)
        self._ground.watch.on_change.append(lambda _: checks.look("app"))
        self._health = Health(
            checks,
            self._work.switch,
            readiness=settings.health.readiness,
            about=self._about,
            clock=boottime,
        )
        self._config = ConfigSync(
            PostgresSchedules(self._ground.database, self._ground.who),
            self._ground.hints,
            cluster=settings.cluster,
        )
        self._stop = asyncio.Event()
        self._campaign_changed = asyncio.Event()
        metrics.declare(
            settings.groups,
            [singleton.name for singleton in settings.singletons],
            [schedule.name for schedule in settings.schedules],
        )
        metrics.POOL_CONNECTIONS.set_function(lambda: self._ground.database.open_connections)

    # ── the flow ────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Serve, join, campaign, lead; until `stop`."""
        settings = self._settings
        log.info("sidecar_starting", version=ground.VERSION, app=settings.app.address)
        for warning in settings.warnings:
            log.warning("config_warning", warning=warning)
        try:
            await self._serve()
        finally:
            await self._close()
        log.info("sidecar_stopped")

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._serve_http(), name="http"),
                tasks.create_task(self._health.run(), name="health"),
                tasks.create_task(self._ground.hints.run(), name="hints"),
                tasks.create_task(self._ground.watch.run(), name="appwatch"),
                tasks.create_task(self._elector.run(), name="election"),
                tasks.create_task(self._api.deferreds.run(), name="deferreds"),
                tasks.create_task(self._work.pings.run(), name="pings"),
                tasks.create_task(self._join_and_stay(), name="cluster"),
                tasks.create_task(self._follow_releases(), name="releases"),
                tasks.create_task(self._follow_resignations(), name="resignations"),
            ]
            await self._api.server.start()
            self._health.servers_listen()
            log.info("api_listening", address=self._settings.api.address)
            await self._stop.wait()
            await self._elector.stopped()
            await self._api.server.stop(_FAREWELL_SECONDS)
            for task in running:
                task.cancel()

    def stop(self) -> None:
        """Drain and end; asked again, hurry."""
        hurry = self._stop.is_set()
        log.info("sidecar_stopping", hurry=hurry)
        self.drain(hurry=hurry)
        self._stop.set()

    def drain(self, *, hurry: bool = False) -> None:
        """Not ready, resign everything, compete no more."""
        self._health.drain()
        self._elector.tell(lambda now: self._election.stop(now, hurry=hurry))

    def reload(self, settings: Settings) -> None:
        """The file was read anew: schedules follow it; everything else needs a restart."""
        log.info("config_reloaded", schedules=len(settings.schedules))
        self._config.declare(settings.schedules, settings.config_revision)

    # ── joining the cluster ─────────────────────────────────────────────────────────────────────

    async def _join_and_stay(self) -> None:
        # Until the first answer nobody knows whether it is a refusal, which stays one.
        self._health.block("join", "joining the cluster: Postgres has not answered yet")
        identity = await self._joined()
        self._ground.who.known(identity)
        self._health.unblock("cluster")
        self._health.unblock("join")
        log.info("cluster_joined", groups=sorted(identity.groups))
        self._ground.watch.on_change.append(self._app_changed)
        self._elector.tell(partial(self._election.join, identity.groups))
        self._app_changed(self._ground.watch.status.healthy)
        self._config.declare(self._settings.schedules, self._settings.config_revision)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._stay(identity), name="cluster.registry")
            tasks.create_task(self._config.run(), name="cluster.config")
            tasks.create_task(self._states.sweeper.run(), name="state.sweep")
            tasks.create_task(self._tidy(), name="cluster.tidy")
            observe = self._work.switch.observe(self._settings.groups)
            tasks.create_task(observe, name="health.observe")
            if self._states.copies:
                tasks.create_task(self._states.copies.run(), name="state.copies")

    async def _joined(self) -> Identity:
        settings = self._settings
        pause, longest = _JOIN_SECONDS
        while True:
            try:
                return await self._ground.membership.join(
                    settings.cluster, settings.app.name, settings.groups
                )
            except IncompatibleSchema as error:
                self._health.block("cluster", str(error))
                if await self._migrated(error):
                    continue
            except StoreRefused as error:
                self._health.block("cluster", str(error))
                log.warning("postgres_refused", problem=str(error), reason=error.reason)
            except SidecarError as error:
                log.warning("waiting_for_postgres", problem=str(error), reason=error.reason)
            except Exception:  # whatever it was, the next try may succeed
                log.exception("join_failed")
            self._health.unblock("join")
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads retries
            pause = min(longest, pause * 2)

    async def _migrated(self, why: IncompatibleSchema) -> bool:
        """Bring the tables up to date, if that is ours to do and helps."""
        postgres = self._settings.postgres
        if postgres.migrate == "never":
            log.warning("waiting_for_migration", problem=str(why))
            return False
        try:
            applied = await migrate(postgres.direct_url.read(), postgres.schema)
        except SidecarError as error:
            log.warning("migration_failed", problem=str(error), reason=error.reason)
            return False
        except Exception:  # such as a secret whose file cannot be read just now
            log.exception("migration_failed")
            return False
        log.info("migrated", applied=applied)
        return True

    async def _stay(self, identity: Identity) -> None:
        """Keep this runner's row alive, and know who else lives."""
        while True:
            self._campaign_changed.clear()
            with _survived("registry"):
                runners = await self._ground.membership.beat(
                    identity,
                    campaigning=self._election.campaigning,
                    config_revision=self._settings.config_revision,
                )
                self._elector.tell(partial(self._election.runners_seen, runners))
            looking = self._election.looks_around(boottime())
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_SECONDS if looking else _REGISTRY_SECONDS):
                    await self._campaign_changed.wait()

    async def _tidy(self) -> None:
        """What belongs to nobody in particular; pods take turns by chance."""
        while True:
            await asyncio.sleep(_PRUNE_SECONDS * (0.5 + random.random()))  # noqa: S311
            with _survived("runs.leftovers"):
                await self._work.leftovers.tidy()
            with _survived("deferreds.prune"):
                await self._api.deferreds.prune(self._settings.history.keep_seconds)

    # ── what is told to the election ────────────────────────────────────────────────────────────

    async def _follow_releases(self) -> None:
        releases = self._ground.hints.subscribe("release")
        while True:
            await releases.wait()
            for detail in releases.details():
                with suppress(ValueError):
                    self._elector.tell(partial(self._election.released_elsewhere, int(detail)))

    async def _follow_resignations(self) -> None:
        requests = self._ground.hints.subscribe("resign")
        while True:
            await requests.wait()
            self._elector.tell(lambda _: self._election.asked_to_resign())

    def _app_changed(self, healthy: bool) -> None:
        self._elector.tell(partial(self._election.app_is, healthy))
        self._campaign_changed.set()

    # ── health ──────────────────────────────────────────────────────────────────────────────────

    async def _serve_http(self) -> None:
        await http_server.serve(self._settings.http.address, self._health, metrics.REGISTRY)

    def _checks(self) -> list[Check]:
        checks = [
            Check("app", self._look_at_app, interval_seconds=1.0, failures=1),
            # The registry asks every few seconds; only when that stays silent is Postgres probed.
            Check(
                "postgres",
                partial(self._ground.database.probe, fresh_seconds=_FRESH_SECONDS),
                interval_seconds=1.0,
                limit_seconds=1.0,
            ),
        ]
        if self._states.cache:
            checks.append(Check("redis", self._states.cache.ping))
        return checks

    async def _look_at_app(self) -> float:
        status = self._ground.watch.status
        if not status.healthy:
            raise AppUnavailable(status.problem)
        return status.latency_seconds

    def _about(self) -> Mapping[str, Any]:
        now = boottime()
        return {
            "version": ground.VERSION,
            "cluster": self._settings.cluster,
            "runner_id": self._ground.runner_id,
            "host": self._ground.host,
            "leadership": [
                {
                    "group": view.group,
                    "is_leader": view.is_leader,
                    "leader": view.runner_id or None,
                    "epoch": view.epoch,
                    "trusted_ms": round(max(0.0, view.trusted_until - now) * 1000),
                    "draining": view.draining,
                }
                for view in self._leadership.all()
            ],
        }

    # ── beginning and end ───────────────────────────────────────────────────────────────────────

    def _lock(self) -> LeaderLock:
        postgres = self._settings.postgres
        return LeaderLock(
            postgres.direct_url.read,
            schema=postgres.schema,
            channel=self._ground.channel,
            runner_id=self._ground.runner_id,
            host=self._ground.host,
            timers=self._ground.timers,
        )

    async def _close(self) -> None:
        closings: dict[str, Callable[[], Awaitable[object]]] = {
            "api": partial(self._api.server.stop, 0),  # again, and at once, where a task failed
            "ids": self._api.ids.close,
            "registry": self._ground.membership.leave,
            "traces": self._ground.tracer.close,
            "database": self._ground.database.close,
            "app": self._ground.link.close,
        }
        if self._states.cache:
            closings["redis"] = self._states.cache.close
        for name, close in closings.items():
            with _survived(name):
                await close()


@contextmanager
def _survived(what: str) -> Iterator[None]:
    """A failure here is told, and is nobody else's."""
    try:
        yield
    except SidecarError as error:
        log.info("left_undone", what=what, problem=str(error), reason=error.reason)
    except Exception:
        log.exception("left_undone", what=what)
