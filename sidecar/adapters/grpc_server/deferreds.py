"""The Deferreds service: converts messages; the rules are in `sidecar/deferreds.py`."""

from typing import Any, Protocol

from sidecar._proto.baton.v1 import deferreds_pb2 as pb
from sidecar._proto.baton.v1 import deferreds_pb2_grpc
from sidecar.adapters.convert import run_of, seconds_of, timestamp
from sidecar.model.deferred import Deferred, DeferredState
from sidecar.model.run import RunRef

_STATES = {
    DeferredState.PENDING: pb.DEFERRED_STATE_PENDING,
    DeferredState.COMPLETED: pb.DEFERRED_STATE_COMPLETED,
    DeferredState.FAILED: pb.DEFERRED_STATE_FAILED,
    DeferredState.EXPIRED: pb.DEFERRED_STATE_EXPIRED,
}
_AWAIT_SECONDS = 60.0


class Promises(Protocol):
    async def create(self, name: str, *, run: RunRef | None, ttl_seconds: float | None) -> str: ...
    async def wait(self, token: str, *, seconds: float) -> Deferred: ...
    async def complete(self, token: str, value: bytes) -> Deferred: ...
    async def fail(self, token: str, error: str) -> Deferred: ...
    async def get(self, token: str) -> Deferred: ...


class DeferredsService(deferreds_pb2_grpc.DeferredsServicer):
    def __init__(self, deferreds: Promises) -> None:
        self._deferreds = deferreds

    async def Create(
        self, request: pb.DeferredsCreateRequest, context: Any
    ) -> pb.DeferredsCreateResponse:
        token = await self._deferreds.create(
            request.name,
            run=run_of(request),
            ttl_seconds=seconds_of(request, "ttl"),
        )
        return pb.DeferredsCreateResponse(token=token)

    async def Await(
        self, request: pb.DeferredsAwaitRequest, context: Any
    ) -> pb.DeferredsAwaitResponse:
        seconds = seconds_of(request, "timeout")
        deferred = await self._deferreds.wait(
            request.token, seconds=_AWAIT_SECONDS if seconds is None else seconds
        )
        return pb.DeferredsAwaitResponse(deferred=_message(request.token, deferred))

    async def Complete(
        self, request: pb.DeferredsCompleteRequest, context: Any
    ) -> pb.DeferredsCompleteResponse:
        deferred = await self._deferreds.complete(request.token, request.value)
        return pb.DeferredsCompleteResponse(deferred=_message(request.token, deferred))

    async def Fail(
        self, request: pb.DeferredsFailRequest, context: Any
    ) -> pb.DeferredsFailResponse:
        deferred = await self._deferreds.fail(request.token, request.error)
        return pb.DeferredsFailResponse(deferred=_message(request.token, deferred))

    async def Get(self, request: pb.DeferredsGetRequest, context: Any) -> pb.DeferredsGetResponse:
        deferred = await self._deferreds.get(request.token)
        return pb.DeferredsGetResponse(deferred=_message(request.token, deferred))


def _message(token: str, deferred: Deferred) -> pb.Deferred:
    return pb.Deferred(
        token=token,
        name=deferred.name,
        run_id=deferred.run_id,
        state=_STATES[deferred.state],
        value=deferred.value,
        error=deferred.error,
        created_at=timestamp(deferred.created_at),
        finished_at=timestamp(deferred.finished_at),
        expires_at=timestamp(deferred.expires_at),
    )
