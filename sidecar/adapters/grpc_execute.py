"""The Execute call: one attempt of one run as a gRPC message, and the app's answer in our words.

Guarantees: every way in which a call can end becomes an `Answer`; cancelling it cancels the call;
the app sees the deadline that the pipeline keeps.
"""

import asyncio
import re
from datetime import timedelta
from typing import Protocol

import grpc
from google.protobuf.duration_pb2 import Duration

from sidecar import metrics
from sidecar._proto.baton.v1 import callback_pb2, runs_pb2
from sidecar.adapters.app_stub import AppStub
from sidecar.adapters.clock import boottime, utc_now
from sidecar.adapters.cluster_context import context_metadata
from sidecar.adapters.convert import duration, timestamp, to_seconds
from sidecar.model.run import (
    Answer,
    CallFailed,
    Declined,
    ExecutionMetadata,
    Failed,
    Run,
    RunKind,
    Succeeded,
)
from sidecar.tracing import Span, Tracer, end_span, execution_of

KINDS = {
    RunKind.SINGLETON: runs_pb2.RUN_KIND_SINGLETON,
    RunKind.SCHEDULE: runs_pb2.RUN_KIND_SCHEDULE,
    RunKind.TRIGGER: runs_pb2.RUN_KIND_TRIGGER,
}
RETRY_AFTER_SECONDS_MAX = 7 * 86_400.0
_DETAILS_MAX = 4096
# What gRPC says of a message that this side, and not the app, refused.
_TOO_LARGE = re.compile(r"CLIENT: Received message larger than max \((\d+) vs\. (\d+)\)")


class Link(Protocol):
    """The channel to the app; see `grpc_app.AppLink`."""

    channel: grpc.aio.Channel
    stub: AppStub

    def metadata(self) -> tuple[tuple[str, str], ...]: ...


class GrpcExecute:
    """Calls Execute of the app next to this sidecar."""

    def __init__(self, link: Link, tracer: Tracer, *, cluster: str, runner_id: str) -> None:
        self._link = link
        self._tracer = tracer
        self._cluster = cluster
        self._runner_id = runner_id
        self._answered_seconds = metrics.CALLBACK_SECONDS.labels("Execute", "OK")

    @property
    def connected(self) -> bool:
        return self._link.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def wait_connected(self, seconds: float) -> bool:
        started_at = boottime()
        try:
            async with asyncio.timeout(seconds):
                await self._link.channel.channel_ready()
        except TimeoutError:
            unavailable = metrics.CALLBACK_SECONDS.labels("Execute", "UNAVAILABLE")
            unavailable.observe(boottime() - started_at)
            return False
        return True

    async def execute(self, run: Run) -> Answer:
        with self._tracer.callback_span(execution_of(run)) as span:
            answer = await self._answer(run, span)
            end_span(span, answer)
            return answer

    async def _answer(self, run: Run, span: Span) -> Answer:
        started_at, code = boottime(), "OK"
        try:
            return _answer(await self._call(run, span))
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            if too_large := _TOO_LARGE.fullmatch(error.details() or ""):
                # Final, as one that just fits into a message is: it would be too large again.
                problem = f"the app returned an answer of {too_large[1]} bytes, more than"
                return Failed(f"{problem} {too_large[2]}", code="TOO_LARGE")
            return CallFailed(code, " ".join((error.details() or "").split())[:_DETAILS_MAX])
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        finally:
            callback_seconds = (
                self._answered_seconds
                if code == "OK"
                else metrics.CALLBACK_SECONDS.labels("Execute", code)
            )
            callback_seconds.observe(boottime() - started_at)

    async def _call(self, run: Run, span: Span) -> callback_pb2.ExecuteResponse:
        seconds = run.limits.timeout_seconds or None
        request = self._request(run, seconds)
        about = context_metadata(request.context)
        with metrics.RUNS_IN_FLIGHT.track_inprogress():
            return await self._link.stub.Execute(
                request, timeout=seconds, metadata=(*self._link.metadata(), *about, *span.metadata)
            )

    def _request(self, run: Run, seconds: float | None) -> callback_pb2.ExecuteRequest:
        deadline = utc_now() + timedelta(seconds=seconds) if seconds else None
        return callback_pb2.ExecuteRequest(
            context=callback_pb2.ClusterContext(
                cluster=self._cluster,
                runner_id=self._runner_id,
                group=run.group,
                is_leader=True,
                epoch=run.ref.epoch,
                entity_type=run.kind.entity_type,
                entity_id=run.name,
            ),
            run_id=run.ref.run_id,
            kind=KINDS[run.kind],
            name=run.name,
            attempt=run.ref.attempt,
            scheduled_at=timestamp(run.scheduled_at),
            deadline=timestamp(deadline),
            idempotency_key=run.idempotency_key,
            payload=run.payload,
            content_type=run.content_type,
            state=run.state,
            state_version=run.state_version,
            checkpoints=[runs_pb2.Checkpoint(step=c.step, value=c.value) for c in run.checkpoints],
            metadata=metadata_message(run.metadata),
        )


def _answer(response: callback_pb2.ExecuteResponse) -> Answer:
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
        case _:
            done = response.succeeded
            return Succeeded(done.result, done.state if done.HasField("state") else None)


def _wait(asked: Duration) -> float:
    """The app may ask for anything; a wait is neither negative nor endless."""
    return min(max(0.0, to_seconds(asked)), RETRY_AFTER_SECONDS_MAX)


def metadata_message(metadata: ExecutionMetadata) -> runs_pb2.ExecutionMetadata:
    return runs_pb2.ExecutionMetadata(
        last_run_at=timestamp(metadata.last_run_at),
        last_success_at=timestamp(metadata.last_success_at),
        run_count=metadata.run_count,
        last_error=metadata.last_error,
        missed_count=metadata.missed_count,
        average_duration=duration(metadata.average_seconds),
        last_duration=duration(metadata.last_seconds),
    )
