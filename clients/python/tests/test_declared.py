"""Schedules and singletons declared in code, as they arrive in `hello`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from baton import Baton, RetryPolicy, Schedule
from baton.testing import FakeSidecar
from baton.v1 import schedules_pb2, state_pb2, stream_pb2

START, END = datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)


async def hello_of(app: Baton) -> stream_pb2.Hello:
    async with FakeSidecar.beside(app) as sidecar:
        return sidecar.attached()[0]


async def test_every_key_of_a_schedule_arrives():
    app = Baton(revision=12)
    app.schedule(
        "cleanup",
        cron="0 2 * * *",
        timezone="Europe/Berlin",
        group="reports",
        enabled=False,
        payload={"days": 30},
        content_type="application/json",
        start_at=START,
        end_at=END,
        expected_interval="1h",
        skip_if_older_than=timedelta(days=2),
        catch_up="all",
        catch_up_max=7,
        overlap="queue",
        retry=RetryPolicy(attempts=5),
        timeout=30,
        jitter="500ms",
        ping_url="https://example.org/ping",
        state={"version": 2, "initial": {"n": 0}, "schema": {"type": "object"}, "ttl": "7d"},
    )(lambda context: None)
    hello = await hello_of(app)
    assert hello.revision == 12
    assert [*hello.schedules] == ["cleanup"]
    assert [*hello.declared_schedules] == [
        Schedule(
            name="cleanup",
            cron="0 2 * * *",
            timezone="Europe/Berlin",
            group="reports",
            enabled=False,
            payload=b'{"days":30}',
            content_type="application/json",
            start_at=START,
            end_at=END,
            expected_interval=timedelta(hours=1),
            skip_if_older_than=timedelta(days=2),
            catch_up=schedules_pb2.CATCH_UP_ALL,
            catch_up_max=7,
            overlap=schedules_pb2.OVERLAP_QUEUE,
            retry=RetryPolicy(attempts=5),
            timeout=timedelta(seconds=30),
            jitter=timedelta(milliseconds=500),
            ping_url="https://example.org/ping",
            state=state_pb2.StatePolicy(
                version=2,
                initial=b'{"n": 0}',
                schema=b'{"type": "object"}',
                ttl=timedelta(days=7),
            ),
        )
    ]


async def test_the_other_timings_and_a_handler_alone():
    """Without a timing the file or the API says when it runs: nothing is declared."""
    app = Baton()
    app.schedule("poll", every="30s")(lambda context: None)
    app.schedule("once", at=START)(lambda context: None)
    app.schedule("report")(lambda context: None)
    hello = await hello_of(app)
    assert [*hello.schedules] == ["poll", "once", "report"]
    assert [*hello.declared_schedules] == [
        Schedule(name="poll", every=timedelta(seconds=30)),
        Schedule(name="once", at=START),
    ]


async def test_a_singleton_is_declared_by_its_options():
    app = Baton()
    options = {"expected_interval": "1m", "restart_after": 2, "group": "reports"}
    app.singleton("coordinator", **options, state={"initial": [1]})(lambda context: None)
    app.singleton("other")(lambda context: None)
    hello = await hello_of(app)
    assert [*hello.singletons] == ["coordinator", "other"]
    assert [*hello.declared_singletons] == [
        stream_pb2.DeclaredSingleton(
            name="coordinator",
            group="reports",
            expected_interval=timedelta(minutes=1),
            restart_after=timedelta(seconds=2),
            state=state_pb2.StatePolicy(initial=b"[1]"),
        )
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cron": "@daily", "every": 1}, "cron and every exclude each other"),
        ({"timezone": "UTC"}, "cron, every or at is missing"),
        ({"cron": "@daily", "overlap": "never"}, "overlap: 'never' is not one of allow"),
        ({"cron": "@daily", "catch_up": "some"}, "catch_up: 'some' is not one of latest"),
        ({"every": "often"}, "'often' is no duration"),
        ({"every": 1, "state": {"versoin": 1}}, "unknown key 'versoin'"),
    ],
)
def test_a_wrong_declaration_fails_at_once(options, problem):
    with pytest.raises(ValueError, match=problem):
        Baton().schedule("cleanup", **options)


def test_a_declaration_needs_its_name_alone():
    """Two schedules of one name would be one too many."""
    app = Baton()
    app.schedule("cleanup", cron="@daily")(lambda context: None)
    with pytest.raises(ValueError, match="registered already"):
        app.schedule("cleanup", cron="@hourly")(lambda context: None)
    assert app._declared.schedules["cleanup"].cron == "@daily"


def test_the_revision_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("BATON_REVISION", "41")
    assert Baton()._declared.revision == 41
    assert Baton(revision=42)._declared.revision == 42
