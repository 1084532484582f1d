"""Creates clients for every form of Redis URL: one server, a socket file, Sentinel, Cluster, TLS.

Guarantee: no client retries a command by itself. redis-py's default of three retries turns a limit
of 0.1 s into seconds; the circuit breaker of the caller decides when to retry.

redis-py is imported with the first client: a sidecar without a cache does not load it.
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
    """redis-py would load OpenTelemetry (60 modules) for metrics that Baton does not export."""
    if "opentelemetry" in sys.modules:
        return  # tracing is on: it is loaded anyway
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
    # Use a cluster with missing nodes: keys of those are read from Postgres.
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
    """The options from user, password and query of the URL, as redis-py reads them."""
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
            raise ValueError("has an invalid host")
        hosts.append((match[1] or match[2], int(match[3] or default_port)))
    return hosts
