"""One sidecar process, from start to stop.

Guarantee: a stop happens in this order: not ready, no new work, drain, OnLoseLeadership, clean
release, stop the API, close the rest.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import structlog

from sidecar import maintenance, metrics
from sidecar.adapters.clock import boottime
from sidecar.adapters.http import probes
from sidecar.adapters.memory import MemoryWatch
from sidecar.adapters.postgres.leader_lock import LeaderLock
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.app import api, infrastructure, job_work, leader_work, states
from sidecar.background import failures_logged
from sidecar.config import Settings
from sidecar.config.reload import Reload
from sidecar.election.elector import Elector
from sidecar.election.hints import follow_releases, follow_resign_requests
from sidecar.election.leadership import Leadership
from sidecar.health.about import About
from sidecar.health.checks import Check, Checks
from sidecar.health.readiness import Health
from sidecar.membership import ClusterMembership
from sidecar.model.election import Election
from sidecar.scheduling.config_sync import ConfigSync
from sidecar.scheduling.declarations import CodeDeclarations

log = structlog.get_logger()

# Slightly longer than REGISTRY_SECONDS, so that a healthy Postgres is not probed. Short enough that
# a silent Postgres, after two failed probes, is reported within 10 s.
_FRESH_SECONDS = 5.2
_STOP_API_SECONDS = 1.0


class Sidecar:
    """Builds every object and starts every task."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.config = Reload(settings, self._apply)
        self._infrastructure = infrastructure.build(settings)
        self._election = Election(
            self._infrastructure.runner_id,
            self._infrastructure.timers,
            random.random,
            campaign=settings.election.campaign,
            rebalance=settings.election.rebalance,
            losses=self._infrastructure.losses,
        )
        self._elector = Elector(
            self._election,
            self._lock(),
            self._infrastructure.transport,
            boottime,
            takeover_sla=settings.election.takeover_sla_seconds,
        )
        self._states = states.build(self._infrastructure, self._elector.authorities)
        self._work = leader_work.build(self._infrastructure, self._states, self._elector)
        self._leadership = Leadership(
            self._elector,
            self._infrastructure.membership,
            lambda: self._infrastructure.identity.now().groups,
            self._infrastructure.hints.notify,
            groups=settings.groups,
            host=self._infrastructure.host,
        )
        schedules = PostgresSchedules(
            self._infrastructure.shared_database, self._infrastructure.identity
        )
        hints = self._infrastructure.hints
        self._sync = ConfigSync(schedules, hints, cluster=settings.cluster)
        self._code_sync = ConfigSync(schedules, hints, cluster=settings.cluster, source="code")
        self._declarations = CodeDeclarations(
            self._code_sync,
            self._infrastructure.singletons,
            partial(metrics.declare, ()),
            cluster=settings.cluster,
            groups=settings.groups,
        )
        self._api = api.build(
            self._infrastructure,
            self._states,
            self._leadership,
            self._work.switch,
            warnings=self._warnings,
            authorities=self._elector.authorities,
            declare=self._declarations.declare,
            drain=self.drain,
            drained=self._elector.stopped,
        )
        self._jobs = job_work.build(
            self._infrastructure,
            self._states,
            self._elector.authorities,
            leads_first_group=lambda: self._leadership.get(settings.groups[0]).is_leader,
            recorded=self._api.jobs.watches.look,
        )
        self._api.jobs.wakeup.on_submit.append(self._jobs.claimer.wake)
        self._health = self._build_health()
        self._membership = self._build_membership()
        self._stop = asyncio.Event()
        metrics.declare(
            settings.groups,
            [singleton.name for singleton in settings.singletons],
            [schedule.name for schedule in settings.schedules],
        )
        metrics.POOL_CONNECTIONS.set_function(
            lambda: self._infrastructure.database.open_connections
        )

    # ── start and stop ──────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Serve, join, campaign and lead until `stop` is called."""
        settings = self._settings
        log.info("sidecar_starting", version=infrastructure.VERSION, app=settings.app.address)
        for warning in settings.warnings:
            log.warning("config_warning", warning=warning)
        try:
            await self._serve()
        finally:
            await self._close()
        log.info("sidecar_stopped")

    async def _serve(self) -> None:
        settings, hints = self._settings, self._infrastructure.hints
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._serve_http(), name="http"),
                tasks.create_task(self._health.run(), name="health"),
                tasks.create_task(hints.run(), name="hints"),
                tasks.create_task(self._infrastructure.secrets.run(), name="secrets"),
                tasks.create_task(self._infrastructure.watch.run(), name="app_watch"),
                tasks.create_task(self._elector.run(while_leading=self._work.run), name="election"),
                tasks.create_task(self._api.deferreds.run(), name="deferreds"),
                tasks.create_task(self._api.jobs.watches.run(), name="jobs.watches"),
                tasks.create_task(self._work.pings.run(), name="pings"),
                *(
                    tasks.create_task(self._renew_trust(group), name=f"trust.{group}")
                    for group in self._settings.groups
                ),
                tasks.create_task(MemoryWatch(self._api.server.admission).run(), name="memory"),
                tasks.create_task(self._join_and_stay(), name="cluster"),
                tasks.create_task(follow_releases(hints, self._elector), name="releases"),
                tasks.create_task(
                    follow_resign_requests(hints, self._elector), name="resign_requests"
                ),
            ]
            if settings.web.address:
                running.append(tasks.create_task(self._serve_web(), name="web"))
            await self._api.server.start()
            self._health.servers_listen()
            log.info("api_listening", address=settings.api.address)
            await self._stop.wait()
            await self._elector.stopped()
            await self._jobs.worker.stopped()
            await self._api.server.stop(_STOP_API_SECONDS)
            for task in running:
                task.cancel()

    async def _join_and_stay(self) -> None:
        settings, watch = self._settings, self._infrastructure.watch
        identity = await self._membership.join()
        self._infrastructure.identity.set(identity)
        watch.on_change.append(self._app_changed)
        self._elector.handle(partial(self._election.join, identity.groups))
        self._app_changed(watch.status.healthy)
        self._apply(settings)
        keep_seconds = settings.history.keep_seconds
        cleanups: dict[str, Callable[[], Awaitable[object]]] = {
            "abandoned_groups": self._work.abandoned_groups.clean_up,
            "deferreds": partial(self._api.deferreds.prune, keep_seconds),
            "jobs": self._jobs.retention.clean_up,
        }
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._membership.stay(identity), name="cluster.registry")
            tasks.create_task(self._sync.run(), name="cluster.config")
            if settings.jobs.enabled:
                tasks.create_task(self._jobs.run(), name="jobs.worker")
            tasks.create_task(self._code_sync.run(), name="cluster.code")
            tasks.create_task(self._api.jobs.queues.run(), name="jobs.queues")
            tasks.create_task(self._api.jobs.depths.run(), name="jobs.depths")
            tasks.create_task(self._states.sweeper.run(), name="state.sweep")
            tasks.create_task(maintenance.run(cleanups), name="maintenance")
            observe = self._work.switch.observe(settings.groups)
            tasks.create_task(observe, name="health.observe")
            if self._states.copies:
                tasks.create_task(self._states.copies.run(), name="state.copies")

    def stop(self) -> None:
        """Drain, then end the process; a second call does not wait for running work."""
        hurry = self._stop.is_set()
        log.info("sidecar_stopping", hurry=hurry)
        self.drain(hurry=hurry)
        self._stop.set()

    def drain(self, *, hurry: bool = False) -> None:
        """Become not ready, resign all groups and stop campaigning."""
        self._health.drain()
        self._elector.handle(lambda now: self._election.stop(now, hurry=hurry))
        self._jobs.worker.drain(0.0 if hurry else self._settings.election.drain_seconds)

    def _apply(self, settings: Settings) -> None:
        self._sync.declare(settings.schedules, settings.config_revision)
        self._api.jobs.queues.declare(settings.jobs.queues)

    # ── events for the election ─────────────────────────────────────────────────────────────────

    def _app_changed(self, healthy: bool) -> None:
        for problem in self._unhandled() if healthy else ():
            log.warning("handler_missing", problem=problem)
        self._elector.handle(partial(self._election.app_health_changed, healthy))
        self._membership.beat_soon()

    async def _renew_trust(self, group: str) -> None:
        """Send each renewal of the lease to the attached process that leads."""
        async for view in self._leadership.watch(group):
            self._infrastructure.transport.renew(view)

    # ── health ──────────────────────────────────────────────────────────────────────────────────

    async def _serve_http(self) -> None:
        await probes.serve(self._settings.http.address, self._health, metrics.REGISTRY)

    async def _serve_web(self) -> None:
        from sidecar.adapters.http import web  # only pods that serve it pay for it

        await web.serve(
            self._settings.web.address,
            self._api.server,
            readers=self._api.readers(),
            dashboard=self._settings.web.dashboard,
            cluster=self._settings.cluster,
            version=infrastructure.VERSION,
            listening=lambda address: log.info("web_listening", address=address),
        )

    def _checks(self) -> list[Check]:
        checks = [
            Check("app", self._infrastructure.watch.check, interval_seconds=1.0, failures=1),
            # Postgres is probed only if the heartbeats of the registry are not answered.
            Check(
                "postgres",
                partial(self._infrastructure.database.probe, fresh_seconds=_FRESH_SECONDS),
                interval_seconds=1.0,
                limit_seconds=1.0,
            ),
        ]
        if self._states.cache:
            checks.append(Check("redis", self._states.cache.ping))
        return checks

    def _build_health(self) -> Health:
        checks = Checks(self._checks(), boottime)
        self._infrastructure.watch.on_change.append(lambda _: checks.look("app"))
        about = About(
            self._leadership,
            boottime,
            version=infrastructure.VERSION,
            cluster=self._settings.cluster,
            runner_id=self._infrastructure.runner_id,
            host=self._infrastructure.host,
            processes=self._infrastructure.transport.described,
        )
        return Health(
            checks,
            self._work.switch,
            readiness=self._settings.health.readiness,
            about=about,
            warnings=self._warnings,
            backlogs=self._work.backlogs.all,
            clock=boottime,
        )

    def _warnings(self) -> Iterator[str]:
        yield from self.config.warnings()
        yield from self._infrastructure.secrets.problems()
        yield from self._work.backlogs.warnings()
        yield from self._unhandled()

    def _unhandled(self) -> Iterator[str]:
        """Declared work that the attached app has no handler for."""
        names = [("singleton", each.name) for each in self._infrastructure.singletons]
        names += [("schedule", each.name) for each in self._settings.schedules]
        for kind, name in names:
            if problem := self._infrastructure.transport.unhandled(kind, name):
                yield problem

    # ── parts ───────────────────────────────────────────────────────────────────────────────────

    def _lock(self) -> LeaderLock:
        postgres = self._settings.postgres
        return LeaderLock(
            self._infrastructure.direct_url,
            schema=postgres.schema,
            channel=self._infrastructure.channel,
            runner_id=self._infrastructure.runner_id,
            host=self._infrastructure.host,
            timers=self._infrastructure.timers,
        )

    def _build_membership(self) -> ClusterMembership:
        settings = self._settings
        postgres = settings.postgres

        async def migrate_tables() -> object:
            return await migrate(self._infrastructure.direct_url(), postgres.schema)

        return ClusterMembership(
            self._infrastructure.membership,
            gate=self._health,
            elector=self._elector,
            election=self._election,
            clock=boottime,
            cluster=settings.cluster,
            app_name=settings.app.name,
            groups=settings.groups,
            config_revision=settings.config_revision,
            migrate=None if postgres.migrate == "never" else migrate_tables,
            healthy=lambda: self._infrastructure.watch.status.healthy,
        )

    async def _close(self) -> None:
        closers: dict[str, Callable[[], Awaitable[object]]] = {
            "api": partial(self._api.server.stop, 0),  # not stopped yet if a task failed
            "ids": self._api.ids.close,
            "registry": self._infrastructure.membership.leave,
            "traces": self._infrastructure.tracer.close,
            "database": self._infrastructure.database.close,
            "reports": self._infrastructure.reports_database.close,
            "app": self._infrastructure.link.close,
        }
        if self._states.cache:
            closers["redis"] = self._states.cache.close
        for name, close in closers.items():
            with failures_logged(name):
                await close()
