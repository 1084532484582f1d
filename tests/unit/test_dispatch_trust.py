"""A term whose trust has run out, and that nobody has ended yet: nothing is done under it."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

from sidecar.dispatch import Dispatcher, Slots, Tools
from sidecar.model.breaker import Breaker
from sidecar.model.ledger import Claim, Redelivered
from sidecar.model.run import Answer, Delivery, RunKind, RunRef
from sidecar.model.term import Tenure, Term
from tests.integration.runs_lab import LocalHints

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
        due = Delivery(RunRef(1, 1, 7), RunKind.SCHEDULE, "tick", "default", now, "key")
        return Claim((due,) if first else (), now, None, contended=False)


class _App:
    def __init__(self) -> None:
        self.calls = 0

    async def execute(self, delivery: Delivery) -> Answer:
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


def _tools(store: _Store, app: _App) -> Tools:
    return Tools(
        store=cast(Any, store),
        callback=cast(Any, app),
        hints=LocalHints(),
        breaker=Breaker(5, 10.0),
        slots=Slots(_SLOTS),
        chance=random.Random(1).random,
        boottime=lambda: 0.0,
    )


@asynccontextmanager
async def _leading(tools: Tools, trust: _Trust) -> AsyncIterator[Dispatcher]:
    dispatcher = Dispatcher(tools)
    tenure = Tenure(_TERM, trusted_seconds=trust, fenced=lambda: None)
    leading = asyncio.create_task(dispatcher.lead(tenure))
    try:
        async with asyncio.timeout(10):
            yield dispatcher
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


async def test_nothing_is_claimed_without_trust() -> None:
    """G1: another leader may be there already; what is due is its work."""
    store, trust = _Store(), _Trust(0.0)
    async with _leading(_tools(store, _App()), trust) as dispatcher:
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
    tools = _tools(_Store(), app)
    async with _leading(tools, trust):
        assert [await trust.looked.get() for _ in range(2)] == [3.0, 0.0]
        for _ in range(10):
            await asyncio.sleep(0)
        assert app.calls == 0
        assert tools.slots.free == _SLOTS
