"""The Ids service."""

from typing import Any, Protocol

from sidecar._proto.baton.v1 import ids_pb2, ids_pb2_grpc
from sidecar.adapters.convert import timestamp
from sidecar.model.snowflake import Parts


class Ids(Protocol):
    async def generate(self, count: int) -> list[int]: ...
    def decompose(self, id: int) -> Parts: ...


class IdsService(ids_pb2_grpc.IdsServicer):
    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    async def Generate(
        self, request: ids_pb2.IdsGenerateRequest, context: Any
    ) -> ids_pb2.IdsGenerateResponse:
        return ids_pb2.IdsGenerateResponse(ids=await self._ids.generate(request.count))

    async def Decompose(
        self, request: ids_pb2.IdsDecomposeRequest, context: Any
    ) -> ids_pb2.IdsDecomposeResponse:
        parts = self._ids.decompose(request.id)
        return ids_pb2.IdsDecomposeResponse(
            timestamp=timestamp(parts.at), machine_id=parts.machine, sequence=parts.sequence
        )
