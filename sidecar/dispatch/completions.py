"""Writes what became of attempts: many at once, each at most once accepted.

Guarantees:
- a verdict is written under the term it was reached in, for the attempt that is live, or not at all
  (G3, G5);
- while one batch is being written the next one gathers: a lone verdict waits for nobody; while runs
  wait for the calls before them, those come first, for GATHER_SECONDS at most;
- a lost answer is resolved by reading the rows, never by writing again blindly;
- a verdict that Postgres cannot store does not take others with it: its run has failed, and says
  why. One that is refused for another reason, such as a missing privilege, is written later.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from sidecar import metrics
from sidecar.dispatch.ports import RunStore
from sidecar.model.errors import (
    AnswerLost,
    Fenced,
    NotStorable,
    SidecarError,
    StatePersistFailed,
    StoreRefused,
    StoreUnavailable,
)
from sidecar.model.ledger import Recorded, Report
from sidecar.model.run import Outcome, Verdict
from sidecar.model.term import Tenure

log = structlog.get_logger()

BATCH_MAX = 500
GATHER_SECONDS = 0.25
_STEPS = 10
RETRY_SECONDS = (0.05, 1.0)

_Entry = tuple[Report, "asyncio.Future[Recorded | None]"]


class Completions:
    """One per term; `run` writes until it is cancelled. `crowded`: calls wait to be made."""

    def __init__(
        self, store: RunStore, tenure: Tenure, crowded: Callable[[], bool] = lambda: False
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._crowded = crowded
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue()
        self._refused: set[asyncio.Future[Recorded | None]] = set()

    async def record(self, report: Report) -> Recorded | None:
        """What was written; None if it came too late."""
        done: asyncio.Future[Recorded | None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((report, done))
        return await done

    async def run(self) -> None:
        waiting: list[_Entry] = []
        while True:
            if not waiting:
                waiting = [await self._queue.get()]
            await self._gathered()
            while not self._queue.empty():
                waiting.append(self._queue.get_nowait())
            batch, waiting = _split(waiting)
            again = self._refused.intersection(done for _, done in batch)
            self._refused -= again
            await self._settle(batch, lost=bool(again))

    async def _gathered(self) -> None:
        for _ in range(_STEPS):
            if not self._crowded() or self._queue.qsize() >= BATCH_MAX:
                return
            await asyncio.sleep(GATHER_SECONDS / _STEPS)

    async def _settle(self, batch: Sequence[_Entry], *, lost: bool = False) -> None:
        reports = [report for report, _ in batch]
        try:
            recorded = await self._written(reports, lost=lost)
        except Exception as error:
            await self._apart(batch, error)
            return
        for report, done in batch:
            if not done.done():
                done.set_result(recorded.get(report.delivery.ref.run_id))

    async def _written(self, reports: Sequence[Report], *, lost: bool) -> Mapping[int, Recorded]:
        try:
            return await self._stubbornly(reports, lost=lost)
        except Fenced:
            metrics.FENCED_WRITES.labels("completion").inc(len(reports))
            self._tenure.fenced()
            return {}

    async def _stubbornly(self, reports: Sequence[Report], *, lost: bool) -> Mapping[int, Recorded]:
        """Until Postgres answers; the end of the term ends the wait."""
        pause = RETRY_SECONDS[0]
        written: dict[int, Recorded] = {}
        while True:
            try:
                if lost:
                    written |= await self._store.landed(reports)
                    reports = _without(reports, written)
                if reports:
                    written |= await self._store.complete(self._tenure.term, reports)
                    reports = _without(reports, written)
                if lost and reports:  # the lost one may have been carried out in between
                    written |= await self._store.landed(reports)
            except StoreUnavailable as error:
                lost = lost or isinstance(error, AnswerLost)
                _wait_for_postgres(reports, error)
            else:
                return written
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETRY_SECONDS[1])

    async def _apart(self, batch: Sequence[_Entry], error: Exception) -> None:
        """One of them was refused: write each by itself. That one later, if waiting may help; else
        as failed."""
        if len(batch) > 1:
            for entry in batch:
                await self._settle([entry], lost=True)
            return
        ((report, done),) = batch
        if isinstance(error, StoreRefused) and not isinstance(error, NotStorable):
            _wait_for_postgres([report], error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS[1], self._again, batch[0])
            return
        log.error("answer_not_storable", run_id=report.delivery.ref.run_id, exc_info=error)
        problem = str(error) if isinstance(error, SidecarError) else type(error).__name__
        text = f"the answer could not be stored: {problem}"
        failed = Verdict(Outcome.FAILED, error=text, error_code="NOT_STORABLE", cause=text)
        if report.verdict != failed:
            await self._settle([(Report(report.delivery, failed), done)])
        elif not done.done():
            done.set_result(None)

    def _again(self, entry: _Entry) -> None:
        """It may have been written before it was refused, by a statement whose answer was lost."""
        self._refused.add(entry[1])
        self._queue.put_nowait(entry)


def _split(waiting: Sequence[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """What is written next, and what later: of each run one attempt at a time, or what became of
    the one would be taken for the other's end."""
    batch: dict[int, _Entry] = {}
    later: list[_Entry] = []
    for entry in waiting:
        run_id = entry[0].delivery.ref.run_id
        if run_id in batch or len(batch) == BATCH_MAX:
            later.append(entry)
        else:
            batch[run_id] = entry
    return list(batch.values()), later


def _without(reports: Sequence[Report], written: Mapping[int, Recorded]) -> list[Report]:
    return [report for report in reports if report.delivery.ref.run_id not in written]


def _wait_for_postgres(reports: Sequence[Report], error: Exception) -> None:
    unsaved = sum(report.verdict.state is not None for report in reports)
    metrics.STATE_ERRORS.labels(StatePersistFailed.__name__).inc(unsaved)
    log.warning("completion_waits_for_postgres", runs=len(reports), problem=str(error))
