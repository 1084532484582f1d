"""Statements that wait for rows of others: they see what is committed meanwhile, and never wait in
a circle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from sidecar.scheduling import Schedules
from tests.integration.runs_lab import Lab, laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


def catalogue(lab: Lab) -> Schedules:
    return Schedules(lab.schedules, lab.hints, cluster="test")


@asynccontextmanager
async def slow(
    lab: Lab, statement: str, *parameters: object
) -> AsyncIterator[psycopg.AsyncConnection]:
    """Somebody else's transaction, which has done this and is not over yet."""
    async with await psycopg.AsyncConnection.connect(lab.url) as connection:
        await connection.execute(statement.encode(), parameters)
        yield connection


async def test_a_schedule_that_changes_its_group_meanwhile_is_found(lab: Lab) -> None:
    """G11: paused while another pod moves it, it is not said to be missing."""
    await lab.add()
    async with slow(lab, "SELECT 1 FROM baton.schedule FOR NO KEY UPDATE") as moving:
        paused = asyncio.ensure_future(catalogue(lab).pause("hourly", "why"))
        await lab.until_waiting(1)
        await moving.execute(
            "UPDATE baton.schedule"
            " SET group_id = (SELECT id FROM baton.leader_group WHERE name = 'other')"
        )
    await paused
    now = await catalogue(lab).get("hourly")
    assert (now.paused, now.definition.group) == (True, "other")
