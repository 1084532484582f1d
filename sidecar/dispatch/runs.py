"""The runs of the cluster, for everybody: read, cancelled, retried from any pod; and what a run
itself wants kept.

Guarantees: the first commit wins between a completion and a cancellation; a checkpoint is durable
once it is acknowledged, is stored once, and only for the live attempt (G3).
"""

from collections.abc import Sequence
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.batching import Batcher
from sidecar.dispatch.ports import Hints
from sidecar.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    Fenced,
    HeartbeatFailed,
    InvalidArgument,
    LimitExceeded,
    StoreUnavailable,
)
from sidecar.model.ledger import RunFilter, RunRecord, Step, StoredStep
from sidecar.model.run import CHECKPOINT_BYTES_MAX, CHECKPOINTS_MAX, Refused, RunRef, RunState

log = structlog.get_logger()

TEXT_BYTES_MAX = 255
_ID_MAX = 2**63 - 1


class RunRecords(Protocol):
    async def get(self, run_id: int) -> RunRecord: ...
    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]: ...
    async def cancel(self, run_id: int, cause: str) -> bool:
        """False if there was nothing to end."""

    async def retry(self, run_id: int) -> bool: ...
    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep: ...
    async def checkpoint_all(self, steps: Sequence[Step]) -> Sequence[StoredStep | None]:
        """Steps of one epoch and as many runs. None: not stored, and why is for `checkpoint`."""
        ...

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> bool: ...


class Runs:
    def __init__(
        self, store: RunRecords, hints: Hints, *, refused: Refused = lambda run: None
    ) -> None:
        self._store = store
        self._hints = hints
        self._refused = refused
        self._checkpoint_batch = Batcher(
            store.checkpoint_all,
            name_of=lambda step: step.run.run_id,
            kind_of=lambda step: step.run.epoch,
            bytes_of=lambda step: len(step.value),
        )

    async def get(self, run_id: int) -> RunRecord:
        return await self._store.get(_run_id(run_id))

    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]:
        """Newest first, those older than `before`."""
        if wanted.name is not None:
            _text("name", wanted.name)
        return await self._store.page(wanted, before=before, limit=limit)

    async def cancel(self, run_id: int, note: str) -> RunRecord:
        _text("note", note)
        ended = await self._store.cancel(
            _run_id(run_id), f"cancelled: {note}" if note else "cancelled"
        )
        run = await self._store.get(run_id)
        if not ended:
            reason = (
                "has ended already"
                if run.state is RunState.ENDED
                else "is a life of a singleton, which ends with its term: resign its group instead"
            )
            raise FailedPrecondition(f"run {run_id} {reason}")
        self._hints.notify("runs")
        return run

    async def retry(self, run_id: int) -> RunRecord:
        queued = await self._store.retry(_run_id(run_id))
        run = await self._store.get(run_id)
        if not queued:
            raise FailedPrecondition(
                f"run {run_id} is {run.outcome or run.state}: only a failed run can be retried,"
                " and only while its schedule is not retired"
            )
        self._hints.notify("runs")
        return run

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None:
        _ref(run)
        if not step:
            raise InvalidArgument("step", "is empty")
        _text("step", step)
        if len(value) > CHECKPOINT_BYTES_MAX:
            raise LimitExceeded(
                f"value: checkpoints of a run hold at most {CHECKPOINT_BYTES_MAX} bytes"
            )
        try:
            answer = await self._checkpoint_batch(Step(run, step, value))
            if answer is None:
                answer = await self._store.checkpoint(run, step, value)
        except Fenced:
            metrics.FENCED_WRITES.labels("checkpoint").inc()
            self._refused(run)
            raise
        if answer.stored or answer.existing == value:
            return
        if answer.existing is not None:
            raise AlreadyExists(f"step {step!r} is stored with another value", answer.existing)
        raise LimitExceeded(
            f"a run holds at most {CHECKPOINTS_MAX} checkpoints and {CHECKPOINT_BYTES_MAX} bytes"
        )

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None:
        _ref(run)
        if progress is not None and not 0 <= progress <= 1:
            raise InvalidArgument("progress", "must lie between 0 and 1")
        _text("message", message or "")
        try:
            accepted = await self._store.heartbeat(run, progress, message)
        except StoreUnavailable as error:
            metrics.STATE_ERRORS.labels(HeartbeatFailed.__name__).inc()
            log.warning("run_heartbeat_failed", run_id=run.run_id, problem=str(error))
            raise HeartbeatFailed(f"not written: {error}") from error
        if not accepted:
            metrics.FENCED_WRITES.labels("heartbeat").inc()
            self._refused(run)
            raise Fenced(f"attempt {run.attempt} of run {run.run_id} is not the live one: stop")


def _run_id(run_id: int) -> int:
    if not 0 < run_id <= _ID_MAX:
        raise InvalidArgument("run_id", "is not the id of a run")
    return run_id


def _ref(run: RunRef) -> None:
    if not (0 < run.run_id <= _ID_MAX and 0 < run.attempt < 2**31 and 0 < run.epoch <= _ID_MAX):
        raise InvalidArgument("run", "needs the run_id, attempt and epoch that Execute was given")


def _text(field: str, text: str) -> None:
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InvalidArgument(field, f"is longer than {TEXT_BYTES_MAX} bytes")
    if "\0" in text:
        raise InvalidArgument(field, "holds a NUL character")
