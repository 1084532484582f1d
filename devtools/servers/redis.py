"""A Redis (or Valkey) server on loopback, with a random password and no persistence."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from devtools.servers.binaries import redis_binary
from devtools.servers.server import Server


class RedisServer(Server):
    """A Redis server for the length of the `with` block; `stop` and `kill` lose its data."""

    name = "redis"
    stop_signals: Mapping[str, signal.Signals] = {"fast": signal.SIGTERM}

    def __init__(
        self,
        binary: Path | None = None,
        settings: Mapping[str, str | int] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(port)
        self.binary = binary or redis_binary()
        self._password = secrets.token_urlsafe(16)
        self._settings: dict[str, str | int] = {
            "bind": "127.0.0.1",
            "port": self.port,
            "requirepass": self._password,
            "save": '""',
            "appendonly": "no",
            **(settings or {}),
        }

    @property
    def url(self) -> str:
        return self.url_of(0)

    def url_of(self, database: int) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self.port}/{database}"

    def _command(self) -> Sequence[str | Path]:
        # In a file, because a process list shows the arguments and so the password.
        file = self.directory / "redis.conf"
        settings = {"dir": self.data_dir, **self._settings}
        self._write(file, "".join(f"{key} {value}\n" for key, value in settings.items()))
        return [self.binary, file]

    def _is_ready(self) -> bool:
        client = redis.Redis.from_url(self.url, socket_timeout=5, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()


@contextmanager
def redis_url(url: str = "") -> Iterator[str]:
    """`url` if it is not empty, else the URL of a new server for the length of the block."""
    if url:
        yield url
        return
    with RedisServer() as server:
        yield server.url
