"""Runs, terms and answers as messages of the contract, for both ways to reach the app."""

from datetime import timedelta
from typing import cast

from google.protobuf.duration_pb2 import Duration

from sidecar._proto.baton.v1 import callback_pb2, job_types_pb2, leadership_pb2, runs_pb2
from sidecar.adapters.app.job_specs import spec_of
from sidecar.adapters.clock import boottime, utc_now
from sidecar.adapters.convert import duration, instant_of, timestamp, to_seconds
from sidecar.model.election_types import LeaderView
from sidecar.model.errors import InvalidArgument
from sidecar.model.job import JobContext
from sidecar.model.job_spec import check_spec
from sidecar.model.run import (
    Answer,
    Declined,
    ExecutionMetadata,
    Failed,
    Run,
    RunKind,
    Snoozed,
    Succeeded,
)
from sidecar.model.term import LossReason, Term

KINDS = {
    RunKind.SINGLETON: runs_pb2.RUN_KIND_SINGLETON,
    RunKind.SCHEDULE: runs_pb2.RUN_KIND_SCHEDULE,
    RunKind.TRIGGER: runs_pb2.RUN_KIND_TRIGGER,
    RunKind.JOB: runs_pb2.RUN_KIND_JOB,
}
RETRY_AFTER_SECONDS_MAX = 7 * 86_400.0
_REASONS = {
    LossReason.RESIGNED: callback_pb2.LOSS_REASON_RESIGNED,
    LossReason.SHUTDOWN: callback_pb2.LOSS_REASON_SHUTDOWN,
    LossReason.LEASE_LOST: callback_pb2.LOSS_REASON_LEASE_LOST,
    LossReason.APP_UNHEALTHY: callback_pb2.LOSS_REASON_APP_UNHEALTHY,
    LossReason.STALE: callback_pb2.LOSS_REASON_STALE,
    LossReason.FENCED: callback_pb2.LOSS_REASON_FENCED,
}


class Messages:
    """Builds the messages of one runner."""

    def __init__(self, *, cluster: str, runner_id: str) -> None:
        self.cluster = cluster
        self.runner_id = runner_id

    def become(self, term: Term, trusted_until: float) -> callback_pb2.OnBecomeLeaderRequest:
        return callback_pb2.OnBecomeLeaderRequest(
            context=self._context(term, is_leader=True),
            trusted_for=duration(max(0.0, trusted_until - boottime())),
            trusted_until_boottime=duration(trusted_until),
        )

    def lose(
        self, term: Term, reason: LossReason, timeout: float
    ) -> callback_pb2.OnLoseLeadershipRequest:
        return callback_pb2.OnLoseLeadershipRequest(
            context=self._context(term, is_leader=False),
            reason=_REASONS[reason],
            deadline=timestamp(utc_now() + timedelta(seconds=timeout)),
        )

    def execute(self, run: Run) -> callback_pb2.ExecuteRequest:
        request = callback_pb2.ExecuteRequest()
        fill_execute(request, run)
        request.context.cluster, request.context.runner_id = self.cluster, self.runner_id
        return request

    def _context(self, term: Term, *, is_leader: bool) -> callback_pb2.ClusterContext:
        return callback_pb2.ClusterContext(
            cluster=self.cluster,
            runner_id=self.runner_id,
            group=term.group,
            is_leader=is_leader,
            epoch=term.epoch,
        )


def fill_execute(request: callback_pb2.ExecuteRequest, run: Run) -> None:
    """Everything but the cluster and the runner. Fields that are empty cost nothing."""
    ref, context = run.ref, request.context
    if run.job:
        _fill_job(request, run.job)
    else:
        context.group = run.group
        context.is_leader = True
    context.epoch = ref.epoch
    context.entity_type = run.kind.entity_type
    context.entity_id = run.entity_id
    request.run_id = ref.run_id
    request.kind = KINDS[run.kind]
    request.name = run.name
    request.attempt = ref.attempt
    request.scheduled_at.CopyFrom(timestamp(run.scheduled_at))
    if seconds := run.limits.timeout_seconds:
        request.deadline.CopyFrom(timestamp(utc_now() + timedelta(seconds=seconds)))
    request.idempotency_key = run.idempotency_key
    request.payload = run.payload
    request.content_type = run.content_type
    request.state = run.state
    request.state_version = run.state_version
    for checkpoint in run.checkpoints:
        request.checkpoints.add(step=checkpoint.step, value=checkpoint.value)
    _fill_metadata(request.metadata, run.metadata)


