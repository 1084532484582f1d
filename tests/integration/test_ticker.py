"""More schedules are due at one instant than the leader keeps in memory or writes at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.model.definitions import Schedule
from sidecar.model.stored_schedule import ClaimedTicks, DueTicks, StoredSchedule
from sidecar.model.term import Term
from sidecar.scheduling.ticker import BATCH_TICKS, UPCOMING_MAX, Ticker
from tests.integration.runs_lab import Lab, laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


class Recorded:
    """Calls the real store and records the sizes of its reads and writes."""

    def __init__(self, lab: Lab) -> None:
        self._store = lab.schedules
        self.batches: list[int] = []
        self.polls: list[int] = []

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        now, found = await self._store.upcoming(term, horizon_seconds=horizon_seconds, limit=limit)
        self.polls.append(len(found))
        return now, found

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        self.batches.append(sum(len(ticks.steps) for ticks in due))
        return await self._store.claim_ticks(term, due)


async def test_a_burst_is_written_in_batches_the_first_of_them_small(lab: Lab) -> None:
    """G4: no tick is lost or repeated when the leader cannot keep all schedules in memory."""
    number = UPCOMING_MAX + 300
    start_at = datetime.now(UTC) - timedelta(days=365, minutes=2)
    for n in range(number):
        definition = Schedule(name=f"s{n}", every_seconds=3600.0, start_at=start_at)
        await lab.add(definition, behind=timedelta(minutes=10))
    store, queued = Recorded(lab), asyncio.Event()
    ticker = Ticker(store, lab.hints, cluster="test", queued=lambda group: queued.set())
    leading = asyncio.create_task(ticker.lead(await lab.authority()))
    try:
        await queued.wait()
        first = await lab.rows()
        rows = await lab.until(lambda rows: len(rows) >= number, seconds=60)
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
    assert len(first) >= BATCH_TICKS[0], "queued was called before the runs were committed"
    assert Counter(row["name"] for row in rows) == Counter(f"s{n}" for n in range(number))
    assert store.batches[0] == BATCH_TICKS[0]
    assert max(store.batches) == BATCH_TICKS[1]
    assert sum(store.batches) == number, "a batch was written twice"
    assert store.polls[0] == UPCOMING_MAX + 1
