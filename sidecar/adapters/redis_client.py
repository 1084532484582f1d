"""Clients for every form of Redis URL: one server, a socket file, Sentinel, Cluster; with TLS or
not.

Guarantee: no client ever repeats a command on its own. redis-py's default of three retries turns a
limit of 0.1 s into seconds; the circuit breaker above decides when to try again.

redis-py is imported when a client is made: a sidecar without a cache does not pay for it.
"""

import re
import sys
from typing import Any
from urllib.parse import urlsplit

_CONNECTIONS_MAX = 8
_PORT = 6379
_SENTINEL_PORT = 26379


def redis_client(url: str, seconds: float) -> tuple[Any, list[Any]]:
    """A redis.asyncio client whose socket operations end after `seconds`, and what to close."""
    _import_alone()
    match = re.match(r"(rediss?)\+(sentinel|cluster)://", url)
    if match is None:
        client = _single(url, seconds)
        return client, [client]
    options = _options(url, match[1], seconds)
    hosts = _hosts(url, _SENTINEL_PORT if match[2] == "sentinel" else _PORT)
    if match[2] == "cluster":
        client = _cluster(hosts, options)
        return client, [client]
    return _sentinel(hosts, urlsplit(url).path, options)


def _import_alone() -> None:
    """redis-py would load OpenTelemetry, 60 modules, for metrics of its own that nobody reads."""
    if "opentelemetry" in sys.modules:
        return  # tracing is on: it is paid for
    sys.modules["opentelemetry"] = None  # type: ignore[assignment]  # cannot be imported, for now
    try:
        import redis.asyncio  # noqa: F401
    finally:
        del sys.modules["opentelemetry"]


def _limits(seconds: float) -> dict[str, Any]:
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "max_connections": _CONNECTIONS_MAX,
        "protocol": 2,
    }


def _single(url: str, seconds: float) -> Any:
    from redis.asyncio import Redis

    return Redis.from_url(url, **_limits(seconds))


def _cluster(hosts: list[tuple[str, int]], options: dict[str, Any]) -> Any:
    from redis.asyncio.cluster import ClusterNode, RedisCluster

    nodes = [ClusterNode(host, port) for host, port in hosts]
    # Part of a cluster is better than none: keys of the missing part are read from Postgres.
    return RedisCluster(
        startup_nodes=nodes,
        require_full_coverage=False,
        **options,
    )


def _sentinel(
    hosts: list[tuple[str, int]], path: str, options: dict[str, Any]
) -> tuple[Any, list[Any]]:
    from redis.asyncio.sentinel import Sentinel

    service, _, database = path.strip("/").partition("/")
    names = ("retry", "socket_timeout", "socket_connect_timeout", "protocol", "ssl")
    own = {name: value for name, value in options.items() if name in names}
    own |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    for name in ("username", "password"):
        if given := options.pop(f"sentinel_{name}", None):
            own[name] = given
    sentinel = Sentinel(hosts, sentinel_kwargs=own, **options)  # type: ignore[no-untyped-call]
    master = sentinel.master_for(service, db=int(database or 0))
    return master, [master, *sentinel.sentinels]


def _options(url: str, scheme: str, seconds: float) -> dict[str, Any]:
    """What user, password and query of the URL ask for, as redis-py reads them."""
    from redis.asyncio.connection import parse_url

    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    parsed = dict(parse_url(f"{scheme}://{user}{at}host/0?{parts.query}"))
    for name in ("host", "port", "db", "connection_class"):
        parsed.pop(name, None)
    if scheme == "rediss":
        parsed["ssl"] = True
    else:
        parsed = {name: value for name, value in parsed.items() if not name.startswith("ssl_")}
    return {**parsed, **_limits(seconds)}


def _hosts(url: str, default_port: int) -> list[tuple[str, int]]:
    hosts = []
    for part in urlsplit(url).netloc.rpartition("@")[2].split(","):
        match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?", part)
        if match is None:
            raise ValueError("names a host that is none")
        hosts.append((match[1] or match[2], int(match[3] or default_port)))
    return hosts
