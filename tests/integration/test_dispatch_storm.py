"""Leaders come and go, answers get lost, the app fails: every tick still has one outcome."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from sidecar.execution.authority import Authority
from sidecar.execution.slots import Slots
from sidecar.model.breaker import Breaker
from sidecar.model.definitions import Retry, Schedule
from sidecar.model.errors import AnswerLost, StoreUnavailable
from sidecar.model.run import Answer, CallFailed, Failed, Run, Succeeded
from sidecar.scheduling.ticker import Ticker
from tests.integration.runs_lab import FakeApp, Lab, laboratory
from tests.lab.execution import under

STEP = timedelta(milliseconds=100)


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


class Unreliable:
    """A store whose calls are lost now and then: before they were sent, or after the commit."""

    def __init__(self, store: object, dice: random.Random) -> None:
        self._store = store
        self._dice = dice

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._store, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            chance = self._dice.random()
            if chance < 0.05:
                raise StoreUnavailable("away")
            result = await method(*arguments, **named)
            if chance < 0.1:
                raise AnswerLost("cut")
            return result

        return call


def definitions() -> list[Schedule]:
    retry = Retry(attempts=2, initial_seconds=0.02, max_seconds=0.05)
    overlaps = ("allow", "skip", "queue", "replace")
    return [
        Schedule(
            name=f"{overlap}-{catch_up}",
            every_seconds=0.1,
            overlap=overlap,  # type: ignore[arg-type]
            catch_up=catch_up,
            retry=retry,
        )
        for overlap in overlaps
        for catch_up in ("latest", "all", "none")
    ]


class Storm:
    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.dice = random.Random(seed)
        self.app = FakeApp(self._handler)

    async def _handler(self, run: Run) -> Answer:
        await asyncio.sleep(self.dice.random() * 0.15)
        chance = self.dice.random()
        if chance < 0.1:
            return CallFailed("UNAVAILABLE", "gone", delivered=chance < 0.05)
        if chance < 0.2:
            return Failed("no", retryable=chance < 0.15)
        return Succeeded()

    async def leader(self, authority: Authority) -> None:
        """Two leaders overlap for a moment: the old one does not know yet."""
        runs = Unreliable(self.lab.runs, self.dice)
        pipeline = self.lab.pipeline(self.app, store=runs, slots=Slots(8), breaker=Breaker(50, 0.1))
        dispatcher = self.lab.dispatcher(runs)
        schedules: Any = Unreliable(self.lab.schedules, self.dice)
        ticker = Ticker(schedules, self.lab.hints, cluster="test", queued=dispatcher.wake)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(
                under(pipeline, authority, dispatcher.lead), ticker.lead(authority)
            )

    async def rage(self, terms: int) -> None:
        leaders: list[asyncio.Task[None]] = []
        for _ in range(terms):
            authority = await self.lab.authority()
            leaders.append(asyncio.create_task(self.leader(authority)))
            await asyncio.sleep(0.1)  # the old one goes on meanwhile
            for old in leaders[:-1]:
                old.cancel()
            await asyncio.sleep(self.dice.random() * 0.6)
        for leader in leaders:
            leader.cancel()
        await asyncio.gather(*leaders, return_exceptions=True)


def spread(rows: Sequence[dict[str, Any]]) -> list[datetime]:
    return sorted(row["tick"] + n * STEP for row in rows for n in range(row["tick_count"]))


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_tick_has_exactly_one_outcome(lab: Lab, seed: int) -> None:
    """G3, G4, G5: no tick is lost, none has two rows, each run that succeeded was accepted once."""
    for definition in definitions():
        await lab.add(definition)
    async with laboratory(lab.url) as pods:  # connections of their own: theirs are cut
        await Storm(pods, seed).rage(terms=6)
    await lab.sql("UPDATE baton.schedule SET next_due_at = NULL")  # no more ticks
    async with lab.leading(FakeApp()):
        await lab.until(lambda rows: all(row["state"] == "ended" for row in rows), 20)
    for definition in definitions():
        rows = await lab.rows(definition.name)
        ticks = spread(rows)
        assert ticks == [ticks[0] + n * STEP for n in range(len(ticks))], definition.name
        watermark = (await lab.schedules.get(definition.name)).watermark
        assert watermark == ticks[-1]
        for row in rows:
            states = [event["outcome"] for event in row["history"] if event["outcome"]]
            assert states == [row["outcome"]]
    assert len(await lab.rows()) > 50
