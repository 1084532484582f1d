"""Where a fault happens: servers, replicas under load, probes; and the evidence it leaves.

Every replica's app writes and reads State all the time; three schedules tick each second (`each`
catches up on all, `newest` on the latest, `sum` counts its successes in its state), and a singleton
counts in its own state. The sidecars log in as a plain role, so that limits on connections count.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg

from devtools.servers import PostgresServer, RedisServer
from tests.acceptance.faults import collected
from tests.lab import check_health, footprint, netns
from tests.lab.cluster import Cluster
from tests.lab.evidence import Evidence, Footprint, Window
from tests.lab.faketime import SteppedPostgres, WallClock
from tests.lab.netns import Namespace
from tests.lab.pgbouncer import PgBouncer
from tests.lab.probes import Probes
from tests.lab.processes import Child, boottime, wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.standby import HotStandby

CACHE_SECONDS = 3
CONFIG: Mapping[str, Any] = {
    "redis": {"ttl": f"{CACHE_SECONDS}s"},
    "election": {"drain": "5s"},
    "singletons": [{"name": "counter", "restart_after": "200ms"}],
    "schedules": [
        # Stale after twice the expected interval: what a takeover may need is no staleness.
        {"name": "each", "every": "1s", "catch_up": "all", "catch_up_max": 1000,
         "expected_interval": "5s"},
        {"name": "newest", "every": "1s", "expected_interval": "5s"},
        {"name": "sum", "every": "1s", "overlap": "queue", "expected_interval": "5s"},
    ],
}  # fmt: skip
BEHAVIOUR = {"counter": "count:0.2", "sum": "counter"}
_QUICK: Mapping[str, str | int] = {"fsync": "off", "max_connections": 60}


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault needs: how many replicas, which of them under load, what kind of servers."""

    replicas: int = 3
    loaded: int = 3
    settings: Mapping[str, str | int] = field(default_factory=dict)
    server: type[PostgresServer] = PostgresServer
    namespaces: bool = False
    pooler: bool = False  # PgBouncer stands between all pools and Postgres
    stepped: str = ""  # whose wall clock can be stepped: "sidecars" or "postgres"
    clock_seconds: int = 0  # by how much that clock is wrong from the beginning
    start_seconds: float = 60.0
    before_start: Callable[[Arena], None] | None = None  # the servers run, no replica does yet
    prepare: Callable[[Arena], None] | None = None  # done when the tables are there


