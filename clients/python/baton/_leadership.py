"""Who leads which group, as any pod's sidecar knows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from baton._connection import Connection
from baton._paging import pages
from baton.v1 import leadership_pb2 as pb
from baton.v1.leadership_pb2_grpc import LeadershipStub


class Leadership:
    """Reads leadership and gives it up. Whether this app may act now: `Baton.is_leader`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, group: str = "default") -> pb.Leader:
        """Who leads a group now."""
        request = pb.LeadershipGetRequest(group=group)
        return (await self._connection.call(self._stub.Get, request)).leader

    async def list(self) -> list[pb.Leader]:
        """Who leads each group, by name."""
        found = pages(self._connection, self._stub.List, pb.LeadershipListRequest())
        return [leader async for page in found for leader in page.leaders]

    async def resign(self, group: str = "default") -> pb.Leader:
        """Begins to hand the group over, on whichever pod it is led."""
        request = pb.LeadershipResignRequest(group=group)
        return (await self._connection.call(self._stub.Resign, request)).leader

    async def watch(self, group: str = "default") -> AsyncGenerator[pb.Leader, None]:
        """The leader of a group, now and after every change, until the stream breaks."""
        request = pb.LeadershipWatchRequest(group=group)
        async with aclosing(self._connection.stream(self._stub.Watch, request)) as stream:
            async for message in stream:
                yield message.leader

    @property
    def _stub(self) -> LeadershipStub:
        return self._connection.stub(LeadershipStub)
