"""Claims whose answer was lost, or that Postgres lost: no run is nobody's, none runs twice."""

import asyncio
import random
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from sidecar.execution.authority import Authority
from sidecar.execution.pipeline import Pipeline
from sidecar.execution.slots import Slots
from sidecar.model.errors import AnswerLost
from sidecar.model.run import Answer, Run, RunKind, RunRef
from sidecar.model.run_records import Claim, Redelivered
from sidecar.model.term import Term
from sidecar.scheduling import dispatcher
from sidecar.scheduling.dispatcher import Dispatcher
from tests.integration.runs_lab import LocalHints
from tests.lab.execution import a_pipeline, an_authority, under

_TERM = Term("default", 1, 7)
_SLOTS = 4


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


class ForgetfulClaims(LateClaim):
    """A copy of Postgres that lacks the last commits: it hands out the same attempt each time."""

    async def claim(self, term: Term, *, limit: int, admitted: Collection[int] = ()) -> Claim:
        now = datetime.now(UTC)
        again = Run(RunRef(1, 1, 7), RunKind.SCHEDULE, "tick", "default", now, "key")
        return Claim((again,), now, None, contended=False)


class HangingApp:
    def __init__(self) -> None:
        self.calls = 0

    async def execute(self, run: Run) -> Answer:
        self.calls += 1
        await asyncio.sleep(3600)
        raise AssertionError


async def _lead(store: Any, pipeline: Pipeline, authority: Authority) -> None:
    hints, chance = LocalHints(), random.Random(1).random
    dispatcher = Dispatcher(store, hints, boottime=lambda: 0.0, chance=chance)
    await under(pipeline, authority, dispatcher.lead)


async def test_runs_of_a_late_claim_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """G5: whoever lost an answer looks again until no claim can be on its way any more."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 0.05)
    store = LateClaim()
    pipeline = a_pipeline(None, store, slots=Slots(_SLOTS))
    leading = asyncio.create_task(_lead(store, pipeline, an_authority(_TERM)))
    try:
        async with asyncio.timeout(60):
            await store.taken_back.wait()
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


async def test_an_attempt_that_runs_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """G5: a database that lost our last commits ends the term, and no slot stays taken."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 0.05)
    app, fenced = HangingApp(), asyncio.Event()
    store, slots = ForgetfulClaims(), Slots(_SLOTS)
    pipeline = a_pipeline(app, store, slots=slots)
    async with asyncio.timeout(60):
        await _lead(store, pipeline, an_authority(_TERM, revoked=fenced.set))
    assert fenced.is_set()
    assert app.calls == 1
    assert slots.take(_SLOTS, asyncio.Event()) == _SLOTS


async def test_a_fenced_term_that_is_cancelled_too_leaves_no_writer_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The election answers the fence by cancelling the work, which is still ending its calls."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 0.05)
    loop = asyncio.get_running_loop()

    def fenced() -> None:
        loop.call_soon(leading.cancel)

    store = ForgetfulClaims()
    pipeline = a_pipeline(HangingApp(), store, slots=Slots(_SLOTS))
    leading = asyncio.create_task(_lead(store, pipeline, an_authority(_TERM, revoked=fenced)))
    async with asyncio.timeout(60):
        await asyncio.wait({leading})
    assert "execution.record" not in {task.get_name() for task in asyncio.all_tasks()}
