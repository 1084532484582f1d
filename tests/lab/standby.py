"""A second Postgres that follows the first by streaming replication, and can take its place."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg

from devtools.servers import PostgresServer, ServerFailed
from tests.lab.processes import wait_until
from tests.lab.proxy import FaultProxy


class HotStandby(PostgresServer):
    """Copied from `primary` when it starts; `wire` carries what it hears of it from then on."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(primary.binaries)
        self.primary = primary
        self._password = urlsplit(primary.url).password or ""
        self.wire = FaultProxy.before(primary.url)

    def synchronize(self) -> None:
        """From now on the primary acknowledges no commit that this standby does not have."""
        self._configure("SET synchronous_standby_names = '*'")
        wait_until(self.is_synchronous, 10, "the standby to be synchronous")

    def is_synchronous(self) -> bool:
        """Whether commits on the primary wait for this standby, and it answers."""
        return bool(self._ask("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def promote(self) -> None:
        """Be a primary, on a new timeline, with what has arrived."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT pg_promote(wait_seconds => 30)").fetchone()
        assert row == (True,), "not promoted"

    def close(self) -> None:
        super().close()
        self.wire.stop()

    def _configure(self, change: str) -> None:
        self._ask(f"ALTER SYSTEM {change}")
        self._ask("SELECT pg_reload_conf()")

    def _ask(self, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = local")
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def _prepare(self) -> None:
        self.wire.start()
        copy = self._spawn(
            [self.binaries.bin_dir / "pg_basebackup", "--pgdata", self.data_dir, "--dbname",
             self.primary.url, "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"]
        )  # fmt: skip
        if copy.wait() != 0:
            raise ServerFailed(f"pg_basebackup failed\n{self._log_tail()}")
        self._write(self.data_dir / "standby.signal", "")
        settings = self.data_dir / "postgresql.auto.conf"  # the primary's; the last word counts
        own = f"port = {self.port}\nprimary_conninfo = '{self.wire.url(self.primary.url)}'\n"
        self._write(settings, settings.read_text() + own)
