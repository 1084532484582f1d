"""The Execute call: one attempt of one run as a gRPC message, and the app's answer in our words.

Guarantees: every way in which a call can end becomes an `Answer`; cancelling it cancels the call;
the app sees the deadline that the pipeline keeps.
"""

import asyncio
import re
from typing import Protocol

import grpc

from sidecar import metrics
from sidecar._proto.baton.v1 import callback_pb2
from sidecar.adapters.app.messages import Messages, answer_of
from sidecar.adapters.app_stub import AppStub
from sidecar.adapters.clock import boottime
from sidecar.adapters.cluster_context import context_metadata
from sidecar.model.run import Answer, CallFailed, Failed, Run
from sidecar.tracing import Span, Tracer, end_span, execution_of

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
        self._messages = Messages(cluster=cluster, runner_id=runner_id)
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
            return answer_of(await self._call(run, span))
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
        request = self._messages.execute(run)
        about = context_metadata(request.context)
        with metrics.RUNS_IN_FLIGHT.track_inprogress():
            return await self._link.stub.Execute(
                request, timeout=seconds, metadata=(*self._link.metadata(), *about, *span.metadata)
            )
