"""The Deferreds service: converts messages; the rules are in `sidecar/deferreds.py`."""

from typing import Any, Protocol

from sidecar._proto.baton.v1 import deferreds_pb2 as pb
from sidecar._proto.baton.v1 import deferreds_pb2_grpc
from sidecar.adapters.convert import run_of, seconds_of, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, position_of, token_of
from sidecar.adapters.grpc_server.reports import Reports, kept, pair_of
from sidecar.model.deferred import Deferred, DeferredState
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.validation import check_run_id

_STATES = {
    DeferredState.PENDING: pb.DEFERRED_STATE_PENDING,
    DeferredState.COMPLETED: pb.DEFERRED_STATE_COMPLETED,
    DeferredState.FAILED: pb.DEFERRED_STATE_FAILED,
    DeferredState.EXPIRED: pb.DEFERRED_STATE_EXPIRED,
}
_STATE_FILTER: dict[int, DeferredState] = {number: state for state, number in _STATES.items()}
_AWAIT_SECONDS = 60.0


class Promises(Protocol):
    async def create(self, name: str, *, run: RunRef | None, ttl_seconds: float | None) -> str: ...
    async def wait(self, token: str, *, seconds: float) -> Deferred: ...
    async def complete(self, token: str, value: bytes) -> Deferred: ...
    async def fail(self, token: str, error: str) -> Deferred: ...
    async def get(self, token: str) -> Deferred: ...


class DeferredsService(deferreds_pb2_grpc.DeferredsServicer):
    def __init__(self, deferreds: Promises, reports: Reports | None = None) -> None:
        self._deferreds = deferreds
        self._reports = reports

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

    async def List(
        self, request: pb.DeferredsListRequest, context: Any
    ) -> pb.DeferredsListResponse:
        size = checked_size(request.page_size)
        if request.state and request.state not in _STATE_FILTER:
            raise InvalidArgument("state", f"{request.state} is not known")
        if request.run_id:
            check_run_id(request.run_id)
        listed = ("deferreds", str(request.run_id), str(request.state))
        found = await kept(self._reports).deferreds(
            request.run_id or None,
            _STATE_FILTER.get(request.state),
            before=pair_of(position_of(request.page_token, *listed)),
            limit=size + 1,
        )
        last = f"{found[size - 1].run_id} {found[size - 1].name}" if len(found) > size else ""
        return pb.DeferredsListResponse(
            deferreds=[_message("", deferred) for deferred in found[:size]],
            next_page_token=token_of(last, *listed),
        )

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
