"""A term whose trust has run out, and that nobody has ended yet: nothing is done under it."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sidecar.execution.slots import Slots
from sidecar.model.run import Answer, Run, RunKind, RunRef
from sidecar.model.run_records import Claim, Redelivered
from sidecar.model.term import Term
from sidecar.scheduling.dispatcher import Dispatcher
from tests.integration.runs_lab import LocalHints
from tests.lab.execution import a_pipeline, an_authority, under

_TERM = Term("default", 1, 7)
_SLOTS = 4


class _Store:
    """One run is due."""

    def __init__(self) -> None:
        self.claimed = asyncio.Event()

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered:
        return Redelivered(0)

    async def expire(self, term: Term) -> list[Any]:
        return []

    async def claim(self, term: Term, *, limit: int, admitted: Collection[int] = ()) -> Claim:
        now, first = datetime.now(UTC), not self.claimed.is_set()
        self.claimed.set()
        due = Run(RunRef(1, 1, 7), RunKind.SCHEDULE, "tick", "default", now, "key")
        return Claim((due,) if first else (), now, None, contended=False)


class _App:
    def __init__(self) -> None:
        self.calls = 0

    async def execute(self, run: Run) -> Answer:
        self.calls += 1
        await asyncio.Event().wait()
        raise AssertionError


class _Trust:
    """What is left of it at each look; the last one stays."""

    def __init__(self, *left: float) -> None:
        self.left = [*left]
        self.looked: asyncio.Queue[float] = asyncio.Queue()

    def __call__(self) -> float:
        left = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        self.looked.put_nowait(left)
        return left


@asynccontextmanager
async def _leading(store: Any, app: _App, trust: _Trust, slots: Slots) -> AsyncIterator[Dispatcher]:
    hints, chance = LocalHints(), random.Random(1).random
    dispatcher = Dispatcher(store, hints, boottime=lambda: 0.0, chance=chance)
    pipeline = a_pipeline(app, store, slots=slots)
    leading = asyncio.create_task(under(pipeline, an_authority(_TERM, trust), dispatcher.lead))
    try:
        async with asyncio.timeout(60):
            yield dispatcher
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


async def test_nothing_is_claimed_without_trust() -> None:
    """G1: another leader may be there already; what is due is its work."""
    store, trust = _Store(), _Trust(0.0)
    async with _leading(store, _App(), trust, Slots(_SLOTS)) as dispatcher:
        for _ in range(3):
            assert await trust.looked.get() == 0.0
            dispatcher.wake("default")
        assert not store.claimed.is_set()
        trust.left = [3.0]
        dispatcher.wake("default")
        await store.claimed.wait()


async def test_nothing_is_executed_once_the_trust_ran_out_during_the_claim() -> None:
    """G1: the answer to a claim may come late; the app is not called, and no slot stays taken."""
    app, trust = _App(), _Trust(3.0, 0.0)
    slots = Slots(_SLOTS)
    async with _leading(_Store(), app, trust, slots):
        assert [await trust.looked.get() for _ in range(2)] == [3.0, 0.0]
        for _ in range(10):
            await asyncio.sleep(0)
        assert app.calls == 0
        assert slots.free == _SLOTS
