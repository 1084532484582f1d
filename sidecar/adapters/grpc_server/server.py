"""The sidecar's gRPC server: authentication, services, and the address it listens on.

Guarantees (G12): a call without the right token is refused before it is decoded, except health
checks; a call in progress at a stop ends with UNAVAILABLE and a retry delay; a socket file is
readable and writable only by its owner and group; messages are at most 4 MiB.
"""

import asyncio
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from sidecar.adapters.grpc_app import MESSAGE_BYTES_MAX
from sidecar.adapters.grpc_server.admission import Admit
from sidecar.adapters.grpc_server.calls import Calls
from sidecar.adapters.grpc_server.front import Front, listening, listening_file
from sidecar.adapters.grpc_server.private_socket import PrivateSocket
from sidecar.adapters.grpc_server.status import guarded_stream, guarded_streams, guarded_unary
from sidecar.adapters.tokens import METADATA_KEY, Token
from sidecar.model.admission import Admission
from sidecar.model.errors import SidecarError

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 1000),
    # Apps ping to notice a dead sidecar; do not close their connections for it.
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.keepalive_permit_without_calls", 1),
)
_OPEN_METHODS = "/grpc.health.v1.Health/"
SOCKET_MODE = 0o660
_ANSWER_SECONDS = 1.0
_ENDING_SECONDS = 1.0

Handler = Any  # grpc.RpcMethodHandler, which its stubs leave untyped


class AddressInUse(SidecarError):
    """Another process listens on the API's address."""


class ApiServer:
    """Serves the registered services until stopped."""

    def __init__(self, address: str, token: Token, *, outermost: Sequence[Any] = ()) -> None:
        """`outermost` are interceptors that see a call first."""
        self._address = address
        self.calls = Calls()
        self.admission = Admission()
        self.token = token
        self.services: dict[str, Any] = {}  # by name; the JSON API calls the same servicers
        admit = Admit(token, self.admission, self._call_seen)
        self._server = grpc.aio.server(
            interceptors=(*outermost, _Authenticate(token), admit, _MapErrors(self.calls)),
            options=_OPTIONS,
        )
        self._health: Any = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self._names = [health.SERVICE_NAME, reflection.SERVICE_NAME]
        self._socket_file: Path | None = None  # ours, once it is bound
        self._inner: PrivateSocket | None = None
        self._front: Front | None = None

    def add(
        self, register: Callable[[Any, grpc.aio.Server], None], servicer: Any, name: str
    ) -> None:
        """Serve `servicer` through its generated `add_…_to_server` function."""
        register(servicer, self._server)
        self.services[name] = servicer
        self._names.append(name)

    async def start(self) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(self._names, self._server)
        path = socket_path(self._address)
        if problem := taken(path) if path else "":
            raise self._in_use(problem)
        try:
            handle = listening_file(path, SOCKET_MODE) if path else listening(self._address)
        except OSError:
            problem = "may it write there?" if path else "is another sidecar running?"
            raise self._in_use(problem) from None
        self._socket_file = path
        self._inner = PrivateSocket()
        self._front = Front(self._inner)
        self._server.add_insecure_port(self._inner.address)
        await self._server.start()
        self._inner.hide()
        self._front.listen(handle)
        for name in ("", *self._names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace_seconds: float) -> None:
        await self._health.enter_graceful_shutdown()
        # Remove the file while we still listen: later, while the last calls end, it may belong to
        # the next sidecar.
        path, self._socket_file = self._socket_file, None
        if path:
            with suppress(OSError):
                path.unlink()
        if self._front:
            self._front.stop_listening()
        # No new calls from here on. gRPC cancels the rest at the end of its grace period: ours is
        # shorter, so that each of them is still answered.
        stopped = asyncio.ensure_future(self._server.stop(grace_seconds + _ENDING_SECONDS))
        await asyncio.wait({stopped}, timeout=grace_seconds)
        self.calls.end()
        await stopped
        if self._front and self._inner:
            self._front.close()
            self._inner.close()

    def _call_seen(self) -> None:
        if self._front:
            self._front.call_seen()

    def _in_use(self, problem: str) -> AddressInUse:
        return AddressInUse(f"api.address: cannot listen on {self._address}: {problem}")


def socket_path(address: str) -> Path | None:
    """The socket file of `unix:///PATH`; None: an address with a port."""
    if not address.startswith("unix:"):
        return None
    return Path("/" + address.removeprefix("unix:").lstrip("/"))


def taken(path: Path) -> str:
    """Why the socket file cannot be used; empty if it can, also after a process that was killed.

    gRPC would not check: it removes any socket file, and its owner would get no more calls.
    """
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            return "the file there is not a socket"
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_ANSWER_SECONDS)
            probe.connect(os.fspath(path))
    except ConnectionRefusedError:
        return ""
    except FileNotFoundError:
        return "" if path.parent.is_dir() else f"there is no directory {path.parent}"
    except OSError as error:  # a live sidecar that is too busy to answer, or no permission
        return error.strerror or "does another sidecar hang?"
    return "is another sidecar running?"


class _Authenticate(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    def __init__(self, token: Token) -> None:
        self._token = token

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        details = cast(Any, handler_call_details)
        if details.method.startswith(_OPEN_METHODS) or self._token.accepts(
            details.invocation_metadata
        ):
            return await continuation(handler_call_details)
        return _refuse_unauthenticated(await continuation(handler_call_details))


def _refuse_unauthenticated(handler: Handler) -> Handler:
    async def refuse(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            f"the call must have the API's token in the metadata {METADATA_KEY!r}",
        )

    if handler is not None and handler.request_streaming:

        async def refuse_streams(requests: Any, context: Any) -> Any:
            await refuse(requests, context)
            yield

        return grpc.stream_stream_rpc_method_handler(refuse_streams)
    if handler is not None and handler.response_streaming:

        async def refuse_stream(request: Any, context: Any) -> Any:
            await refuse(request, context)
            yield

        return grpc.unary_stream_rpc_method_handler(refuse_stream)
    return grpc.unary_unary_rpc_method_handler(refuse)


class _MapErrors(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        decode, encode = handler.request_deserializer, handler.response_serializer
        if handler.request_streaming:  # Attach, reflection
            return grpc.stream_stream_rpc_method_handler(
                guarded_streams(handler.stream_stream, decode, self._calls),
                response_serializer=encode,
            )
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                guarded_stream(handler.unary_stream, decode, self._calls),
                response_serializer=encode,
            )
        return grpc.unary_unary_rpc_method_handler(
            guarded_unary(handler.unary_unary, decode, self._calls), response_serializer=encode
        )
