"""The Leadership and Operations services."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Protocol

from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
)
from sidecar.adapters.app.messages import leader_message
from sidecar.adapters.grpc_server.paging import page, position_of, token_of
from sidecar.adapters.grpc_server.reports import Reports, history, kept
from sidecar.adapters.grpc_server.warnings import warn
from sidecar.model.election_types import LeaderView


class Leadership(Protocol):
    def get(self, group: str) -> LeaderView: ...
    def all(self) -> list[LeaderView]: ...
    def watch(self, group: str) -> AsyncIterator[LeaderView]: ...
    async def resign(self, group: str) -> LeaderView: ...


class LeadershipService(leadership_pb2_grpc.LeadershipServicer):
    """`warnings` come with each List: what an operator should know of this pod."""

    def __init__(
        self,
        leadership: Leadership,
        reports: Reports | None = None,
        warnings: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._leadership = leadership
        self._reports = reports
        self._warnings = warnings

    async def Get(
        self, request: leadership_pb2.LeadershipGetRequest, context: Any
    ) -> leadership_pb2.LeadershipGetResponse:
        leader = leader_message(self._leadership.get(request.group))
        return leadership_pb2.LeadershipGetResponse(leader=leader)

    async def List(
        self, request: leadership_pb2.LeadershipListRequest, context: Any
    ) -> leadership_pb2.LeadershipListResponse:
        after = position_of(request.page_token, "leaders")
        views, last = page(
            self._leadership.all(), lambda view: view.group, request.page_size, after
        )
        leaders = [leader_message(view) for view in views]
        warn(context, self._warnings())
        return leadership_pb2.LeadershipListResponse(
            leaders=leaders, next_page_token=token_of(last, "leaders")
        )

    async def History(
        self, request: leadership_pb2.LeadershipHistoryRequest, context: Any
    ) -> leadership_pb2.LeadershipHistoryResponse:
        return await history(kept(self._reports), request)

    async def Resign(
        self, request: leadership_pb2.LeadershipResignRequest, context: Any
    ) -> leadership_pb2.LeadershipResignResponse:
        leader = leader_message(await self._leadership.resign(request.group))
        return leadership_pb2.LeadershipResignResponse(leader=leader)

    async def Watch(
        self, request: leadership_pb2.LeadershipWatchRequest, context: Any
    ) -> AsyncIterator[leadership_pb2.LeadershipWatchResponse]:
        async for view in self._leadership.watch(request.group):
            yield leadership_pb2.LeadershipWatchResponse(leader=leader_message(view))


class OperationsService(operations_pb2_grpc.OperationsServicer):
    """`begin` starts the drain; `ended` waits for its end."""

    def __init__(self, begin: Callable[[], None], ended: Callable[[], Awaitable[None]]) -> None:
        self._begin = begin
        self._ended = ended

    async def Drain(
        self, request: operations_pb2.OperationsDrainRequest, context: Any
    ) -> operations_pb2.OperationsDrainResponse:
        self._begin()
        if request.wait:
            await self._ended()
        return operations_pb2.OperationsDrainResponse(drained=request.wait)
