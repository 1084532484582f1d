"""The Execute call: one attempt of one run as a gRPC message, and the app's answer in our words.

Guarantees: every way in which a call can end becomes an `Answer`; being cancelled cancels the call;
the app sees the same deadline that the sidecar keeps, and no time is taken off it for connecting.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from sidecar import metrics
from sidecar._proto.baton.v1 import callback_pb2, runs_pb2
from sidecar.adapters.app_stub import AppStub
from sidecar.adapters.clock import boottime, utc_now
from sidecar.adapters.cluster_context import context_metadata
from sidecar.model.run import (
    Answer,
    CallFailed,
    Checkpoint,
    Declined,
    Delivery,
    ExecutionMetadata,
    Failed,
    RunKind,
    Succeeded,
)

KINDS = {
    RunKind.SINGLETON: runs_pb2.RUN_KIND_SINGLETON,
    RunKind.SCHEDULE: runs_pb2.RUN_KIND_SCHEDULE,
    RunKind.TRIGGER: runs_pb2.RUN_KIND_TRIGGER,
}
RETRY_AFTER_SECONDS_MAX = 7 * 86_400.0
_DETAILS_MAX = 4096


class Invocation(Protocol):
    @property
    def delivery(self) -> Delivery: ...
    @property
    def state(self) -> bytes: ...
    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]: ...


class Link(Protocol):
    """The channel to the app; see `grpc_app.AppLink`."""

    channel: grpc.aio.Channel
    stub: AppStub

    def metadata(self) -> tuple[tuple[str, str], ...]: ...


class GrpcExecute:
    """Calls Execute of the app beside us. `trace` adds metadata such as `traceparent`."""

    def __init__(
        self,
        link: Link,
        *,
        cluster: str,
        runner_id: str,
        connect_seconds: float,
        trusted: Callable[[Delivery], bool] = lambda _: True,
        trace: Callable[[], tuple[tuple[str, str], ...]] = tuple,
    ) -> None:
        self._link = link
        self._cluster = cluster
        self._runner_id = runner_id
        self._connect_seconds = connect_seconds
        self._trusted = trusted
        self._trace = trace
        self._answered_seconds = metrics.CALLBACK_SECONDS.labels("Execute", "OK")

    async def execute(self, invocation: Invocation) -> Answer:
        started_at, code = boottime(), "OK"
        seconds = invocation.delivery.limits.timeout_seconds or None
        try:
            if not await self._connected(invocation.delivery):
                code = "UNAVAILABLE"
                return CallFailed(code, "no connection to the app", delivered=False)
            if seconds is None:
                return _answer(await self._call(invocation, None))
            async with asyncio.timeout(seconds):
                return _answer(await self._call(invocation, seconds))
        except TimeoutError:
            code = "DEADLINE_EXCEEDED"
            return CallFailed(code, f"no answer within {seconds:g} s")
        except grpc.aio.AioRpcError as error:
            code = error.code().name
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

    async def _connected(self, run: Delivery) -> bool:
        """Wait for the connection: a call that never left is no delivery, nor is one that may not
        leave any more because its term ended meanwhile."""
        if self._link.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return True
        try:
            async with asyncio.timeout(self._connect_seconds):
                await self._link.channel.channel_ready()
        except TimeoutError:
            return False
        return self._trusted(run)

    async def _call(
        self, invocation: Invocation, seconds: float | None
    ) -> callback_pb2.ExecuteResponse:
        request = self._request(invocation, seconds)
        about = context_metadata(request.context)
        with metrics.RUNS_IN_FLIGHT.track_inprogress():
            return await self._link.stub.Execute(
                request, timeout=seconds, metadata=(*self._link.metadata(), *about, *self._trace())
            )

    def _request(
        self, invocation: Invocation, seconds: float | None
    ) -> callback_pb2.ExecuteRequest:
        run = invocation.delivery
        request = callback_pb2.ExecuteRequest(
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
            idempotency_key=run.idempotency_key,
            payload=run.payload,
            content_type=run.content_type,
            state=invocation.state,
            state_version=run.state_version,
            checkpoints=[
                runs_pb2.Checkpoint(step=c.step, value=c.value) for c in invocation.checkpoints
            ],
            metadata=metadata_message(run.metadata),
        )
        if seconds:
            request.deadline.FromDatetime(utc_now() + timedelta(seconds=seconds))
        return request


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
    return min(max(0.0, asked.seconds + asked.nanos / 1e9), RETRY_AFTER_SECONDS_MAX)


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


def timestamp(instant: datetime | None) -> Timestamp | None:
    """Unset for None: the constructors of messages take it so."""
    if instant is None:
        return None
    # FromDatetime of protobuf takes ten times as long, and each Execute carries several.
    whole = int(instant.replace(microsecond=0).timestamp())
    return Timestamp(seconds=whole, nanos=instant.microsecond * 1000)


def duration(seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    whole, nanos = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(seconds=whole, nanos=nanos)
