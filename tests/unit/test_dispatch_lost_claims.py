"""A claim whose answer was lost may be carried out late: its runs are not left to nobody."""

import asyncio
import random
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from sidecar.dispatch import Dispatcher, Slots, Tools, dispatcher
from sidecar.model.breaker import Breaker
from sidecar.model.errors import AnswerLost
from sidecar.model.ledger import Claim, Redelivered
from sidecar.model.term import Tenure, Term
from tests.integration.runs_lab import LocalHints

_TERM = Term("default", 1, 7)


class LateClaim:
    """The first claim is given up, and carried out only after its runs were asked back."""

    def __init__(self) -> None:
        self.orphans = 0
        self.taken_back = asyncio.Event()
        self._claims = 0

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered:
        if known is None:
            return Redelivered(0)
        found, self.orphans = self.orphans, 0
        if found:
            self.taken_back.set()
        return Redelivered(found)

    async def expire(self, term: Term) -> list[Any]:
        return []

    async def claim(self, term: Term, *, limit: int, admitted: Collection[int] = ()) -> Claim:
        self._claims += 1
        if self._claims == 1:
            raise AnswerLost("no answer within 3 s")
        if self._claims == 2:  # The runs were asked back before this one.
            self.orphans = 1
        return Claim((), datetime.now(UTC), None, contended=False)


async def test_runs_of_a_late_claim_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """G5: whoever lost an answer looks again until no claim can be on its way any more."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 0.05)
    store = LateClaim()
    tools = Tools(
        store=cast(Any, store),
        callback=cast(Any, None),
        hints=LocalHints(),
        breaker=Breaker(5, 10.0),
        slots=Slots(4),
        chance=random.Random(1).random,
        boottime=lambda: 0.0,
    )
    tenure = Tenure(_TERM, trusted_seconds=lambda: 3.0, fenced=lambda: None)
    leading = asyncio.create_task(Dispatcher(tools).lead(tenure))
    try:
        async with asyncio.timeout(1.5):
            await store.taken_back.wait()
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
