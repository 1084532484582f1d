"""Real Postgres and Redis (or Valkey) servers on this machine, without Docker.

`baton demo` and the tests start them. Guarantees: a server listens on loopback only, with a
random password that no process list shows; it ends with the process (more exactly: the thread) that
started it, however that ends; its directory goes with it; nothing of the system (users, modes of
directories that are not ours) is changed.
"""

from sidecar.cli.embedded.binaries import (
    PostgresBinaries,
    ServerNotFound,
    postgres_binaries,
    redis_binary,
)
from sidecar.cli.embedded.postgres import PostgresServer, postgres_at
from sidecar.cli.embedded.redis import RedisServer, redis_at
from sidecar.cli.embedded.server import ServerFailed, free_port

__all__ = [
    "PostgresBinaries",
    "PostgresServer",
    "RedisServer",
    "ServerFailed",
    "ServerNotFound",
    "free_port",
    "postgres_at",
    "postgres_binaries",
    "redis_at",
    "redis_binary",
]
