"""The jobs of the fake: what is due, what waits for what, and how a job moves on.

Time stands still unless a test moves it: retries, delays and snoozes wait for `JobClock.advance`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import grpc

from baton.testing._common import Refused, now
from baton.testing._runs import RunBook, RunRecord
from baton.v1 import job_types_pb2 as types
from baton.v1 import jobs_pb2 as pb
from baton.v1 import runs_pb2

_LIVE = {runs_pb2.RUN_STATE_QUEUED, runs_pb2.RUN_STATE_WAITING, runs_pb2.RUN_STATE_RUNNING}
_ATTEMPTS = 3


class JobClock:
    """The time of the jobs: it moves only when it is told to."""

    def __init__(self) -> None:
        self.now = now()

    def advance(self, by: timedelta) -> None:
        """Moves on."""
        self.now += by


@dataclass(eq=False)
class JobRecord:
    """A job; its attempts, steps and heartbeats are those of a run with the same id."""

    job: pb.Job
    spec: types.JobSpec
    record: RunRecord

    @property
    def is_live(self) -> bool:
        return self.job.state in _LIVE

    @property
    def attempts_max(self) -> int:
        return self.spec.retry.attempts or _ATTEMPTS

    def backoff(self) -> timedelta:
        """The wait after the last failure: doubling, no jitter."""
        retry = self.spec.retry
        first = retry.initial.ToTimedelta() if retry.HasField("initial") else timedelta(seconds=1)
        longest = retry.max.ToTimedelta() if retry.HasField("max") else timedelta(minutes=1)
        return min(first * int(2 ** (self.job.failures - 1)), longest)

    def shown(self, *, body: bool) -> pb.Job:
        """The job as it is returned; without payload, result and history in lists."""
        shown, run = pb.Job(), self.record.run
        shown.CopyFrom(self.job)
        shown.progress, shown.progress_message = run.progress, run.progress_message
        shown.history.extend(run.history)
        if not body:
            for part in ("payload", "result", "history"):
                shown.ClearField(part)
        return shown


class JobBook:
    """All jobs, and which of them may start."""

    def __init__(self, runs: RunBook) -> None:
        self.clock = JobClock()
        self.jobs: dict[int, JobRecord] = {}
        self.paused: dict[str, str] = {}
        self.batches_closed: dict[str, types.JobSpec | None] = {}
        self.completions: dict[str, int] = {}
        self.changed = asyncio.Event()  # of the next change
        self._runs = runs
        self._requests: dict[str, list[pb.SubmittedJob]] = {}

    def submit(self, specs: Iterable[types.JobSpec], request_id: str) -> list[pb.SubmittedJob]:
        """Stores jobs, all or none; the same request id gives the same answer."""
        if request_id and request_id in self._requests:
            return self._requests[request_id]
        specs = [*specs]
        found = [self._earlier(spec) for spec in specs]
        submitted = [
            self._unique(spec, earlier) if earlier else self._add(spec)
            for spec, earlier in zip(specs, found, strict=True)
        ]
        self._requests[request_id] = submitted
        self.ring()
        return submitted

    def due(self) -> list[JobRecord]:
        """The jobs that may start, the most important and the oldest first."""
        busy: defaultdict[tuple[str, str], int] = defaultdict(int)
        ready = []
        for record in [*self.jobs.values()]:  # in the order of submission
            if not record.is_live:
                continue
            job = record.job
            first_of_key = not job.key or not busy[job.name, job.key]
            busy[job.name, job.key] += 1
            if self._expired(record) or not first_of_key or job.queue in self.paused:
                continue
            idle = job.state != runs_pb2.RUN_STATE_RUNNING
            if idle and job.due_at.ToDatetime(tzinfo=UTC) <= self.clock.now:
                ready.append(record)
        return sorted(ready, key=lambda record: (record.job.priority, record.job.job_id))

    def move(self, record: JobRecord, state: runs_pb2.RunState, cause: str = "") -> None:
        """The one place where a job changes its state."""
        job, run = record.job, record.record.run
        job.state, run.outcome, run.reason = state, job.outcome, job.reason
        self._runs.move(run, state, cause)
        if state == runs_pb2.RUN_STATE_ENDED:
            job.finished_at.FromDatetime(self.clock.now)
            self._complete(job.batch)
        self.ring()

    def end(
        self,
        record: JobRecord,
        outcome: runs_pb2.Outcome,
        *,
        reason: runs_pb2.SkipReason = runs_pb2.SKIP_REASON_UNSPECIFIED,
        cause: str = "",
    ) -> None:
        """Ends a job."""
        record.job.outcome, record.job.reason = outcome, reason
        self.move(record, runs_pb2.RUN_STATE_ENDED, cause)

    def later(self, record: JobRecord, due_at: datetime, cause: str = "") -> None:
        """Lets a job wait for its next attempt."""
        record.job.due_at.FromDatetime(due_at)
        self.move(record, runs_pb2.RUN_STATE_WAITING, cause)

    def ring(self) -> None:
        """Wakes whoever waits for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds."""
        while not condition():
            await self.changed.wait()

    def is_dead(self, record: JobRecord) -> bool:
        """Whether it is a dead letter."""
        return record.job.outcome == runs_pb2.OUTCOME_FAILED

    def batch(self, name: str) -> list[JobRecord]:
        """The jobs of a batch."""
        return [record for record in self.jobs.values() if record.job.batch == name]

    def close_batch(self, name: str, on_complete: types.JobSpec | None) -> None:
        """No more jobs of it will come."""
        self.batches_closed[name] = on_complete
        self._complete(name)

    def _complete(self, name: str) -> None:
        follow_up = self.batches_closed.get(name)
        if follow_up is None or name in self.completions:
            return
        if not any(record.is_live for record in self.batch(name)):
            self.completions[name] = self._add(follow_up).job_id

    def _add(self, spec: types.JobSpec) -> pb.SubmittedJob:
        kind = runs_pb2.RUN_KIND_JOB
        record = self._runs.add(spec.name, "", kind, spec.payload)
        if spec.HasField("timeout"):
            record.timeout = spec.timeout.ToTimedelta().total_seconds()
        if spec.key:
            record.state_key = f"job-state:{spec.name}/{spec.key}"
        due_at = self.clock.now + spec.delay.ToTimedelta()
        if spec.HasField("due_at"):
            due_at = max(spec.due_at.ToDatetime(tzinfo=UTC), self.clock.now)
        job = pb.Job(
            job_id=record.run.run_id,
            name=spec.name,
            queue=spec.queue or "default",
            priority=spec.priority or types.JOB_PRIORITY_NORMAL,
            key=spec.key,
            labels=spec.labels,
            batch=spec.batch,
            state=runs_pb2.RUN_STATE_QUEUED,
            created_at=self.clock.now,
            due_at=due_at,
            content_type=spec.content_type or "application/json",
            payload=spec.payload,
            idempotency_key=record.run.idempotency_key,
        )
        if spec.HasField("expires_at"):
            job.expires_at.CopyFrom(spec.expires_at)
        self.jobs[job.job_id] = JobRecord(job, spec, record)
        return pb.SubmittedJob(job_id=job.job_id)

    def _earlier(self, spec: types.JobSpec) -> JobRecord | None:
        """The job that makes this one a duplicate."""
        if not spec.HasField("unique"):
            return None
        for record in reversed(self.jobs.values()):
            if record.spec.name == spec.name and _same(record.spec, spec):
                age = self.clock.now - record.job.created_at.ToDatetime(tzinfo=UTC)
                window = spec.unique.HasField("window")
                counts = age < spec.unique.window.ToTimedelta() if window else record.is_live
                if counts:
                    if spec.unique.on_conflict == types.JOB_CONFLICT_REJECT:
                        exists = grpc.StatusCode.ALREADY_EXISTS
                        raise Refused(exists, f"job {record.job.job_id} is there already")
                    return record
        return None

    def _unique(self, spec: types.JobSpec, earlier: JobRecord) -> pb.SubmittedJob:
        job = earlier.job
        replaces = spec.unique.on_conflict == types.JOB_CONFLICT_REPLACE
        if replaces and job.state == runs_pb2.RUN_STATE_QUEUED:
            job.payload = earlier.record.payload = spec.payload
            job.priority = spec.priority or job.priority
            if spec.HasField("due_at"):
                job.due_at.CopyFrom(spec.due_at)
            else:
                job.due_at.FromDatetime(self.clock.now + spec.delay.ToTimedelta())
        return pb.SubmittedJob(job_id=job.job_id, duplicate=True)

    def _expired(self, record: JobRecord) -> bool:
        job = record.job
        late = (
            job.HasField("expires_at")
            and not job.attempt
            and job.expires_at.ToDatetime(tzinfo=UTC) <= self.clock.now
        )
        if late:
            reason = runs_pb2.SKIP_REASON_EXPIRED
            self.end(record, runs_pb2.OUTCOME_SKIPPED, reason=reason)
        return late


def _same(one: types.JobSpec, other: types.JobSpec) -> bool:
    if other.unique.key or one.unique.key:
        return one.unique.key == other.unique.key
    return one.payload == other.payload
