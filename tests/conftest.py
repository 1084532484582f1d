"""Real servers for the tests: one Postgres and one Redis per session, fresh data per test.

`BATON_POSTGRES_URL` and `BATON_REDIS_URL` make the tests use servers that are there already (the
role must be allowed to create databases; the Redis database must be empty, it is flushed before
each test). `BATON_TEST_POSTGRES=wheel|system` chooses which Postgres is started.
`BATON_TEST_ROLE=least` gives tests a database whose tables are there already and whose role may use
them and no more: see tests/security/roles.py.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
import redis
import structlog

from sidecar import logs, metrics
from sidecar.cli.embedded import PostgresServer, RedisServer, postgres_binaries, server
from sidecar.cli.embedded.binaries import Source

# fsync off: the tests kill processes, never the machine, so nothing that was written is lost. A
# test about durability itself starts a PostgresServer of its own. synchronous_commit stays on.
_QUICK: dict[str, str | int] = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": 300,
    "jit": "off",
    "timezone": "Europe/Berlin",  # as on many a server; none of it may reach us
}

if TYPE_CHECKING:
    from tests.lab.cluster import Cluster

NewDatabase = Callable[..., str]
NewCluster = Callable[..., "Cluster"]


# These build other languages' programs first.
_BUILDING = ("test_clients", "test_languages")


# No deadlines: a machine that stalls is no property of the code. In CI the same examples each time.
hypothesis.settings.register_profile(
    "baton",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("baton")


def pytest_configure(config: pytest.Config) -> None:
    """Each worker takes its ports from a part of its own: one that is given is not bound yet."""
    if worker := getattr(config, "workerinput", None):
        number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        server.PORTS = server.PORTS[number::workers]


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.stem in _BUILDING or "example_of_every_language" in item.name:
        item.add_marker(pytest.mark.languages)
    if os.environ.get("BATON_TEST_ROLE") == "least":
        from tests.security.roles import NEED_OWNER

        if getattr(item, "originalname", item.name) in NEED_OWNER:
            item.add_marker(pytest.mark.skip(reason="it needs the owner of the tables"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with real processes come first: one of two workers begins with them, and the other
    one, which begins in the middle, takes from them what is left when it is done."""
    items.sort(key=lambda item: not _has_processes(item))


def _has_processes(item: pytest.Item) -> bool:
    return "acceptance" in item.path.parts or "process" in item.path.stem


@pytest.fixture(autouse=True)
def _own_names_of_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap on names is the process's: a test with thousands of names must not use it up."""
    monkeypatch.setattr(metrics, "entity_label", metrics.CappedNames(metrics.ENTITY_NAMES_MAX))


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """How events are logged is the process's: what a test sets up ends with it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook
    yield
    root.handlers[:], root.level = handlers, level
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(capture=False)
    logs.unbind()
    structlog.reset_defaults()
    logs.forget_secrets()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's own Postgres. Tests that break a server start one of their own."""
    source = cast(Source, os.environ.get("BATON_TEST_POSTGRES", "auto"))
    with PostgresServer(postgres_binaries(source), _QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The session's own Redis. Tests that break a server start one of their own."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """A database in which databases can be created: the given server's, else our own."""
    given = os.environ.get("BATON_POSTGRES_URL")
    return given or str(request.getfixturevalue("postgres_server").url)


@pytest.fixture(scope="session")
def _administrator(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def new_database(_administrator: psycopg.Connection, postgres_url: str) -> Iterator[NewDatabase]:
    """Creates databases, by default empty ones; all are dropped after the test."""
    names: list[str] = []

    def create(template: str = "template0") -> str:
        name = f"test_{os.urandom(8).hex()}"
        _administrator.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        names.append(name)
        return urlsplit(postgres_url)._replace(path=f"/{name}").geturl()

    yield create
    for name in names:
        _administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(new_database: NewDatabase) -> str:
    """A fresh, empty database; of `BATON_TEST_ROLE=least`, one with tables and little else."""
    if os.environ.get("BATON_TEST_ROLE") != "least":
        return new_database()
    from tests.security.roles import least_url

    return least_url(new_database())


@pytest.fixture(scope="session")
def _redis(request: pytest.FixtureRequest) -> Iterator[tuple[str, redis.Redis]]:
    given = os.environ.get("BATON_REDIS_URL")
    url = given or str(request.getfixturevalue("redis_server").url)
    with redis.Redis.from_url(url) as client:
        if client.dbsize():
            pytest.exit("BATON_REDIS_URL: its database is not empty, the tests would flush it")
        yield url, client
        client.flushdb()


@pytest.fixture
def redis_url(_redis: tuple[str, redis.Redis]) -> str:
    """An empty Redis database."""
    url, client = _redis
    client.flushdb()
    return url


@pytest.fixture
def new_cluster(tmp_path: Path, database_url: str, redis_url: str) -> Iterator[NewCluster]:
    """Starts `n` replicas on fresh data; options are those of `tests.lab.replica.Setup`."""
    from tests.lab.cluster import Cluster  # here: gRPC is not for those who need none of it
    from tests.lab.replica import Setup

    with ExitStack() as running:

        def start(n: int = 3, **options: Any) -> Cluster:
            setup = Setup(database_url, **{"redis_url": redis_url, **options})
            directory = tmp_path / f"cluster-{os.urandom(4).hex()}"
            return running.enter_context(Cluster(directory, n, setup))

        yield start