class Arena:
    """One fault's world; `victim` is the replica that the current round is about."""

    def __init__(self, scene: Scene, directory: Path) -> None:
        self.scene, self.directory = scene, directory
        self.windows: list[Window] = []
        self.notes: dict[str, Any] = {}
        self.before: list[Footprint] = []
        self.kept: list[Any] = []  # what a fault opened and its healing closes
        self._open = ExitStack()

    # ── beginning and end ───────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    def _start(self) -> None:
        self.clock = WallClock(self.directory / "clock")
        self.clock.step(self.scene.clock_seconds)
        self.directory.chmod(0o755)
        self.postgres = self._open.enter_context(self._postgres())
        bind = "0.0.0.0" if self.scene.namespaces else "127.0.0.1"
        self.redis = self._open.enter_context(RedisServer(settings={"bind": bind}))
        self.url = _plain_role(self.postgres)
        if self.scene.namespaces:
            netns.admit(self.postgres)
        if self.scene.pooler:
            self.pooler = self._open.enter_context(PgBouncer(self.url))
        load = self.directory / "load"
        load.mkdir()
        pool_url = self.pooler.url if self.scene.pooler else ""
        setup = Setup(self.url, self.redis.url, config=CONFIG, pool_url=pool_url, load=load)
        places = [
            self._open.enter_context(Namespace())
            for _ in range(self.scene.replicas if self.scene.namespaces else 0)
        ]
        self.cluster = Cluster(self.directory / "lab", self.scene.replicas, setup, places)
        for number, replica in enumerate(self.cluster.replicas):
            replica.tell(execute=BEHAVIOUR, load=number < self.scene.loaded)
            if self.scene.stepped == "sidecars":
                replica.sidecar.env = self.clock.environment
        if self.scene.before_start:
            self.scene.before_start(self)
        self._open.enter_context(self.cluster)
        self.victim = self.cluster.wait_for_leader(timeout=self.scene.start_seconds)
        self._warm_up()

    def _warm_up(self) -> None:
        """All ready, ticks flowing, everybody's writes acknowledged; then nothing new is opened."""
        for replica in self.cluster.replicas:
            wait_until(
                lambda r=replica: r.http("/readyz")[0] == 200,  # type: ignore[misc]
                self.scene.start_seconds,
                replica.describe,
            )
        if self.scene.prepare:
            self.scene.prepare(self)
        self.cluster.wait_for("execute", 5, name="each", timeout=30)
        loaded = self.cluster.replicas[: self.scene.loaded]
        wait_until(
            lambda: {op.app for op in self.ops() if op.kind == "own"} >= {r.name for r in loaded},
            30,
            "every app to write",
        )
        time.sleep(2)
        self.before = self.footprints()
        self.probes = self._open.enter_context(Probes(loaded))

    def _postgres(self) -> PostgresServer:
        settings = {**_QUICK, **self.scene.settings}
        if self.scene.namespaces:
            settings["listen_addresses"] = "*"
        if self.scene.stepped == "postgres":
            return SteppedPostgres(self.clock, settings)
        return self.scene.server(settings=settings)

    # ── a round ─────────────────────────────────────────────────────────────────────────────────

    def wait_well(self, seconds: float) -> None:
        """Somebody leads and everybody is ready, or the time is up: the judge will say."""

        def well() -> bool:
            ready = all(r.http("/readyz")[0] == 200 for r in self.probed)
            return ready and self.cluster.leader() is not None

        with suppress(AssertionError):
            wait_until(well, seconds, "well")

    @property
    def probed(self) -> list[Replica]:
        return self.cluster.replicas[: self.scene.loaded]

    def end(self, child: Child) -> None:
        """SIGTERM, and wait: it must end with 0."""
        child.terminate()
        code = child.wait(30)
        assert code == 0, f"{child.command} ended with {code}\n{child.output[-2000:]}"

    def revive(self) -> None:
        """Start every process that has ended."""
        for replica in self.cluster.replicas:
            for child in (replica.app, replica.sidecar):
                if not child.running:
                    child.start()

    def add_standby(self) -> HotStandby:
        self.standby = self._open.enter_context(HotStandby(self.postgres))
        return self.standby

    def follow(self, server: PostgresServer, replicas: Sequence[Replica]) -> None:
        """The service name of Postgres leads these replicas' new connections to this server."""
        for replica in replicas:
            for wire in (replica.session_wire, replica.pool_wire):
                assert wire is not None
                wire.target = ("127.0.0.1", server.port)

    def fail_over(self) -> None:
        """The standby is the primary now, for everybody."""
        self.postgres = self.standby
        self.url = _at(self.url, self.standby.port)
        self.follow(self.standby, self.cluster.replicas)

    def sql(self, text: str, *parameters: object) -> list[tuple[Any, ...]]:
        """As the superuser, in the database of the sidecars."""
        database = urlsplit(self.url).path.removeprefix("/")
        return collected.rows(self.postgres.url_of(database), text, *parameters)

    # ── what is seen ────────────────────────────────────────────────────────────────────────────

    def footprints(self) -> list[Footprint]:
        found = []
        for replica in self.cluster.replicas:
            if replica.sidecar.running:
                pid = replica.sidecar.pid
                wires = (replica.session_wire, replica.pool_wire)
                ports = {w.port for w in wires if w} or {self.postgres.port}
                cache = {replica.redis_wire.port if replica.redis_wire else self.redis.port}
                found.append(
                    Footprint(
                        replica.name, pid, footprint.connections(pid, ports),
                        _lasting(pid, cache), footprint.descriptors(pid),
                        footprint.megabytes(pid),
                    )
                )  # fmt: skip
        return found

    def ops(self) -> list[Any]:
        folder = self.directory / "load"
        return collected.ops(folder.glob("*.jsonl"))

    def evidence(self) -> Evidence:
        """Once everything that is due has ended, or could have."""
        until = self._settled()
        self.wait_well(check_health.RECOVERY_SECONDS)
        self.probes.ask_all()  # their last answers may be older than what we just saw
        snapshot_at = boottime()
        ticks, commits, values = collected.database(self.url)
        return Evidence(
            events=self.cluster.events(),
            ops=collected.as_of(self.ops(), snapshot_at),
            ticks=ticks,
            settled_until=until,
            commits=commits,
            values=values,
            answers=list(self.probes.answers),
            windows=self.windows,
            before=self.before,
            after=self.footprints(),
            stalls=self.cluster.stalls.gaps,
            broken=self._broken(),
        )

    def _settled(self) -> datetime:
        """A time by which all ticks were claimed; waits until they have ended."""
        (now,) = self.sql("SELECT date_trunc('second', clock_timestamp()) - interval '1 s'")[0]
        open_ticks = (
            "SELECT count(*) FROM baton.run"
            " WHERE kind = 'schedule' AND tick <= %s AND outcome IS NULL"
        )
        claimed = "SELECT min(watermark) FROM baton.schedule WHERE retired_at IS NULL"
        with suppress(AssertionError):
            wait_until(
                lambda: self.sql(claimed)[0][0] >= now and self.sql(open_ticks, now)[0][0] == 0,
                30,
                "the ticks to end",
            )
        assert isinstance(now, datetime)
        return now

    def _broken(self) -> list[str]:
        found = []
        for replica in self.cluster.replicas:
            for what, child in (("app", replica.app), ("sidecar", replica.sidecar)):
                if not child.running:
                    found.append(
                        f"{replica.name}: its {what} ended by itself: {child.output[-800:]}"
                    )
            lines = replica.sidecar.output.splitlines()
            found += [f"{replica.name}: {line[:600]}" for line in lines if _unforeseen(line)]
        return found


def _unforeseen(line: str) -> bool:
    """A traceback, in a log line or beside the log."""
    return "Traceback (most recent call last)" in line


def _at(url: str, port: int) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()


def _plain_role(server: PostgresServer) -> str:
    """A database of its own for a role without any privilege; its URL."""
    password = secrets.token_hex(8)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE lab LOGIN PASSWORD '{password}'".encode())
        connection.execute("CREATE DATABASE lab OWNER lab")
    return f"postgresql://lab:{password}@127.0.0.1:{server.port}/lab"


def _lasting(pid: int, ports: set[int]) -> int:
    """Connections that stay: one that is just being replaced is there twice for an instant."""
    counts = []
    for _ in range(5):
        counts.append(footprint.connections(pid, ports))
        time.sleep(0.1)
    return min(counts)
