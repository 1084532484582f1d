"""Delivers runs to the app, and takes their answers as the contract says they count."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta

import grpc
import grpc.aio

from baton.testing._apps import App
from baton.testing._common import Terms, now
from baton.testing._runs import RunBook, RunRecord
from baton.testing._state import Store, entity_type, owned_key
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2

_UNDELIVERABLE = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.NOT_FOUND,
}
_FINAL = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.DATA_LOSS,
}
_OUTCOMES = {
    "succeeded": runs_pb2.OUTCOME_SUCCEEDED,
    "failed": runs_pb2.OUTCOME_FAILED,
    "skipped": runs_pb2.OUTCOME_SKIPPED,
}


class Delivery:
    """Delivers to the app that leads."""

    def __init__(self, app: Callable[[], App], terms: Terms, book: RunBook, store: Store) -> None:
        self._app, self._terms, self._book, self._store = app, terms, book, store
        self._remembered: dict[str, runs_pb2.ExecutionMetadata] = {}

    def context(self, group: str, epoch: int, *, is_leader: bool) -> pb.ClusterContext:
        """Where the calls of this fake come from."""
        return pb.ClusterContext(
            cluster="test", runner_id="fake-runner", group=group, is_leader=is_leader, epoch=epoch
        )

    async def deliver(self, record: RunRecord, attempts: int) -> runs_pb2.Run:
        """Delivers a run until it ends, has used up `attempts`, or cannot be delivered now."""
        for left in reversed(range(attempts)):
            again = await self._attempt(record, is_last=left == 0)
            if not again:
                break
        return record.run

    async def cancel(self, group: str) -> None:
        """Cancels the open runs of a group; returns when their calls have ended."""
        for record in self._open(group):
            if record.cancel is not None:
                record.cancel()
        await self.settle(group, 1.0)

    async def settle(self, group: str, seconds: float) -> None:
        """Waits until no run of the group is open, no longer than `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for record in self._open(group):
                    await record.closed.wait()

    def _open(self, group: str) -> list[RunRecord]:
        return [
            record
            for record in self._book.records.values()
            if record.run.group == group and record.cancel is not None
        ]

    async def _attempt(self, record: RunRecord, *, is_last: bool) -> bool:
        """One delivery; whether another one may follow at once."""
        run, term = record.run, self._terms.groups[record.run.group]
        if not term.leads:
            raise RuntimeError(f"group {run.group} is not led: call lead() first")
        run.attempt, run.epoch, run.runner_id = run.attempt + 1, term.epoch, "fake-runner"
        if not run.HasField("started_at"):
            run.started_at.GetCurrentTime()
        self._book.move(run, runs_pb2.RUN_STATE_RUNNING)
        ref = runs_pb2.RunRef(run_id=run.run_id, attempt=run.attempt, epoch=run.epoch)
        outcome = await self._answer(record)
        if not self._book.is_live(ref):
            outcome = None  # fenced: whatever the app says, nothing of it counts
        if outcome is None:
            self._wait_or_skip(run)
            return False
        return self._settle_outcome(run, outcome, is_last=is_last)

    async def _answer(self, record: RunRecord) -> pb.ExecuteResponse | None:
        """What the app answered; None: undeliverable, or cancelled."""
        call = self._app().execute(self._request(record), record.timeout)
        record.cancel = call.cancel
        record.closed.clear()
        try:
            response: pb.ExecuteResponse = await call
        except asyncio.CancelledError:
            if not call.cancelled() or ((task := asyncio.current_task()) and task.cancelling()):
                call.cancel()
                raise
            return None
        except grpc.aio.AioRpcError as error:
            record.run.error = f"{error.code().name}: {error.details()}"
            if error.code() in _UNDELIVERABLE:
                return None
            failed = pb.Failed(message=record.run.error, retryable=error.code() not in _FINAL)
            return pb.ExecuteResponse(failed=failed)
        finally:
            record.cancel = None
            record.closed.set()
        return response

    def _request(self, record: RunRecord) -> pb.ExecuteRequest:
        run = record.run
        context = self.context(run.group, run.epoch, is_leader=True)
        context.entity_type, context.entity_id = entity_type(run), run.name
        entry = self._store.get(owned_key(run))
        points = [
            runs_pb2.Checkpoint(step=step, value=value)
            for step, value in record.checkpoints.items()
        ]
        deadline = now() + timedelta(seconds=record.timeout) if record.timeout else None
        return pb.ExecuteRequest(
            context=context,
            deadline=deadline,
            run_id=run.run_id,
            kind=run.kind,
            name=run.name,
            attempt=run.attempt,
            scheduled_at=run.scheduled_at,
            idempotency_key=run.idempotency_key,
            payload=record.payload,
            content_type="application/json",
            state=entry.value if entry else b"",
            state_version=1,
            checkpoints=points,
            metadata=self._remembered.get(owned_key(run)),
        )

    def _wait_or_skip(self, run: runs_pb2.Run) -> None:
        if run.cancel_requested:
            run.outcome, run.reason = runs_pb2.OUTCOME_SKIPPED, runs_pb2.SKIP_REASON_OPERATOR
            self._book.move(run, runs_pb2.RUN_STATE_ENDED, "cancelled")
        else:
            self._book.move(run, runs_pb2.RUN_STATE_WAITING)

    def _settle_outcome(
        self, run: runs_pb2.Run, response: pb.ExecuteResponse, *, is_last: bool
    ) -> bool:
        kind = response.WhichOneof("outcome") or "succeeded"
        part = response.failed if kind == "failed" else response.succeeded
        if kind != "skipped" and part.HasField("state"):
            self._store.put(owned_key(run), part.state)
        run.error = response.failed.message
        if kind == "failed" and response.failed.retryable and not is_last:
            self._book.move(run, runs_pb2.RUN_STATE_WAITING, run.error)
            return True
        run.result = response.succeeded.result
        run.outcome = _OUTCOMES[kind]
        if kind == "skipped":
            run.reason = runs_pb2.SKIP_REASON_APP_DECLINED
        self._book.move(run, runs_pb2.RUN_STATE_ENDED, response.skipped.reason or run.error)
        self._remember(run)
        return False

    def _remember(self, run: runs_pb2.Run) -> None:
        if run.outcome == runs_pb2.OUTCOME_SKIPPED:
            return
        memory = self._remembered.setdefault(owned_key(run), runs_pb2.ExecutionMetadata())
        memory.run_count += 1
        memory.last_run_at.CopyFrom(run.started_at)
        memory.last_error = run.error
        if run.outcome == runs_pb2.OUTCOME_SUCCEEDED:
            memory.last_success_at.CopyFrom(run.finished_at)
