"""The way to the sidecar: one channel, its token, deadlines and repeated questions.

Every call has a deadline. A call that is safe to repeat is repeated while the sidecar is
UNAVAILABLE, with back-off, for as long as its time allows; every failure comes out as a
`BatonError`. Streams are not repeated here: only their reader knows where to go on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from baton._cluster import traceparent
from baton._tokens import TokenFile
from baton.errors import BatonError, NotConnected, Unavailable, error_of

CALL_SECONDS = 10.0
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # the sidecar is on this machine
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),  # trust lasts three seconds: come back quickly
)

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Stub = TypeVar("Stub")
T = TypeVar("T")


def backoff_seconds(first: float = 0.1, longest: float = 2.0) -> Iterator[float]:
    """Waits that double up to `longest`, each shortened by up to half at random."""
    wait = first
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads calls, hides nothing
        wait = min(2 * wait, longest)


async def repeated(
    once: Callable[[float], Awaitable[T]],
    *,
    repeatable: Callable[[], bool] = lambda: True,
    timeout: float = CALL_SECONDS,
) -> T:
    """The result of `once`, which is given the time left, again while it is UNAVAILABLE."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    for wait in backoff_seconds():
        try:
            return await once(deadline - loop.time())
        except BatonError as error:
            pause = max(wait, error.retry_after or 0.0)
            away = error.code is grpc.StatusCode.UNAVAILABLE
            if not (away and repeatable() and loop.time() + pause < deadline):
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable: the waits never end")


class Connection:
    """A channel to the sidecar that is opened by `connect` and closed by `close`."""

    def __init__(self) -> None:
        self._channel: grpc.aio.Channel | None = None
        self._token: TokenFile | None = None
        self._stubs: dict[Callable[..., Any], Any] = {}

    def connect(self, address: str, token: TokenFile | None) -> None:
        """Opens the channel, in the loop that will use it; nothing is sent yet."""
        if self._channel is not None:
            raise RuntimeError("already connected to a sidecar")
        self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._token = token

    async def close(self) -> None:
        """Closes the channel; open calls are cancelled."""
        channel, self._channel = self._channel, None
        self._stubs.clear()
        if channel is not None:
            await channel.close(None)

    def stub(self, kind: Callable[[grpc.aio.Channel], Stub]) -> Stub:
        """The stub of a service on the open channel."""
        if self._channel is None:
            raise NotConnected("not connected: serve the app, or connect, first")
        if kind not in self._stubs:
            self._stubs[kind] = kind(self._channel)
        return cast(Stub, self._stubs[kind])

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        *,
        repeatable: bool = True,
        timeout: float = CALL_SECONDS,
    ) -> Response:
        """One answer, or a `BatonError`. `repeatable`: asking twice does no harm."""
        return await repeated(
            lambda left: self._once(method, request, left),
            repeatable=lambda: repeatable,
            timeout=timeout,
        )

    def metadata(self) -> grpc.aio.Metadata:
        """What goes with every call: the token, and the trace."""
        metadata = grpc.aio.Metadata()
        if self._token is not None:
            metadata.add("baton-token", self._token.current())
        if trace := traceparent():
            metadata.add("traceparent", trace)
        return metadata

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Request, Response], request: Request
    ) -> AsyncGenerator[Response, None]:
        """The messages of a stream until it breaks, which is a `BatonError`."""
        call = method(request, metadata=self.metadata())
        try:
            async for message in call:
                yield message
            away = grpc.StatusCode.UNAVAILABLE
            raise Unavailable("the sidecar ended the stream", code=away)
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from None
        finally:
            call.cancel()

    async def _once(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout: float,
    ) -> Response:
        try:
            return await method(request, timeout=timeout, metadata=self.metadata())
        except grpc.aio.AioRpcError as error:
            raise error_of(error, on_behalf_of_run=_names_run(request)) from None
        except grpc.aio.UsageError as error:  # the channel was closed meanwhile
            raise BatonError("the connection to the sidecar was closed") from error


def _names_run(request: Message) -> bool:
    return "run" in request.DESCRIPTOR.fields_by_name and request.HasField("run")
