"""Counts the calls in progress and refuses those above the limits.

Guarantee: a refused call gets RESOURCE_EXHAUSTED with a retry delay.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import grpc

from sidecar.adapters.grpc_server.status import abort
from sidecar.adapters.tokens import Token
from sidecar.model.admission import Admission, Stream
from sidecar.model.errors import Overloaded

Handler = Any  # grpc.RpcMethodHandler, which its stubs leave untyped
# Small calls that operators need on an overloaded pod.
_ESSENTIAL = ("/grpc.health.v1.Health/", "/baton.v1.Leadership/", "/baton.v1.Operations/")
# The app itself: ending its stream would cost the term.
_KEPT = "/baton.v1.AppStream/"


def is_essential(path: str) -> bool:
    """Whether the method of this path is admitted while memory is short."""
    return path.startswith(_ESSENTIAL)


class Admit(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    def __init__(self, token: Token, admission: Admission, seen: Callable[[], None]) -> None:
        """`seen` is called for each call, admitted or not."""
        self._token = token
        self._seen = seen
        self._admission = admission

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        self._seen()
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        details = cast(Any, handler_call_details)
        if handler.response_streaming:
            authenticated = self._token.accepts(details.invocation_metadata)
            if handler.request_streaming:
                keep = details.method.startswith(_KEPT)
                return grpc.stream_stream_rpc_method_handler(
                    self._stream(handler.stream_stream, authenticated, keep=keep),
                    handler.request_deserializer,
                    handler.response_serializer,
                )
            return grpc.unary_stream_rpc_method_handler(
                self._stream(handler.unary_stream, authenticated),
                handler.request_deserializer,
                handler.response_serializer,
            )
        essential = is_essential(details.method)
        return grpc.unary_unary_rpc_method_handler(
            self._call(handler.unary_unary, essential),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _call(self, method: Callable[..., Awaitable[Any]], essential: bool) -> Any:
        async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                with self._admission.call(essential=essential):
                    return await method(request, context)
            except Overloaded as error:
                return await abort(context, error)

        return call

    def _stream(
        self,
        method: Callable[..., AsyncIterator[Any]],
        authenticated: bool,
        *,
        keep: bool = False,
    ) -> Any:
        async def call(
            request: Any, context: grpc.aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[Any]:
            task = cast("asyncio.Task[Any]", asyncio.current_task())
            stream = Stream(context.peer(), authenticated, task.cancel, keep=keep)
            try:
                with self._admission.stream(stream):
                    async for message in method(request, context):
                        yield message
            except Overloaded as error:
                await abort(context, error)
            except asyncio.CancelledError:
                if not stream.ended:
                    raise
                task.uncancel()
                await abort(context, Overloaded("memory is short on this pod: streams are closed"))

        return call
