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
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
import redis
import structlog

from devtools.servers import PostgresServer, RedisServer, postgres_binaries, server
from devtools.servers.binaries import Source
from sidecar import logs, metrics

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


_LONGEST_FIRST = ("migration", "acceptance", "simulation", "security", "integration", "contract")
_FOLDERS = {name: place for place, name in enumerate(_LONGEST_FIRST)}
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
    if _shares_a_fixture(item):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if os.environ.get("BATON_TEST_ROLE") == "least":
        from tests.security.roles import NEED_OWNER

        if getattr(item, "originalname", item.name) in NEED_OWNER:
            item.add_marker(pytest.mark.skip(reason="it needs the owner of the tables"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folders whose tests take longest come first: what is left for the end is short, and no
    worker waits for another one."""
    items.sort(key=lambda item: min(map(_FOLDERS.get, item.path.parts, repeat(len(_FOLDERS)))))


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Then its module stays on one worker, so that the fixture is set up once."""
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(one.scope == "module" for found in fixtures.values() for one in found)


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


def _create_database(administrator: psycopg.Connection, template: str) -> str:
    """Its name. Files are copied rather than logged: half the work for a database of a test."""
    name = f"test_{os.urandom(8).hex()}"
    strategy = "STRATEGY file_copy" if administrator.info.server_version >= 150_000 else ""
    administrator.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}".encode())
    return name


def _drop_database(administrator: psycopg.Connection, name: str) -> None:
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _url_of(name: str, postgres_url: str) -> str:
    return urlsplit(postgres_url)._replace(path=f"/{name}").geturl()


@pytest.fixture
def new_database(_administrator: psycopg.Connection, postgres_url: str) -> Iterator[NewDatabase]:
    """Creates databases, by default empty ones; all are dropped after the test."""
    names: list[str] = []

    def create(template: str = "template0") -> str:
        names.append(_create_database(_administrator, template))
        return _url_of(names[-1], postgres_url)

    yield create
    for name in names:
        _drop_database(_administrator, name)


@pytest.fixture(scope="session")
def _migrated_template(_administrator: psycopg.Connection, postgres_url: str) -> Iterator[str]:
    """A database with all tables and no rows, migrated once per session."""
    from tests.security.roles import run_migrations

    name = _create_database(_administrator, "template0")
    run_migrations(_url_of(name, postgres_url))
    yield name
    _drop_database(_administrator, name)


@pytest.fixture
def migrated_url(request: pytest.FixtureRequest, new_database: NewDatabase) -> str:
    """A fresh database with all tables; of `BATON_TEST_ROLE=least`, with its role."""
    if os.environ.get("BATON_TEST_ROLE") == "least":
        from tests.security.roles import least_url

        return least_url(new_database())
    url = new_database(request.getfixturevalue("_migrated_template"))
    with psycopg.connect(url) as connection:  # as if it had been migrated by itself
        connection.execute("UPDATE baton.meta SET installation_id = gen_random_uuid()")
    return url


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
