"""Errors become gRPC statuses, once, for every service.

Guarantees: never UNKNOWN, never a traceback, no secret in a message; every error of ours carries
`ErrorInfo` (reason, domain), a field violation where a field is at fault, a retry delay where
waiting helps, and what exists already if it is small.
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

from sidecar.logs import redacted, visible
from sidecar.model import errors
from sidecar.model.state_words import HistoryGone

log = structlog.get_logger()

DOMAIN = "baton"
RETRY_SECONDS = 1
# Trailers of more than 8 KiB in all are refused by gRPC itself; a message is in them twice, and
# what is wrong with a field once more.
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
    # Who waited until now need not wait before asking again.
    if error.retryable and not isinstance(error, errors.DeadlineExceeded):
        details.append(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
    return details


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: errors.SidecarError) -> None:
    """End the call with the status of this error."""
    code = code_of(error)
    message = _shortened(visible(redacted(str(error))))
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details_of(error):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    metadata = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, message, metadata)


def _shortened(text: str) -> str:
    """As much of it as trailers carry, where what is not plain takes three bytes for each."""
    left = MESSAGE_BYTES_MAX
    for number, character in enumerate(text):
        plain = " " <= character <= "~" and character != "%"
        left -= 1 if plain else 3 * len(character.encode())
        if left < 0:
            return text[:number]
    return text


Decode = Callable[[bytes], Any]


def guarded_unary(
    method: Callable[[Any, Any], Awaitable[Any]], decode: Decode
) -> Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]:
    """`decode` is called here, because gRPC answers UNKNOWN when it fails."""

    async def call(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await method(_decoded(request, decode), context)
        except Exception as error:
            return await _refused(context, error)

    return call


def guarded_stream(
    method: Callable[[Any, Any], AsyncIterator[Any] | Awaitable[None]], decode: Decode
) -> Callable[[bytes, grpc.aio.ServicerContext[Any, Any]], AsyncIterator[Any]]:
    """Of either kind: one that yields, or one that writes to the context, as gRPC's own do."""

    async def call(
        request: bytes, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[Any]:
        try:
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
    method: Callable[[AsyncIterator[Any], Any], AsyncIterator[Any]], decode: Decode
) -> Callable[[AsyncIterator[bytes], grpc.aio.ServicerContext[Any, Any]], AsyncIterator[Any]]:
    async def decoded(requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for request in requests:
            yield _decoded(request, decode)

    async def call(
        requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[Any]:
        try:
            async for message in method(decoded(requests), context):
                yield message
        except Exception as error:
            await _refused(context, error)

    return call


def _decoded(request: bytes, decode: Decode) -> Any:
    try:
        return decode(request)
    except DecodeError:
        raise errors.InvalidArgument("request", "is no message of this method") from None


async def _refused(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> None:
    match error:
        case errors.SidecarError():
            await abort(context, error)
        case grpc.aio.AbortError() | asyncio.CancelledError():
            raise error
        case _:
            # A bug of ours: the log has the traceback, the caller has a sentence.
            log.error("api_call_failed", exc_info=error)
            await context.abort(
                grpc.StatusCode.INTERNAL, "an error inside the sidecar; its log has the details"
            )
