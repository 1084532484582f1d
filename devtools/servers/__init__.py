"""Real Postgres and Redis (or Valkey) servers on this machine, without Docker.

`baton demo` and the tests start them. Guarantees: a server listens on loopback only, with a random
password that no process list shows; it ends with the thread that started it, even if that is
killed, and its directory is removed; it changes nothing on the system (no users, no modes of
existing directories).
"""

from devtools.servers.binaries import (
    PostgresBinaries,
    ServerNotFound,
    postgres_binaries,
    redis_binary,
)
from devtools.servers.postgres import PostgresServer, postgres_url
from devtools.servers.redis import RedisServer, redis_url
from devtools.servers.server import ServerFailed, free_port

__all__ = [
    "PostgresBinaries",
    "PostgresServer",
    "RedisServer",
    "ServerFailed",
    "ServerNotFound",
    "free_port",
    "postgres_binaries",
    "postgres_url",
    "redis_binary",
    "redis_url",
]
