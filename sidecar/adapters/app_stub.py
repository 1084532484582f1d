"""A stub for the app's methods that is safe against malformed responses.

Guarantee: a call returns the method's response message or raises an AioRpcError that says what is
wrong. gRPC itself returns None for bytes that it cannot decode and for a call that ends without a
message, and raises KeyError for an unknown status code.
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
    """The methods that the sidecar calls, under their gRPC names."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        pb = callback_pb2
        become, lose = pb.OnBecomeLeaderResponse, pb.OnLoseLeadershipResponse
        self.OnBecomeLeader = _method(channel, f"{_CALLBACK}OnBecomeLeader", become)
        self.OnLoseLeadership = _method(channel, f"{_CALLBACK}OnLoseLeadership", lose)
        self.Execute = _method(channel, f"{_CALLBACK}Execute", pb.ExecuteResponse)
        check: type[Message] = health_pb2.HealthCheckResponse
        self.Check: Method[Any] = _method(channel, f"{_HEALTH}Check", check)


def _method(channel: grpc.aio.Channel, path: str, response: type[M]) -> Method[M]:
    # No deserializer: gRPC would only log its failure, not raise it.
    multicallable: Any = channel.unary_unary(path, _serialized, None)
    call = cast(Callable[..., Awaitable[bytes | None]], multicallable)

    async def invoke(
        request: Message, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> M:
        try:
            response_bytes = await call(request, timeout=timeout, metadata=metadata)
        except KeyError as code:
            problem = f"the app's status code {code} is none of gRPC's"
            raise _rpc_error(grpc.StatusCode.UNKNOWN, problem) from None
        if response_bytes is None:
            raise _rpc_error(
                grpc.StatusCode.INTERNAL, "the app ended the call without a whole message"
            )
        try:
            return response.FromString(response_bytes)
        except DecodeError:
            name = response.DESCRIPTOR.name
            raise _rpc_error(grpc.StatusCode.INTERNAL, f"the app's answer is no {name}") from None

    return invoke


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _rpc_error(code: grpc.StatusCode, problem: str) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), problem, None)
