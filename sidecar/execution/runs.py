"""Reads, cancels and retries the runs of the cluster, from any pod; stores checkpoints and
heartbeats of a run.

Guarantees: the first commit wins between a completion and a cancellation; a checkpoint is durable
once it is acknowledged, and is stored once and only for the live attempt (G3).
"""

from collections.abc import Sequence
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.batching import Batcher
from sidecar.execution.authority import Authorities
from sidecar.hints import Hints
from sidecar.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    Fenced,
    HeartbeatFailed,
    InvalidArgument,
    LimitExceeded,
    StoreUnavailable,
)
from sidecar.model.run import CHECKPOINT_BYTES_MAX, CHECKPOINTS_MAX, RunRef, RunState
from sidecar.model.run_records import RunFilter, RunRecord, Step, StoredStep
from sidecar.model.validation import check_name, check_run, check_run_id, check_text

log = structlog.get_logger()


class RunRecords(Protocol):
    async def get(self, run_id: int) -> RunRecord: ...
    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]: ...
    async def cancel(self, run_id: int, cause: str) -> bool:
        """False if the run could not be cancelled."""

    async def retry(self, run_id: int) -> bool: ...
    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep: ...
    async def checkpoint_all(self, steps: Sequence[Step]) -> Sequence[StoredStep | None]:
        """Steps of one epoch, one per run. None: not stored, `checkpoint` returns the reason."""
        ...

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> bool: ...


class Steps(Protocol):
    """What a running job stores."""

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep: ...
    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> bool: ...


class Runs:
    """`jobs` stores the steps and heartbeats of runs whose token is a worker lease of this pod."""

    def __init__(
        self,
        store: RunRecords,
        hints: Hints,
        *,
        authorities: Authorities | None = None,
        jobs: Steps | None = None,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._hints = hints
        self._authorities = authorities or Authorities()
        self._checkpoint_batch = Batcher(
            store.checkpoint_all,
            name_of=lambda step: step.run.run_id,
            kind_of=lambda step: step.run.epoch,
            bytes_of=lambda step: len(step.value),
        )

    async def get(self, run_id: int) -> RunRecord:
        check_run_id(run_id)
        return await self._store.get(run_id)

    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]:
        """Newest first, those older than `before`."""
        if wanted.name is not None:
            check_text("name", wanted.name)
        return await self._store.page(wanted, before=before, limit=limit)

    async def cancel(self, run_id: int, note: str) -> RunRecord:
        check_text("note", note)
        check_run_id(run_id)
        ended = await self._store.cancel(run_id, f"cancelled: {note}" if note else "cancelled")
        run = await self._store.get(run_id)
        if not ended:
            reason = (
                "has ended already"
                if run.state is RunState.ENDED
                else "is an execution of a singleton and ends with its term: resign its group"
            )
            raise FailedPrecondition(f"run {run_id} {reason}")
        self._hints.notify("runs")
        return run

    async def retry(self, run_id: int) -> RunRecord:
        check_run_id(run_id)
        queued = await self._store.retry(run_id)
        run = await self._store.get(run_id)
        if not queued:
            raise FailedPrecondition(
                f"run {run_id} is {run.outcome or run.state}: only a failed run can be retried,"
                " and only while its schedule is not retired"
            )
        self._hints.notify("runs")
        return run

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None:
        check_run(run)
        check_name("step", step)
        if len(value) > CHECKPOINT_BYTES_MAX:
            raise LimitExceeded(
                f"value: checkpoints of a run hold at most {CHECKPOINT_BYTES_MAX} bytes"
            )
        try:
            answer = await self._stored_step(run, step, value)
        except Fenced:
            metrics.FENCED_WRITES.labels("checkpoint").inc()
            self._authorities.write_refused(run.epoch)
            raise
        if answer.stored or answer.existing == value:
            return
        if answer.existing is not None:
            raise AlreadyExists(f"step {step!r} is stored with another value", answer.existing)
        raise LimitExceeded(
            f"a run holds at most {CHECKPOINTS_MAX} checkpoints and {CHECKPOINT_BYTES_MAX} bytes"
        )

    async def _stored_step(self, run: RunRef, step: str, value: bytes) -> StoredStep:
        if self._jobs and self._authorities.is_lease(run.epoch):
            return await self._jobs.checkpoint(run, step, value)
        answer = await self._checkpoint_batch(Step(run, step, value))
        return answer or await self._store.checkpoint(run, step, value)

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None:
        check_run(run)
        if progress is not None and not 0 <= progress <= 1:
            raise InvalidArgument("progress", "must be between 0 and 1")
        check_text("message", message or "")
        try:
            job = self._jobs and self._authorities.is_lease(run.epoch)
            store = self._jobs if self._jobs and job else self._store
            accepted = await store.heartbeat(run, progress, message)
        except StoreUnavailable as error:
            metrics.STATE_ERRORS.labels(HeartbeatFailed.__name__).inc()
            log.warning("run_heartbeat_failed", run_id=run.run_id, problem=str(error))
            raise HeartbeatFailed(f"not written: {error}") from error
        if not accepted:
            metrics.FENCED_WRITES.labels("heartbeat").inc()
            self._authorities.write_refused(run.epoch)
            raise Fenced(f"attempt {run.attempt} of run {run.run_id} is not the live one: stop")
