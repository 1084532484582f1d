"""Triggers at once: they share statements, wait for no lock of others, and do not pile up."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from sidecar.adapters.postgres.database import Database
from sidecar.model.errors import NotFound, Overloaded
from sidecar.scheduling import Schedules
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, Lab, Row, laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


@pytest.fixture
def schedules(lab: Lab) -> Schedules:
    return Schedules(lab.schedules, lab.hints, cluster="test")


async def test_triggers_that_come_at_once_share_a_statement(
    lab: Lab, schedules: Schedules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets its own run, or its own error, whatever the others of its batch get."""
    await schedules.create(EVERY_HOUR)
    await schedules.create(replace(EVERY_HOUR, name="other"))
    statements = []
    fetch = Database.fetch

    async def counted(self: Database, query: str, *arguments: Any, **limits: Any) -> list[Row]:
        statements.append(query)
        return await fetch(self, query, *arguments, **limits)

    monkeypatch.setattr(Database, "fetch", counted)
    names = ["hourly", "other", "missing"] * 50
    asked = [
        schedules.trigger(name, payload=str(n).encode(), request_id=f"r{n % 100}")
        for n, name in enumerate(names)
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert len(statements) < 10
    missing = [each for each in answers if isinstance(each, NotFound)]
    assert len(missing) == 50
    rows = await lab.sql("SELECT id, name, request_id, payload FROM baton.run")
    by_id = {row["id"]: row for row in rows}
    for n, (name, answer) in enumerate(zip(names, answers, strict=True)):
        if name != "missing":
            assert isinstance(answer, int)
            assert by_id[answer]["name"] == name
            assert by_id[answer]["request_id"] == f"r{n % 100}"
    assert len(rows) == len({(name, n % 100) for n, name in enumerate(names) if name != "missing"})


async def test_a_locked_schedule_delays_only_its_own_triggers(
    lab: Lab, schedules: Schedules
) -> None:
    await schedules.create(EVERY_HOUR)
    await schedules.create(replace(EVERY_HOUR, name="locked"))
    async with await psycopg.AsyncConnection.connect(lab.url) as other:
        await other.execute("SELECT FROM baton.schedule WHERE name = 'locked' FOR UPDATE")
        names = ["hourly", "locked", *["hourly"] * 30]
        asked = [
            asyncio.create_task(schedules.trigger(name, payload=None, request_id=""))
            for name in names
        ]
        async with asyncio.timeout(2):
            await asyncio.gather(*(task for n, task in enumerate(asked) if n != 1))
        assert not asked[1].done()
        await other.rollback()
    await asked[1]


async def test_triggers_beyond_what_may_wait_are_refused(
    lab: Lab, schedules: Schedules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a retry delay; a repeated request still finds its run, and ticks are not counted."""
    monkeypatch.setattr("sidecar.adapters.postgres.triggers.QUEUED_MAX", 3)
    await schedules.create(EVERY_HOUR)
    await schedules.create(replace(EVERY_HOUR, name="other"))
    first = await schedules.trigger("hourly", payload=None, request_id="r0")
    for name in ("hourly", "other"):
        await schedules.trigger(name, payload=None, request_id="")
    refused: list[Any] = [
        *await asyncio.gather(
            *(schedules.trigger("other", payload=None, request_id="") for _ in range(5)),
            return_exceptions=True,
        )
    ]
    assert {type(each) for each in refused} == {Overloaded}
    assert refused[0].retryable
    assert await schedules.trigger("hourly", payload=None, request_id="r0") == first
    async with lab.leading(FakeApp()):
        await lab.ended(3)
        await schedules.trigger("other", payload=None, request_id="")
