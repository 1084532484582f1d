"""The app's methods, safe against whatever answers there.

Guarantee: a call ends with a message of its method or with an AioRpcError that says what is wrong.
gRPC itself gives None for bytes it cannot decode and for an end without a message, and raises
KeyError for a status that it does not know.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message
from grpc.aio import AioRpcError, Metadata
from grpc_health.v1 import health_pb2

from sidecar._proto.baton.v1 import callback_pb2

M = TypeVar("M", bound=Message, covariant=True)

_CALLBACK = "/baton.v1.AppCallback/"
_HEALTH = "/grpc.health.v1.Health/"


class Method(Protocol[M]):
    def __call__(
        self, request: Message, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> Awaitable[M]: ...


class AppStub:
    """What the sidecar calls; named as the methods are."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        pb = callback_pb2
        become, lose = pb.OnBecomeLeaderResponse, pb.OnLoseLeadershipResponse
        self.OnBecomeLeader = _method(channel, f"{_CALLBACK}OnBecomeLeader", become)
        self.OnLoseLeadership = _method(channel, f"{_CALLBACK}OnLoseLeadership", lose)
        self.Execute = _method(channel, f"{_CALLBACK}Execute", pb.ExecuteResponse)
        check: type[Message] = health_pb2.HealthCheckResponse
        self.Check: Method[Any] = _method(channel, f"{_HEALTH}Check", check)


def _method(channel: grpc.aio.Channel, path: str, response: type[M]) -> Method[M]:
    # No deserializer: gRPC would only log that it failed.
    multicallable: Any = channel.unary_unary(path, _serialized, None)
    call = cast(Callable[..., Awaitable[bytes | None]], multicallable)

    async def answered(
        request: Message, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> M:
        try:
            answer = await call(request, timeout=timeout, metadata=metadata)
        except KeyError as code:
            problem = f"the app's status code {code} is none of gRPC's"
            raise _bad(grpc.StatusCode.UNKNOWN, problem) from None
        if answer is None:
            raise _bad(grpc.StatusCode.INTERNAL, "the app ended the call without a whole message")
        try:
            return response.FromString(answer)
        except DecodeError:
            name = response.DESCRIPTOR.name
            raise _bad(grpc.StatusCode.INTERNAL, f"the app's answer is no {name}") from None

    return answered


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _bad(code: grpc.StatusCode, problem: str) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), problem, None)
