"""The Leadership and Operations services."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration

from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
)
from sidecar.adapters.clock import boottime, utc_now
from sidecar.adapters.grpc_server.paging import page
from sidecar.model.election_words import LeaderView


class Leadership(Protocol):
    def get(self, group: str) -> LeaderView: ...
    def all(self) -> list[LeaderView]: ...
    def watch(self, group: str) -> AsyncIterator[LeaderView]: ...
    async def resign(self, group: str) -> LeaderView: ...


class LeadershipService(leadership_pb2_grpc.LeadershipServicer):
    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    async def Get(
        self, request: leadership_pb2.LeadershipGetRequest, context: Any
    ) -> leadership_pb2.LeadershipGetResponse:
        leader = _leader(self._leadership.get(request.group))
        return leadership_pb2.LeadershipGetResponse(leader=leader)

    async def List(
        self, request: leadership_pb2.LeadershipListRequest, context: Any
    ) -> leadership_pb2.LeadershipListResponse:
        views, token = page(
            self._leadership.all(), lambda view: view.group, request.page_size, request.page_token
        )
        leaders = [_leader(view) for view in views]
        return leadership_pb2.LeadershipListResponse(leaders=leaders, next_page_token=token)

    async def Resign(
        self, request: leadership_pb2.LeadershipResignRequest, context: Any
    ) -> leadership_pb2.LeadershipResignResponse:
        leader = _leader(await self._leadership.resign(request.group))
        return leadership_pb2.LeadershipResignResponse(leader=leader)

    async def Watch(
        self, request: leadership_pb2.LeadershipWatchRequest, context: Any
    ) -> AsyncIterator[leadership_pb2.LeadershipWatchResponse]:
        async for view in self._leadership.watch(request.group):
            yield leadership_pb2.LeadershipWatchResponse(leader=_leader(view))


class OperationsService(operations_pb2_grpc.OperationsServicer):
    """`begin` starts the drain; `ended` waits until it is over."""

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


def _leader(view: LeaderView) -> leadership_pb2.Leader:
    leader = leadership_pb2.Leader(
        group=view.group,
        is_leader=view.is_leader,
        leader_runner_id=view.runner_id,
        leader_host=view.host,
        epoch=view.epoch,
        draining=view.draining,
    )
    now = boottime()
    if view.is_leader:
        leader.trusted_for.CopyFrom(_duration(max(0.0, view.trusted_until - now)))
        leader.trusted_until_boottime.CopyFrom(_duration(view.trusted_until))
    if view.drain_deadline is not None:
        wall = utc_now().timestamp() + view.drain_deadline - now
        leader.drain_deadline.FromNanoseconds(int(wall * 1e9))
    return leader


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(int(seconds * 1e9))
    return duration
