"""Completions whose answer was lost: nothing is written twice, and nothing is taken for late."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from sidecar.execution.recorder import Recorder
from sidecar.model.errors import AnswerLost, NotStorable, StoreRefused
from sidecar.model.run import Outcome, Run, RunKind, RunRef
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from tests.lab.execution import an_authority, record, recorded_for

_TERM = Term("default", 1, 7)


class Unlocked:
    """No row is locked by anybody."""

    async def still_running(self, reports: Sequence[Completion]) -> Collection[int]:
        return ()


class LateRows(Unlocked):
    """The first write is given up by us, and carried out at the moment of the second."""

    def __init__(self) -> None:
        self.written: dict[int, Recorded] = {}
        self._given_up: Sequence[Completion] = ()

    async def complete(self, term: Term, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        if not self._given_up:
            self._given_up = reports
            raise AnswerLost("no answer within 3 s")
        for report in self._given_up:
            self.written[report.run.ref.run_id] = recorded_for(report)
        return {}  # the attempt is not live any more

    async def find_lost_completions(self, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        ids = {report.run.ref.run_id for report in reports}
        return {run_id: row for run_id, row in self.written.items() if run_id in ids}


def _report(run_id: int, attempt: int = 1) -> Completion:
    run = Run(
        ref=RunRef(run_id, attempt, _TERM.epoch),
        kind=RunKind.SCHEDULE,
        name="cleanup",
        group=_TERM.group,
        scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
        idempotency_key=f"key-{run_id}",
    )
    return Completion(run, Verdict(Outcome.SUCCEEDED))


async def test_a_write_carried_out_late_is_known_as_ours() -> None:
    """G4: the outcome that stands is ours; whoever waits for it is not told that it came late."""
    rows = LateRows()
    recorder = Recorder(cast(Any, rows), an_authority(_TERM))
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(60):
            recorded = await record(recorder, _report(5))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert recorded == rows.written[5]


class Refusing(Unlocked):
    """Refuses each of `errors` once, then takes whatever comes."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def complete(self, term: Term, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        if self._errors:
            raise self._errors.pop(0)
        return {report.run.ref.run_id: recorded_for(report) for report in reports}

    async def find_lost_completions(self, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
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
    recorder = Recorder(cast(Any, Refusing(error)), an_authority(_TERM))
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(60):
            recorded = await record(recorder, _report(5))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert recorded is not None
    assert recorded.outcome is outcome


class Batches(Unlocked):
    """Takes whatever comes; remembers how many came at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def complete(self, term: Term, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        self.sizes.append(len(reports))
        return {report.run.ref.run_id: recorded_for(report) for report in reports}


class HalfRefused(Batches):
    """What returns state is refused, until somebody grants it."""

    def __init__(self) -> None:
        super().__init__()
        self.granted = False
        self.written: dict[int, Recorded] = {}

    async def complete(self, term: Term, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        if not self.granted and any(report.verdict.state for report in reports):
            raise StoreRefused("permission denied for table state")
        fresh = [each for each in reports if each.run.ref.run_id not in self.written]
        recorded = await super().complete(term, fresh)
        self.written |= recorded
        return recorded

    async def find_lost_completions(self, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        ids = {report.run.ref.run_id for report in reports}
        return {run_id: row for run_id, row in self.written.items() if run_id in ids}


async def test_what_is_refused_keeps_no_other_answer_waiting() -> None:
    rows = HalfRefused()
    recorder = Recorder(cast(Any, rows), an_authority(_TERM))
    plain, refused = _report(1), _report(2)
    refused = replace(refused, verdict=replace(refused.verdict, state=b"{}"))
    asked = [asyncio.create_task(record(recorder, each)) for each in (refused, plain)]
    await asyncio.sleep(0)  # both of them wait to be written
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(60):
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
    recorder = Recorder(cast(Any, rows), an_authority(_TERM), lambda: crowded)
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(60):
            first = asyncio.gather(*(record(recorder, _report(n)) for n in range(3)))
            await asyncio.sleep(0.03)
            second = asyncio.gather(*(record(recorder, _report(n)) for n in range(3, 5)))
            await asyncio.gather(first, second)
            await record(recorder, _report(5))  # crowded all along: it is written all the same
            crowded = False
            await record(recorder, _report(6))
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert rows.sizes == [5, 1, 1]


async def test_two_attempts_of_one_run_are_not_written_together() -> None:
    """G4: whoever looks what became of the first must not take it for the end of the second."""
    rows = Batches()
    recorder = Recorder(cast(Any, rows), an_authority(_TERM))
    asked = [
        asyncio.create_task(record(recorder, _report(run_id, attempt)))
        for run_id, attempt in ((1, 1), (2, 1), (1, 2), (3, 1))
    ]
    await asyncio.sleep(0)  # all of them wait to be written
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*asked)
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    assert rows.sizes == [3, 1]


class OneLocked(Batches):
    """Another session holds the row of run 1."""

    def __init__(self) -> None:
        super().__init__()
        self.locked = {1}

    async def complete(self, term: Term, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        free = [each for each in reports if each.run.ref.run_id not in self.locked]
        return await super().complete(term, free)

    async def find_lost_completions(self, reports: Sequence[Completion]) -> Mapping[int, Recorded]:
        return {}

    async def still_running(self, reports: Sequence[Completion]) -> Collection[int]:
        return self.locked & {report.run.ref.run_id for report in reports}


async def test_a_locked_row_keeps_no_other_answer_waiting() -> None:
    """G4: it is not taken for late, but written when it is free."""
    rows = OneLocked()
    recorder = Recorder(cast(Any, rows), an_authority(_TERM))
    asked = [asyncio.create_task(record(recorder, _report(run_id))) for run_id in (1, 2)]
    await asyncio.sleep(0)
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(5):
            assert await asked[1] is not None
            assert await record(recorder, _report(3)) is not None
            assert not asked[0].done()
            rows.locked.clear()
            assert await asked[0] is not None
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
