"""A Postgres server with a new data directory, on loopback TCP, with a random password (scram).

Postgres refuses to run as root; when started by root, it runs as `nobody`. Durability is as in
production (fsync on) unless a setting changes it.
"""

from __future__ import annotations

import ctypes
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from devtools.servers.binaries import PostgresBinaries, postgres_binaries
from devtools.servers.server import Server, ServerFailed

_USER = "baton"
_IPC_RMID = 0
_LIBC = ctypes.CDLL(None)

_SETTINGS: Mapping[str, str | int] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": 100,
    # In the data directory, so that a killed server leaves no file in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
}


class PostgresServer(Server):
    """A Postgres server for the length of the `with` block; `stop` and `kill` keep its data."""

    name = "postgres"
    refuses_root = True
    death_signal = signal.SIGQUIT  # "immediate": its processes exit at once and clean up
    stop_signals: Mapping[str, signal.Signals] = {
        "smart": signal.SIGTERM,
        "fast": signal.SIGINT,
        "immediate": signal.SIGQUIT,
    }

    def __init__(
        self,
        binaries: PostgresBinaries | None = None,
        settings: Mapping[str, str | int] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(port)
        found = binaries or postgres_binaries()
        self.binaries = found if self._owner is None else found.unprivileged()
        self._settings = {**_SETTINGS, **(settings or {}), "port": self.port}
        self._password = secrets.token_urlsafe(16)

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The URL of one of its databases, as a superuser."""
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def kill(self) -> None:
        super().kill()
        self._free_shared_memory()

    def _prepare(self) -> None:
        password_file = self.directory / "password"
        self._write(password_file, self._password)
        initdb = self._spawn(
            [self.binaries.bin_dir / "initdb", "--pgdata", self.data_dir, "--username", _USER,
             "--pwfile", password_file, "--auth", "scram-sha-256", "--encoding", "UTF8",
             "--locale", "C", "--no-sync", "--no-instructions"]
        )  # fmt: skip
        if initdb.wait() != 0:
            raise ServerFailed(f"initdb failed\n{self._log_tail()}")
        password_file.unlink()
        self._write(
            self.data_dir / "postgresql.auto.conf",
            "".join(f"{key} = {_quoted(value)}\n" for key, value in self._settings.items()),
        )

    def _command(self) -> Sequence[str | Path]:
        return [self.binaries.bin_dir / "postgres", "-D", self.data_dir]

    def _is_ready(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _free_shared_memory(self) -> None:
        """A killed postmaster leaves a System V memory segment, named in its pid file."""
        if self._directory is None:
            return
        try:
            lines = (self.data_dir / "postmaster.pid").read_text().splitlines()
            _LIBC.shmctl(int(lines[6].split()[1]), _IPC_RMID, None)
        except (FileNotFoundError, IndexError, ValueError):
            return


@contextmanager
def postgres_url(url: str = "", **settings: str | int) -> Iterator[str]:
    """`url` if it is not empty, else the URL of a new server for the length of the block."""
    if url:
        yield url
        return
    with PostgresServer(settings=settings) as server:
        yield server.url


def _quoted(value: str | int) -> str:
    return "'" + str(value).replace("'", "''") + "'"