def _fill_job(request: callback_pb2.ExecuteRequest, job: JobContext) -> None:
    message = request.job
    message.queue = job.queue
    message.priority = cast(job_types_pb2.JobPriority, int(job.priority))
    if job.key:
        message.key = job.key
    if job.labels:
        message.labels.update(job.labels)
    if job.batch:
        message.batch = job.batch
    if job.submitted_at:
        message.submitted_at.CopyFrom(timestamp(job.submitted_at))
    if job.rescues:
        message.rescues = job.rescues


def answer_of(response: callback_pb2.ExecuteResponse) -> Answer:
    """A response without an outcome is a success."""
    match response.WhichOneof("outcome"):
        case "failed":
            failed = response.failed
            return Failed(
                failed.message,
                failed.code,
                failed.retryable,
                _wait(failed.retry_after) if failed.HasField("retry_after") else None,
                failed.state if failed.HasField("state") else None,
            )
        case "skipped":
            return Declined(response.skipped.reason)
        case "snoozed":
            return _snoozed(response.snoozed)
        case _:
            return _succeeded(response.succeeded)


def _succeeded(done: callback_pb2.Succeeded) -> Answer:
    state = done.state if done.HasField("state") else None
    if not done.jobs:
        return Succeeded(done.result, state)
    try:
        jobs = [spec_of(each, f"jobs[{number}]") for number, each in enumerate(done.jobs)]
        for number, job in enumerate(jobs):
            check_spec(job, f"jobs[{number}]")
    except InvalidArgument as error:
        return Failed(f"the follow-up jobs are not valid: {error}", code="INVALID_JOBS")
    return Succeeded(done.result, state, tuple(jobs))


def _snoozed(snoozed: callback_pb2.Snoozed) -> Answer:
    state = snoozed.state if snoozed.HasField("state") else None
    try:
        if snoozed.WhichOneof("until") == "at":
            return Snoozed(at=instant_of(snoozed, "at", "snoozed."), state=state)
        return Snoozed(after_seconds=_wait(snoozed.after), state=state)
    except InvalidArgument as error:
        return Failed(f"the time to snooze is not valid: {error}", code="INVALID_SNOOZE")


def _wait(asked: Duration) -> float:
    """The app may ask for anything; a wait is neither negative nor endless."""
    return min(max(0.0, to_seconds(asked)), RETRY_AFTER_SECONDS_MAX)


def metadata_message(metadata: ExecutionMetadata) -> runs_pb2.ExecutionMetadata:
    message = runs_pb2.ExecutionMetadata()
    _fill_metadata(message, metadata)
    return message


def _fill_metadata(message: runs_pb2.ExecutionMetadata, metadata: ExecutionMetadata) -> None:
    """Field by field: most are empty in most runs, and each run carries them."""
    if metadata.run_count:
        message.run_count = metadata.run_count
    if metadata.missed_count:
        message.missed_count = metadata.missed_count
    if metadata.last_error:
        message.last_error = metadata.last_error
    if metadata.last_run_at:
        message.last_run_at.CopyFrom(timestamp(metadata.last_run_at))
    if metadata.last_success_at:
        message.last_success_at.CopyFrom(timestamp(metadata.last_success_at))
    if metadata.average_seconds is not None:
        message.average_duration.CopyFrom(duration(metadata.average_seconds))
    if metadata.last_seconds is not None:
        message.last_duration.CopyFrom(duration(metadata.last_seconds))


def leader_message(view: LeaderView) -> leadership_pb2.Leader:
    now, trusted, drain = boottime(), view.trusted_until, view.drain_deadline
    drained_at = None if drain is None else utc_now() + timedelta(seconds=drain - now)
    return leadership_pb2.Leader(
        group=view.group,
        is_leader=view.is_leader,
        leader_runner_id=view.runner_id,
        leader_host=view.host,
        epoch=view.epoch,
        draining=view.draining,
        trusted_for=duration(max(0.0, trusted - now) if view.is_leader else None),
        trusted_until_boottime=duration(trusted if view.is_leader else None),
        drain_deadline=timestamp(drained_at),
    )
