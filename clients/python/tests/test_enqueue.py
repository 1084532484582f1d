"""Jobs submitted by SQL in the user's own transaction, with each kind of connection.

A connection here records what it is given; what the statement does is the sidecar's to test.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from baton import Baton, Enqueue, Unique


class Cursor:
    """A result with one row."""

    def fetchone(self) -> tuple[int]:
        return (7,)


class AsyncCursor:
    async def fetchone(self) -> tuple[int]:
        return (7,)


class Psycopg:
    """As psycopg's Connection: named parameters in percent signs."""

    def __init__(self) -> None:
        self.executed: list[tuple[Any, Any]] = []

    def execute(self, statement: Any, values: Any) -> Cursor:
        self.executed.append((statement, values))
        return Cursor()


class AsyncPsycopg(Psycopg):
    """As psycopg's AsyncConnection: both steps are awaited."""

    async def execute(self, statement: Any, values: Any) -> AsyncCursor:  # type: ignore[override]
        self.executed.append((statement, values))
        return AsyncCursor()


class Asyncpg:
    """As asyncpg's Connection: numbered parameters."""

    def __init__(self) -> None:
        self.executed: list[tuple[Any, ...]] = []

    async def fetchval(self, statement: str, *values: Any) -> int:
        self.executed.append((statement, *values))
        return 7


Session = type("Session", (Psycopg,), {"__module__": "sqlalchemy.orm.session"})


class AsyncSession(Session):  # type: ignore[valid-type,misc]
    """As SQLAlchemy's AsyncSession, or a subclass of the user's: the row is not awaited."""

    async def execute(self, statement: Any, values: Any) -> Cursor:
        self.executed.append((statement, values))
        return Cursor()


@pytest.fixture
def enqueue() -> Enqueue:
    app = Baton()

    @app.job("send-mail", queue="mails", timeout="30s")
    async def send_mail(context: Any) -> None: ...

    return app.jobs.in_transaction("orders")


@pytest.fixture
def sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client needs of SQLAlchemy, which is no dependency of it."""
    module = ModuleType("sqlalchemy")
    module.text = lambda statement: ("text", statement)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sqlalchemy", module)


def test_psycopg(enqueue: Enqueue):
    """Only what is said is sent: the rest is the default of the SQL function."""
    connection = Psycopg()
    assert enqueue.submit(connection, "send-mail", {"to": "a"}, priority="high") == 7
    ((statement, values),) = connection.executed
    assert statement == (
        "SELECT baton.enqueue(cluster => CAST(%(cluster)s AS text), "
        "name => CAST(%(name)s AS text), payload => CAST(%(payload)s AS jsonb), "
        "queue => CAST(%(queue)s AS text), priority => CAST(%(priority)s AS text), "
        "timeout => CAST(%(timeout)s AS interval))"
    )
    assert values == {
        "cluster": "orders",
        "name": "send-mail",
        "payload": '{"to":"a"}',
        "queue": "mails",
        "priority": "high",
        "timeout": timedelta(seconds=30),
    }


def test_every_option_has_its_argument(enqueue: Enqueue):
    connection, at = Psycopg(), datetime(2030, 1, 1, tzinfo=UTC)
    enqueue.submit(
        connection,
        "report",
        due_at=at,
        expires_at=at,
        key="k",
        unique=Unique("daily", window="1d", on_conflict="replace"),
        retry=5,
        labels={"tenant": "x"},
        batch="b",
        content_type="application/json",
    )
    ((_, values),) = connection.executed
    assert values == {
        "cluster": "orders",
        "name": "report",
        "payload": "null",
        "due_at": at,
        "expires_at": at,
        "key": "k",
        "unique_key": "daily",
        "unique_window": timedelta(days=1),
        "on_conflict": "replace",
        "attempts": 5,
        "labels": '{"tenant":"x"}',
        "batch": "b",
        "content_type": "application/json",
    }


async def test_psycopg_async(enqueue: Enqueue):
    connection = AsyncPsycopg()
    assert await enqueue.submit_async(connection, "report", delay=5) == 7
    assert connection.executed[0][1]["delay"] == timedelta(seconds=5)


async def test_asyncpg(enqueue: Enqueue):
    connection = Asyncpg()
    assert await enqueue.submit_async(connection, "report", [1]) == 7
    statement = (
        "SELECT baton.enqueue(cluster => CAST($1 AS text), name => CAST($2 AS text), "
        "payload => CAST($3 AS jsonb))"
    )
    assert connection.executed == [(statement, "orders", "report", "[1]")]


@pytest.mark.usefixtures("sqlalchemy")
async def test_sqlalchemy(enqueue: Enqueue):
    """A Session and an AsyncSession, or what a user derives from them."""
    session, other = Session(), AsyncSession()
    assert enqueue.submit(session, "report") == 7
    assert await enqueue.submit_async(other, "report") == 7
    for connection in (session, other):
        ((statement, values),) = connection.executed
        assert statement[0] == "text"
        assert "CAST(:payload AS jsonb)" in statement[1]
        assert values == {"cluster": "orders", "name": "report", "payload": "null"}


def test_what_sql_cannot_say_is_refused(enqueue: Enqueue):
    """Bytes are no JSON; a schema is a plain name, because it cannot be a parameter."""
    with pytest.raises(TypeError, match="JSON payload"):
        enqueue.submit(Psycopg(), "report", b"raw")
    with pytest.raises(ValueError, match="no plain name"):
        Enqueue("orders", {}, schema="x; drop")
