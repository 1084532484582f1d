"""Records completions: many in one statement, each accepted at most once.

Guarantees:
- a completion is written under the authority of its run and for the live attempt, or not at all
  (G3, G5);
- a single completion is written at once; while one batch is being written the next one gathers,
  and while runs wait for open calls it gathers for GATHER_SECONDS at most;
- a lost answer is resolved by reading the rows, never by writing again blindly;
- a completion that Postgres cannot store fails its own run, with the reason, and no other. One that
  is refused for another reason, such as a missing privilege, is retried;
- a row that another session has locked delays no other run; it is retried until it is free.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority
from sidecar.execution.ports import CompletionStore
from sidecar.model.errors import (
    AnswerLost,
    Fenced,
    NotStorable,
    SidecarError,
    StatePersistFailed,
    StoreRefused,
    StoreUnavailable,
)
from sidecar.model.run import Outcome
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import LossReason
from sidecar.model.verdict import Verdict

log = structlog.get_logger()

BATCH_MAX = 500
GATHER_SECONDS = 0.25
_STEPS = 10
RETRY_SECONDS = (0.05, 1.0)
LOCKED_SECONDS = 0.1

# A completion, and the callback for what was recorded; None if the completion was too late.
_Entry = tuple[Completion, Callable[[Recorded | None], None]]


class Recorder:
    """One per authority; `run` writes until it is cancelled.

    `crowded` returns whether runs wait for open calls to end.
    """

    def __init__(
        self,
        store: CompletionStore,
        authority: Authority,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._authority = authority
        self._crowded = crowded
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue()
        self._written_before: set[int] = set()  # tried again: each may have been written before
        self._locked: set[int] = set()  # waiting for the lock of another session

    def add(self, completion: Completion, recorded: Callable[[Recorded | None], None]) -> None:
        """Write it soon; then `recorded` is called."""
        self._queue.put_nowait((completion, recorded))

    async def run(self) -> None:
        waiting: list[_Entry] = []
        while True:
            if not waiting:
                waiting = [await self._queue.get()]
            await self._gathered()
            while not self._queue.empty():
                waiting.append(self._queue.get_nowait())
            batch, waiting = _split(waiting)
            again = self._written_before.intersection(_id(entry[0]) for entry in batch)
            self._written_before -= again
            await self._write(batch, lost=bool(again))

    async def _gathered(self) -> None:
        for _ in range(_STEPS):
            if not self._crowded() or self._queue.qsize() >= BATCH_MAX:
                return
            await asyncio.sleep(GATHER_SECONDS / _STEPS)

    async def _write(self, batch: Sequence[_Entry], *, lost: bool = False) -> None:
        """Write a batch and call back; `lost`: some of it may have been written before."""
        completions = [completion for completion, _ in batch]
        try:
            written, locked = await self._write_fenced(completions, lost=lost)
        except Exception as error:
            await self._write_separately(batch, error)
            return
        for completion, recorded in batch:
            if _id(completion) in locked:
                self._wait_for_lock((completion, recorded))
            else:
                self._locked.discard(_id(completion))
                recorded(written.get(_id(completion)))

    def _wait_for_lock(self, entry: _Entry) -> None:
        run_id = _id(entry[0])
        if run_id not in self._locked:
            self._locked.add(run_id)
            log.warning("completion_waits_for_lock", run_id=run_id)
        asyncio.get_running_loop().call_later(LOCKED_SECONDS, self._add_again, entry)

    async def _write_fenced(
        self, completions: Sequence[Completion], *, lost: bool
    ) -> tuple[Mapping[int, Recorded], Collection[int]]:
        try:
            return await self._write_until_answered(completions, lost=lost)
        except Fenced:
            metrics.FENCED_WRITES.labels("completion").inc(len(completions))
            self._authority.revoke(LossReason.FENCED)
            return {}, ()

    async def _write_until_answered(
        self, completions: Sequence[Completion], *, lost: bool
    ) -> tuple[Mapping[int, Recorded], Collection[int]]:
        """Retry until Postgres answers or the authority ends. Returns what was written, and which
        runs are locked by another session."""
        pause = RETRY_SECONDS[0]
        written: dict[int, Recorded] = {}
        while True:
            try:
                if lost:
                    written |= await self._store.find_lost_completions(completions)
                    completions = _without(completions, written)
                if completions:
                    written |= await self._store.complete(self._authority.issuer, completions)
                    completions = _without(completions, written)
                if lost and completions:  # the lost statement may have been executed meanwhile
                    written |= await self._store.find_lost_completions(completions)
                    completions = _without(completions, written)
                locked = await self._store.still_running(completions) if completions else ()
            except StoreUnavailable as error:
                lost = lost or isinstance(error, AnswerLost)
                _log_wait(completions, error)
            else:
                return written, locked
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETRY_SECONDS[1])

    async def _write_separately(self, batch: Sequence[_Entry], error: Exception) -> None:
        """One of the batch was refused: write each by itself. Write the refused one later if
        waiting may help, else as failed."""
        if len(batch) > 1:
            for entry in batch:
                await self._write([entry], lost=True)
            return
        ((completion, recorded),) = batch
        if isinstance(error, StoreRefused) and not isinstance(error, NotStorable):
            _log_wait([completion], error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS[1], self._add_again, batch[0])
            return
        log.error("answer_not_storable", run_id=_id(completion), exc_info=error)
        problem = str(error) if isinstance(error, SidecarError) else type(error).__name__
        text = f"the answer could not be stored: {problem}"
        failed = Verdict(Outcome.FAILED, error=text, error_code="NOT_STORABLE", cause=text)
        if completion.verdict != failed:
            await self._write([(Completion(completion.run, failed), recorded)])
        else:
            recorded(None)

    def _add_again(self, entry: _Entry) -> None:
        self._written_before.add(_id(entry[0]))
        self._queue.put_nowait(entry)


def _split(waiting: Sequence[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """The next batch and the rest: a batch has one attempt of each run, because after a lost
    answer the row of a run must belong to one attempt."""
    batch: dict[int, _Entry] = {}
    later: list[_Entry] = []
    for entry in waiting:
        run_id = _id(entry[0])
        if run_id in batch or len(batch) == BATCH_MAX:
            later.append(entry)
        else:
            batch[run_id] = entry
    return list(batch.values()), later


def _id(completion: Completion) -> int:
    return completion.run.ref.run_id


def _without(
    completions: Sequence[Completion], written: Mapping[int, Recorded]
) -> list[Completion]:
    return [completion for completion in completions if _id(completion) not in written]


def _log_wait(completions: Sequence[Completion], error: Exception) -> None:
    unsaved = sum(completion.verdict.state is not None for completion in completions)
    metrics.STATE_ERRORS.labels(StatePersistFailed.__name__).inc(unsaved)
    log.warning("completion_waits_for_postgres", runs=len(completions), problem=str(error))
