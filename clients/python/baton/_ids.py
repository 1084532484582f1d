"""Cluster-wide ids, handed out from a block that is fetched ahead.

A block is used for a second at most: an id tells when it was made, and an old block would lie
about it.
"""

from __future__ import annotations

import asyncio
from collections import deque

from baton._clock import boottime
from baton._connection import Connection
from baton.v1 import ids_pb2 as pb
from baton.v1.ids_pb2_grpc import IdsStub

BLOCK_SIZE = 100
BLOCK_SECONDS = 1.0


class Ids:
    """Ids in rising order, whichever task asks for them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._block: deque[int] = deque()
        self._fetched_at = 0.0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """The next id; asks the sidecar when the block is used up or old."""
        async with self._lock:
            if not self._block or boottime() - self._fetched_at > BLOCK_SECONDS:
                asked_at = boottime()
                request = pb.IdsGenerateRequest(count=BLOCK_SIZE)
                stub = self._connection.stub(IdsStub)
                self._block = deque((await self._connection.call(stub.Generate, request)).ids)
                self._fetched_at = asked_at  # not before: an answer that fails makes nothing new
            return self._block.popleft()
