"""From a schedule to an outcome, on a real Postgres."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sidecar.model.definitions import Schedule
from tests.integration.runs_lab import FakeApp, Lab, laboratory, soon


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


async def test_a_tick_becomes_one_run_with_one_outcome(lab: Lab) -> None:
    """G4: one row, succeeded; the next tick is known; the metadata remembers it."""
    tick = soon()
    await lab.add(Schedule(name="once", at=tick, payload=b"{}"), behind=timedelta(minutes=1))
    app = FakeApp()
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["tick"], row["outcome"], row["attempt"]) == (tick, "succeeded", 1)
    (call,) = app.calls
    assert call.payload == b"{}"
    assert call.idempotency_key.startswith("test/once/20")
    assert [event["state"] for event in row["history"]] == ["queued", "running", "ended"]
    stored = await lab.schedules.get("once")
    assert stored.next_tick is None
    assert stored.metadata.run_count == 1


async def test_a_single_tick_starts_on_time(lab: Lab) -> None:
    """By the clock of the database: never early, and long before any poll; the benches measure."""
    # Far apart: a machine that stands still for a second or two is in the way of a few.
    ticks = [soon(1.0 + 0.5 * n) for n in range(8)]
    for n, tick in enumerate(ticks):
        await lab.add(Schedule(name=f"at-{n}", at=tick), behind=timedelta(minutes=1))
    async with lab.leading(FakeApp()):
        rows = await lab.ended(8)
    late = sorted(row["started_at"] - row["tick"] for row in rows)
    assert late[0] >= timedelta(0)
    assert late[4] < timedelta(seconds=1), late
