"""Runs the jobs of the fake: each one that is due, on any process that has its handler and room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, timedelta
from typing import Any

import grpc
import grpc.aio

from baton.testing._apps import App
from baton.testing._attach import AttachedProcess
from baton.testing._common import now
from baton.testing._job_book import JobBook, JobRecord
from baton.testing._state import Store
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2

WORKER_EPOCH = 1
_UNDELIVERABLE = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.NOT_FOUND,
}


class JobRunner:
    """Hands jobs to apps and records how they end; `choose` finds an app for a name."""

    def __init__(
        self,
        book: JobBook,
        store: Store,
        choose: Callable[[str], App | None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._book, self._store = book, store
        self._choose, self._spawn = choose, spawn
        self._running: set[int] = set()

    def pump(self, without: JobRecord | None = None) -> None:
        """Starts everything that can be started now, except what was just refused."""
        for record in self._book.due():
            app = self._choose(record.job.name)
            if app is not None and record is not without:
                self._start(record, app)

    async def settle(self) -> None:
        """Returns when nothing runs, and nothing that is due can be started."""
        self.pump()
        await self._book.until(lambda: not self._running)

    def _start(self, record: JobRecord, app: App) -> None:
        job, run = record.job, record.record.run
        job.attempt = run.attempt = job.attempt + 1
        run.epoch, run.runner_id = WORKER_EPOCH, "fake-runner"
        job.runner_id = run.runner_id
        job.started_at.FromDatetime(self._book.clock.now)
        self._running.add(job.job_id)
        if isinstance(app, AttachedProcess):
            app.running += 1
        self._book.move(record, runs_pb2.RUN_STATE_RUNNING)
        self._spawn(self._run(record, app))

    async def _run(self, record: JobRecord, app: App) -> None:
        call = app.execute(self._request(record), record.record.timeout)
        record.record.cancel = call.cancel
        refused: JobRecord | None = None
        try:
            self._settle(record, await call)
        except grpc.aio.AioRpcError as error:
            if error.code() in _UNDELIVERABLE:
                refused = record
            self._failed_call(record, error)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            self._cancelled(record)
        finally:
            record.record.cancel = None
            self._running.discard(record.job.job_id)
            if isinstance(app, AttachedProcess):
                app.running -= 1
            self._book.ring()
        self.pump(without=refused)

    def _request(self, record: JobRecord) -> pb.ExecuteRequest:
        job, kept = record.job, record.record
        entry = self._store.get(kept.state_key) if kept.state_key else None
        deadline = now() + timedelta(seconds=kept.timeout) if kept.timeout else None
        return pb.ExecuteRequest(
            context=pb.ClusterContext(
                cluster="test",
                runner_id="fake-runner",
                epoch=WORKER_EPOCH,
                entity_type="job",
                entity_id=job.key,
            ),
            run_id=job.job_id,
            kind=runs_pb2.RUN_KIND_JOB,
            name=job.name,
            attempt=job.attempt,
            scheduled_at=job.due_at,
            deadline=deadline,
            idempotency_key=job.idempotency_key,
            payload=kept.payload,
            content_type=job.content_type,
            state=entry.value if entry else b"",
            state_version=1,
            checkpoints=[
                runs_pb2.Checkpoint(step=step, value=value)
                for step, value in kept.checkpoints.items()
            ],
            job=pb.JobContext(
                queue=job.queue,
                key=job.key,
                priority=job.priority,
                labels=job.labels,
                batch=job.batch,
                submitted_at=job.created_at,
                rescues=job.rescues,
            ),
        )

    def _settle(self, record: JobRecord, response: pb.ExecuteResponse) -> None:
        kind = response.WhichOneof("outcome") or "succeeded"
        part = getattr(response, kind)
        key = record.record.state_key
        if key and kind != "skipped" and part.HasField("state"):
            self._store.put(key, part.state)
        if kind == "succeeded":
            record.job.result = part.result
            if part.jobs:
                self._book.submit(part.jobs, "")
            self._book.end(record, runs_pb2.OUTCOME_SUCCEEDED)
        elif kind == "failed":
            self._failed(record, part)
        elif kind == "snoozed":
            self._snoozed(record, part)
        else:
            declined = runs_pb2.SKIP_REASON_APP_DECLINED
            outcome = runs_pb2.OUTCOME_SKIPPED
            self._book.end(record, outcome, reason=declined, cause=part.reason)

    def _failed(self, record: JobRecord, failed: pb.Failed) -> None:
        job = record.job
        job.failures += 1
        job.error = failed.message
        if failed.retryable and job.failures < record.attempts_max:
            wait = record.backoff()
            if failed.HasField("retry_after"):
                wait = max(wait, failed.retry_after.ToTimedelta())
            self._book.later(record, self._book.clock.now + wait, failed.message)
        else:
            self._book.end(record, runs_pb2.OUTCOME_FAILED, cause=failed.message)

    def _snoozed(self, record: JobRecord, snoozed: pb.Snoozed) -> None:
        if snoozed.HasField("at"):
            due_at = snoozed.at.ToDatetime(tzinfo=UTC)
        else:
            due_at = self._book.clock.now + snoozed.after.ToTimedelta()
        self._book.later(record, due_at, "snoozed")

    def _failed_call(self, record: JobRecord, error: grpc.aio.AioRpcError) -> None:
        message = f"{error.code().name}: {error.details()}"
        if error.code() not in _UNDELIVERABLE:
            self._failed(record, pb.Failed(message=message, retryable=True))
            return
        if error.details() == "the stream broke":
            record.job.rescues += 1
        self._book.later(record, self._book.clock.now, message)

    def _cancelled(self, record: JobRecord) -> None:
        operator = runs_pb2.SKIP_REASON_OPERATOR
        self._book.end(record, runs_pb2.OUTCOME_SKIPPED, reason=operator, cause="cancelled")
