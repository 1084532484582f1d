"""The singletons of the cluster, as the configuration names them."""

from __future__ import annotations

from baton._connection import Connection
from baton._paging import pages
from baton.v1 import singletons_pb2 as pb
from baton.v1.singletons_pb2_grpc import SingletonsStub


class Singletons:
    """Reads singletons."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, name: str) -> pb.Singleton:
        """One singleton."""
        request = pb.SingletonsGetRequest(name=name)
        return (await self._connection.call(self._stub.Get, request)).singleton

    async def list(self) -> list[pb.Singleton]:
        """All singletons, by name."""
        found = pages(self._connection, self._stub.List, pb.SingletonsListRequest())
        return [singleton async for page in found for singleton in page.singletons]

    @property
    def _stub(self) -> SingletonsStub:
        return self._connection.stub(SingletonsStub)
