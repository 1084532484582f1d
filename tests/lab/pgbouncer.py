"""A real PgBouncer in transaction mode (`apt-get install pgbouncer`)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from devtools.servers.server import Server

_BINARY = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def why_not() -> str:
    """Why there can be no pooler here, in one line; empty if there can."""
    return "" if _BINARY else "a pooler needs PgBouncer (apt-get install pgbouncer)"


class PgBouncer(Server):
    """Between its clients and the server of `database_url`, with `size` connections for all."""

    name = "pgbouncer"
    refuses_root = True

    def __init__(self, database_url: str, size: int = 4) -> None:
        super().__init__()
        self._server, self._size = urlsplit(database_url), size

    @property
    def url(self) -> str:
        user = self._server.netloc.rpartition("@")[0]
        return self._server._replace(netloc=f"{user}@127.0.0.1:{self.port}").geturl()

    def _command(self) -> Sequence[str | Path]:
        assert _BINARY is not None, why_not()
        users, file = self.directory / "users", self.directory / "pgbouncer.ini"
        self._write(users, f'"{self._server.username}" "{self._server.password}"\n')
        self._write(
            file,
            f"""[databases]
* = host=127.0.0.1 port={self._server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {self._size}
unix_socket_dir =
""",
        )
        return [Path(_BINARY), file]

    def _is_ready(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True
