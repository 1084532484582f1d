"""Completions whose answer was lost: nothing is written twice, and nothing is taken for late."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from sidecar.dispatch.completions import Completions
from sidecar.model.errors import AnswerLost, NotStorable, StoreRefused
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Delivery, Outcome, RunKind, RunRef, RunState, Verdict
from sidecar.model.term import Tenure, Term

_TERM = Term("default", 1, 7)


class LateRows:
    """The first write is given up by us, and carried out at the moment of the second."""

    def __init__(self) -> None:
        self.written: dict[int, Recorded] = {}
        self._given_up: Sequence[Report] = ()

    async def complete(self, term: Term, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        if not self._given_up:
            self._given_up = reports
            raise AnswerLost("no answer within 3 s")
        for report in self._given_up:
            self.written[report.delivery.ref.run_id] = _recorded(report)
        return {}  # the attempt is not live any more

    async def landed(self, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        ids = {report.delivery.ref.run_id for report in reports}
        return {run_id: row for run_id, row in self.written.items() if run_id in ids}


def _recorded(report: Report) -> Recorded:
    ref, outcome = report.delivery.ref, report.verdict.outcome
    return Recorded(ref.run_id, RunKind.SCHEDULE, RunState.ENDED, outcome, None, 0.0, None)


def _report(run_id: int, attempt: int = 1) -> Report:
    delivery = Delivery(
        ref=RunRef(run_id, attempt, _TERM.epoch),
        kind=RunKind.SCHEDULE,
        name="cleanup",
        group=_TERM.group,
        scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
        idempotency_key=f"key-{run_id}",
    )
    return Report(delivery, Verdict(Outcome.SUCCEEDED))


async def test_a_write_carried_out_late_is_known_as_ours() -> None:
    """G4: the outcome that stands is ours; whoever waits for it is not told that it came late."""
    rows = LateRows()
    completions = Completions(cast(Any, rows), cast(Tenure, _Trusted()))
    writer = asyncio.create_task(completions.run())
    try:
        async with asyncio.timeout(2):
            recorded = await completions.record(_report(5))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert recorded == rows.written[5]


class Refusing:
    """Refuses each of `errors` once, then takes whatever comes."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def complete(self, term: Term, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        if self._errors:
            raise self._errors.pop(0)
        return {report.delivery.ref.run_id: _recorded(report) for report in reports}

    async def landed(self, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        return {}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (StoreRefused("permission denied for table run"), Outcome.SUCCEEDED),
        (NotStorable("invalid byte sequence"), Outcome.FAILED),
    ],
)
async def test_only_an_answer_that_cannot_be_stored_has_failed(
    error: Exception, outcome: Outcome
) -> None:
    """G4: what is refused for a while is written later, as it was answered."""
    completions = Completions(cast(Any, Refusing(error)), cast(Tenure, _Trusted()))
    writer = asyncio.create_task(completions.run())
    try:
        async with asyncio.timeout(5):
            recorded = await completions.record(_report(5))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert recorded is not None
    assert recorded.outcome is outcome


class Batches:
    """Takes whatever comes; remembers how many came at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def complete(self, term: Term, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        self.sizes.append(len(reports))
        return {report.delivery.ref.run_id: _recorded(report) for report in reports}


class HalfRefused(Batches):
    """What returns state is refused, until somebody grants it."""

    def __init__(self) -> None:
        super().__init__()
        self.granted = False
        self.written: dict[int, Recorded] = {}

    async def complete(self, term: Term, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        if not self.granted and any(report.verdict.state for report in reports):
            raise StoreRefused("permission denied for table state")
        fresh = [each for each in reports if each.delivery.ref.run_id not in self.written]
        recorded = await super().complete(term, fresh)
        self.written |= recorded
        return recorded

    async def landed(self, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        ids = {report.delivery.ref.run_id for report in reports}
        return {run_id: row for run_id, row in self.written.items() if run_id in ids}


async def test_what_is_refused_keeps_no_other_answer_waiting() -> None:
    rows = HalfRefused()
    completions = Completions(cast(Any, rows), cast(Tenure, _Trusted()))
    plain, refused = _report(1), _report(2)
    refused = replace(refused, verdict=replace(refused.verdict, state=b"{}"))
    asked = [asyncio.create_task(completions.record(each)) for each in (refused, plain)]
    await asyncio.sleep(0)  # both of them wait to be written
    writer = asyncio.create_task(completions.run())
    try:
        async with asyncio.timeout(5):
            assert await asked[1] is not None
            assert not asked[0].done()
            rows.granted = True
            assert await asked[0] is not None
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert set(rows.written) == {1, 2}


async def test_while_calls_wait_their_answers_are_written_together() -> None:
    """And at once when no call waits any more: nobody's answer stays unwritten for long."""
    rows, crowded = Batches(), True
    completions = Completions(cast(Any, rows), cast(Tenure, _Trusted()), lambda: crowded)
    writer = asyncio.create_task(completions.run())
    try:
        async with asyncio.timeout(5):
            first = asyncio.gather(*(completions.record(_report(n)) for n in range(3)))
            await asyncio.sleep(0.03)
            second = asyncio.gather(*(completions.record(_report(n)) for n in range(3, 5)))
            await asyncio.gather(first, second)
            await completions.record(_report(5))  # crowded all along: it is written all the same
            crowded = False
            await completions.record(_report(6))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert rows.sizes == [5, 1, 1]


async def test_two_attempts_of_one_run_are_not_written_together() -> None:
    """G4: whoever looks what became of the first must not take it for the end of the second."""
    rows = Batches()
    completions = Completions(cast(Any, rows), cast(Tenure, _Trusted()))
    asked = [
        asyncio.create_task(completions.record(_report(run_id, attempt)))
        for run_id, attempt in ((1, 1), (2, 1), (1, 2), (3, 1))
    ]
    await asyncio.sleep(0)  # all of them wait to be written
    writer = asyncio.create_task(completions.run())
    try:
        async with asyncio.timeout(5):
            await asyncio.gather(*asked)
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert rows.sizes == [3, 1]


class _Trusted:
    term = _TERM
