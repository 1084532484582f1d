"""Maps errors to gRPC statuses, for every service.

Guarantees: never UNKNOWN, never a traceback, no secret in a message; every error of ours has
`ErrorInfo` (reason, domain), a field violation if a field is invalid, a retry delay if a retry may
help, and the existing value if it is small.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from sidecar.adapters.grpc_server.calls import Calls
from sidecar.logs import redacted, visible
from sidecar.model import errors
from sidecar.model.state_types import HistoryGone

log = structlog.get_logger()

DOMAIN = "baton"
INTERNAL_ERROR = "internal error; see the sidecar's log"
RETRY_SECONDS = 1
# gRPC itself refuses trailers of more than 8 KiB; they contain the message twice, and the problem
# of a field once more.
EXISTING_BYTES_MAX = 1024
MESSAGE_BYTES_MAX = 2000
_CODES: tuple[tuple[type[errors.SidecarError], grpc.StatusCode], ...] = (
    (errors.InvalidArgument, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.Conflict, grpc.StatusCode.ABORTED),
    (errors.Fenced, grpc.StatusCode.FAILED_PRECONDITION),
    (HistoryGone, grpc.StatusCode.OUT_OF_RANGE),
    (errors.FailedPrecondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.LimitExceeded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.DeadlineExceeded, grpc.StatusCode.DEADLINE_EXCEEDED),
    (errors.SchemaDecodeFailed, grpc.StatusCode.DATA_LOSS),
    (errors.LeaderHandoffFailed, grpc.StatusCode.ABORTED),
    (errors.DamagedRow, grpc.StatusCode.DATA_LOSS),
    (errors.StoreRefused, grpc.StatusCode.FAILED_PRECONDITION),
)


def code_of(error: errors.SidecarError) -> grpc.StatusCode:
    """The status code of one of our errors."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return grpc.StatusCode.UNAVAILABLE if error.retryable else grpc.StatusCode.INTERNAL


def details_of(error: errors.SidecarError) -> list[Message]:
    metadata = {"retryable": "true" if error.retryable else "false"}
    existing = error.existing if isinstance(error, errors.AlreadyExists) else None
    if existing is not None and len(existing) <= EXISTING_BYTES_MAX:
        metadata["existing"] = b64encode(existing).decode()
    details: list[Message] = [
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata)
    ]
    if isinstance(error, errors.InvalidArgument):
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=_shortened(visible(redacted(error.problem)))
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    # A caller that waited until its deadline may retry at once.
    if error.retryable and not isinstance(error, errors.DeadlineExceeded):
        details.append(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
    return details


def message_of(error: errors.SidecarError) -> str:
    """What the caller reads: without secrets and control characters, short enough for trailers."""
    return _shortened(visible(redacted(str(error))))


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: errors.SidecarError) -> None:
    """End the call with the status of this error."""
    code, message = code_of(error), message_of(error)
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details_of(error):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    metadata = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, message, metadata)


def _shortened(text: str) -> str:
    """The start of the text that fits in trailers, where other than plain ASCII takes 3 bytes."""
    left = MESSAGE_BYTES_MAX
    for number, character in enumerate(text):
        plain = " " <= character <= "~" and character != "%"
        left -= 1 if plain else 3 * len(character.encode())
        if left < 0:
            return text[:number]
    return text


def log_bug(error: Exception) -> None:
    """A bug of ours: the log has the traceback, the caller gets INTERNAL_ERROR."""
    log.error("api_call_failed", exc_info=error)


Decode = Callable[[bytes], Any]


def guarded_unary(
    method: Callable[[Any, Any], Awaitable[Any]], decode: Decode, calls: Calls
) -> Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]:
    """`decode` is called here, because gRPC answers UNKNOWN when it fails."""

    async def call(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            with calls.under_way():
                return await method(_decoded(request, decode), context)
        except Exception as error:
            return await _refused(context, error)

    return call


def guarded_stream(
    method: Callable[[Any, Any], AsyncIterator[Any] | Awaitable[None]], decode: Decode, calls: Calls
) -> Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], AsyncIterator[Any]]:
    """For handlers that yield, and for those that write to the context, as gRPC's own do."""

    async def call(
        request: bytes, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[Any]:
        try:
            with calls.under_way():
                answers = method(_decoded(request, decode), context)
                if isinstance(answers, Awaitable):
                    await answers
                    return
                async for message in answers:
                    yield message
        except Exception as error:
            await _refused(context, error)

    return call


def guarded_streams(
    method: Callable[[AsyncIterator[Any], Any], AsyncIterator[Any]], decode: Decode, calls: Calls
) -> Callable[[AsyncIterator[bytes], grpc.aio.ServicerContext[Any, Any]], AsyncIterator[Any]]:
    async def decoded(requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for request in requests:
            yield _decoded(request, decode)

    async def call(
        requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[Any]:
        try:
            with calls.under_way():
                async for message in method(decoded(requests), context):
                    yield message
        except Exception as error:
            await _refused(context, error)

    return call


def _decoded(request: bytes, decode: Decode) -> Any:
    try:
        return decode(request)
    except DecodeError:
        raise errors.InvalidArgument("request", "is not a message of this method") from None


async def _refused(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> None:
    match error:
        case errors.SidecarError():
            await abort(context, error)
        case grpc.aio.AbortError() | asyncio.CancelledError():
            raise error
        case _:
            log_bug(error)
            await context.abort(grpc.StatusCode.INTERNAL, INTERNAL_ERROR)
