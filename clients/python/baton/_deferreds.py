"""Durable promises: made here or by a run, awaited here, completed by whoever holds the token."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import grpc

from baton._connection import Connection, backoff_seconds
from baton._values import from_json, to_bytes
from baton.errors import BatonError, DeadlineExceeded, DeferredFailed
from baton.v1 import deferreds_pb2 as pb
from baton.v1 import runs_pb2
from baton.v1.deferreds_pb2_grpc import DeferredsStub

_AWAIT_SECONDS = 30.0


class Deferred:
    """A promise; hand out `token`, then `await` it: its JSON value, or `DeferredFailed`."""

    def __init__(self, token: str, deferreds: Deferreds) -> None:
        self.token = token
        self._deferreds = deferreds

    def __await__(self) -> Generator[Any, None, Any]:
        return self._json().__await__()

    async def raw(self) -> bytes:
        """Waits for it; its value as bytes."""
        deferred = await self._deferreds.wait(self.token)
        if deferred.state == pb.DEFERRED_STATE_COMPLETED:
            return deferred.value
        raise DeferredFailed(deferred.error or "expired")

    async def _json(self) -> Any:
        value = await self.raw()
        try:
            return from_json(value)
        except ValueError:
            raise DeferredFailed("the value is not JSON; read it with raw()") from None


class Deferreds:
    """Makes, awaits and completes deferreds; works on any pod."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self, name: str, *, ttl: timedelta | None = None, run: runs_pb2.RunRef | None = None
    ) -> Deferred:
        """The deferred of that name (of that run): made, or the same one again."""
        request = pb.DeferredsCreateRequest(name=name, run=run, ttl=ttl)
        response = await self._connection.call(self._stub.Create, request)
        return Deferred(response.token, self)

    async def wait(self, token: str) -> pb.Deferred:
        """The deferred once it is no longer pending, however long that takes."""
        request = pb.DeferredsAwaitRequest(token=token, timeout=timedelta(seconds=_AWAIT_SECONDS))
        waits = backoff_seconds()
        while True:
            try:
                response = await self._connection.call(
                    self._stub.Await, request, timeout=1.5 * _AWAIT_SECONDS
                )
            except DeadlineExceeded:
                waits = backoff_seconds()  # still pending: nobody has to wait before asking again
            except BatonError as error:
                if error.code is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(next(waits))
            else:
                return response.deferred

    async def complete(self, token: str, value: Any = None) -> pb.Deferred:
        """Completes it; the first completion stands, another value is `AlreadyExists`."""
        request = pb.DeferredsCompleteRequest(token=token, value=to_bytes(value))
        return (await self._connection.call(self._stub.Complete, request)).deferred

    async def fail(self, token: str, error: str) -> pb.Deferred:
        """Completes it with an error, for whoever awaits it."""
        request = pb.DeferredsFailRequest(token=token, error=error)
        return (await self._connection.call(self._stub.Fail, request)).deferred

    async def get(self, token: str) -> pb.Deferred:
        """The deferred as it is now."""
        request = pb.DeferredsGetRequest(token=token)
        return (await self._connection.call(self._stub.Get, request)).deferred

    @property
    def _stub(self) -> DeferredsStub:
        return self._connection.stub(DeferredsStub)
