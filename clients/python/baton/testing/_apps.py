"""The two ways in which the fake reaches an app: calls of AppCallback, and a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Protocol

import grpc
import grpc.aio

from baton.v1 import callback_pb2 as pb
from baton.v1.callback_pb2_grpc import AppCallbackStub

CALLBACK_SECONDS = 10.0


class Pending(Protocol):
    """A run that the app is executing: awaited for its answer, or cancelled."""

    def cancel(self) -> Any: ...
    def cancelled(self) -> bool: ...
    def __await__(self) -> Generator[Any, None, pb.ExecuteResponse]: ...


class App(Protocol):
    """An app that is reached in either way; its errors are those of gRPC."""

    async def become(self, request: pb.OnBecomeLeaderRequest) -> None: ...
    async def lose(self, request: pb.OnLoseLeadershipRequest) -> None: ...
    def execute(self, request: pb.ExecuteRequest, timeout: float | None) -> Pending: ...


class CalledApp:
    """An app that serves AppCallback."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self.stub = AppCallbackStub(channel)
        self._metadata = (("baton-token", token),) if token else ()

    async def become(self, request: pb.OnBecomeLeaderRequest) -> None:
        await self._call(self.stub.OnBecomeLeader, request)

    async def lose(self, request: pb.OnLoseLeadershipRequest) -> None:
        await self._call(self.stub.OnLoseLeadership, request)

    def execute(self, request: pb.ExecuteRequest, timeout: float | None) -> Pending:
        call: Any = self.stub.Execute(request, timeout=timeout, metadata=self._metadata)
        return call  # type: ignore[no-any-return]

    async def _call(self, method: Any, request: Any) -> None:
        await method(request, timeout=CALLBACK_SECONDS, metadata=self._metadata)


class StreamedRun:
    """A run that went out over a stream; `withdraw` tells the app to stop it."""

    def __init__(self, withdraw: Callable[[str], None]) -> None:
        self.answer: asyncio.Future[pb.ExecuteResponse] = asyncio.Future()
        self._withdraw = withdraw

    def cancel(self) -> None:
        if not self.answer.done():
            self._withdraw("cancelled")
            self.answer.cancel()

    def cancelled(self) -> bool:
        return self.answer.cancelled()

    def __await__(self) -> Generator[Any, None, pb.ExecuteResponse]:
        return self.answer.__await__()


def rpc_error(code: grpc.StatusCode, message: str) -> grpc.aio.AioRpcError:
    """The error that a call would have ended with."""
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, empty, empty, message, None)


def status_code(number: int) -> grpc.StatusCode:
    """The status code with this number."""
    return next((code for code in grpc.StatusCode if code.value[0] == number), _UNKNOWN)


_UNKNOWN = grpc.StatusCode.UNKNOWN
