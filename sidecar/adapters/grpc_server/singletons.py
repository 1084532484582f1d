"""The Singletons service: the singletons of the config, and their last executions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sidecar._proto.baton.v1 import singletons_pb2, singletons_pb2_grpc
from sidecar.adapters.app.messages import metadata_message
from sidecar.adapters.convert import timestamp
from sidecar.adapters.grpc_server.paging import fitting, page, position_of, token_of
from sidecar.model.definitions import Singleton
from sidecar.model.election_types import LeaderView
from sidecar.model.errors import InvalidArgument, NotFound
from sidecar.model.health import EntityKey
from sidecar.model.run import ExecutionMetadata


class Remembered(Protocol):
    @property
    def metadata(self) -> ExecutionMetadata: ...
    @property
    def heartbeat_at(self) -> datetime | None: ...


class Executions(Protocol):
    async def of_singletons(self, names: Sequence[str]) -> Mapping[str, Remembered]: ...


class SingletonsService(singletons_pb2_grpc.SingletonsServicer):
    def __init__(
        self,
        declared: Sequence[Singleton],
        executions: Executions,
        leader: Callable[[str], LeaderView],
        stale_reasons: Callable[[], Mapping[EntityKey, str]],
    ) -> None:
        self._declared = sorted(declared, key=lambda singleton: singleton.name)
        self._executions = executions
        self._leader = leader
        self._stale_reasons = stale_reasons

    async def Get(
        self, request: singletons_pb2.SingletonsGetRequest, context: Any
    ) -> singletons_pb2.SingletonsGetResponse:
        if not request.name:
            raise InvalidArgument("name", "is missing")
        found = [singleton for singleton in self._declared if singleton.name == request.name]
        if not found:
            raise NotFound(f"name: there is no singleton {request.name!r} in the configuration")
        return singletons_pb2.SingletonsGetResponse(singleton=(await self._shown(found))[0])

    async def List(
        self, request: singletons_pb2.SingletonsListRequest, context: Any
    ) -> singletons_pb2.SingletonsListResponse:
        after = position_of(request.page_token, "singletons")
        found, last = page(self._declared, lambda s: s.name, request.page_size, after)
        shown = fitting(await self._shown(found))
        if len(shown) < len(found):
            last = shown[-1].name
        token = token_of(last, "singletons")
        return singletons_pb2.SingletonsListResponse(singletons=shown, next_page_token=token)

    async def _shown(self, found: Sequence[Singleton]) -> list[singletons_pb2.Singleton]:
        remembered = await self._executions.of_singletons([s.name for s in found])
        stale = self._stale_reasons()
        return [
            self._message(s, remembered.get(s.name), stale.get(("singleton", s.name), ""))
            for s in found
        ]

    def _message(
        self, singleton: Singleton, remembered: Remembered | None, stale_reason: str
    ) -> singletons_pb2.Singleton:
        metadata = remembered.metadata if remembered else ExecutionMetadata()
        return singletons_pb2.Singleton(
            name=singleton.name,
            group=singleton.group,
            leader=self._leader(singleton.group).runner_id,
            metadata=metadata_message(metadata),
            state_version=singleton.state.version,
            last_heartbeat=timestamp(remembered.heartbeat_at if remembered else None),
            stale=bool(stale_reason),
            stale_reason=stale_reason,
        )
