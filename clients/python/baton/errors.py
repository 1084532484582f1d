"""Every error of this package, in one tree. Each says whether asking again may help (`retryable`).

    BatonError
    ├── Unavailable              the sidecar or its Postgres is away         retry
    ├── DeadlineExceeded         no answer in time; it may have happened     retry
    ├── NotFound
    ├── AlreadyExists            there is one, and it differs
    ├── Conflict                 a lost compare-and-set: read again, then try again
    ├── FailedPrecondition       the thing is in no state for this call
    │   └── Fenced               this run's attempt or term is over: stop the work
    ├── InvalidArgument          `violations` names each wrong field
    ├── OutOfRange               a watch asked for changes no longer known: after 0 again
    ├── LimitExceeded            a documented limit
    ├── Unauthenticated          the token is missing or wrong
    ├── StateLoadFailed          retry
    ├── StatePersistFailed       retry
    ├── SchemaDecodeFailed
    ├── HeartbeatFailed          retry
    ├── LeaderHandoffFailed      retry
    ├── DeferredFailed           what was awaited was failed, or has expired
    ├── ClusterContextRequired   called outside a handler or hook
    └── NotConnected             the app is not being served

`reason` and `retry_after` come from the details that the sidecar sends with a gRPC status.
"""

from __future__ import annotations

from typing import Any, ClassVar

import grpc

from baton._status import StatusDetails, status_details


class BatonError(Exception):
    """Base of all errors raised by this package."""

    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        details: StatusDetails | None = None,
    ) -> None:
        super().__init__(message)
        details = details or StatusDetails()
        self.code = code
        self.reason = details.reason or type(self).__name__
        self.retry_after = details.retry_after
        self.violations = details.violations
        self.existing = details.existing


class Unavailable(BatonError):
    """The sidecar or its database cannot be reached now."""

    retryable = True


class DeadlineExceeded(BatonError):
    """No answer came in time; whether the call took effect is not known."""

    retryable = True


class NotFound(BatonError):
    """What was named does not exist."""


class AlreadyExists(BatonError):
    """There is one already, and it differs; it is left standing."""


class Conflict(BatonError):
    """The entry has another version than expected; nothing was changed."""


class FailedPrecondition(BatonError):
    """The thing exists but is in no state for this call."""


class Fenced(FailedPrecondition):
    """The attempt on whose behalf this was is no longer the live one: stop its work."""


class InvalidArgument(BatonError):
    """The sidecar refused what was sent; `violations` holds (field, problem) pairs."""


class OutOfRange(BatonError):
    """The changes asked for are no longer known: watch again, after version 0."""


class LimitExceeded(BatonError):
    """A documented limit was reached; the message names it."""


class Unauthenticated(BatonError):
    """The token for the sidecar is missing or wrong."""


class StateLoadFailed(BatonError):
    """Stored state could not be read."""

    retryable = True


class StatePersistFailed(BatonError):
    """State could not be written; nothing was acknowledged."""

    retryable = True


class SchemaDecodeFailed(BatonError):
    """Stored bytes do not fit the declared schema."""


class HeartbeatFailed(BatonError):
    """A heartbeat could not be written."""

    retryable = True


class LeaderHandoffFailed(BatonError):
    """Leadership could not be taken or given up as asked."""

    retryable = True


class DeferredFailed(BatonError):
    """The deferred was completed with an error, expired, or holds no JSON."""


class ClusterContextRequired(BatonError):
    """There is no cluster context here: call it below a handler or a hook."""


class NotConnected(BatonError):
    """There is no connection to the sidecar yet: serve the app, or connect, first."""


_BY_CODE: dict[grpc.StatusCode, type[BatonError]] = {
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRange,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceeded,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}

_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}

_BY_REASON: dict[str, type[BatonError]] = {
    kind.__name__: kind
    for kind in (
        StateLoadFailed,
        StatePersistFailed,
        SchemaDecodeFailed,
        HeartbeatFailed,
        LeaderHandoffFailed,
        Fenced,
    )
}


def error_of(error: grpc.aio.AioRpcError, *, on_behalf_of_run: bool = False) -> BatonError:
    """The typed error for a failed call; a refused run reference always means `Fenced`."""
    metadata: Any = error.trailing_metadata()
    code, details = error.code(), status_details(metadata)
    kind = _BY_REASON.get(details.reason) or _BY_CODE.get(code, BatonError)
    if on_behalf_of_run and kind is FailedPrecondition:
        kind = Fenced
    return kind(error.details() or code.name, code=code, details=details)


def status_error(code: int, message: str, *, existing: bytes | None = None) -> BatonError:
    """The typed error for a status inside a stream, which is always on behalf of a run."""
    status = _BY_NUMBER.get(code, grpc.StatusCode.UNKNOWN)
    kind = _BY_CODE.get(status, BatonError)
    if kind is FailedPrecondition:
        kind = Fenced
    details = StatusDetails(existing=existing)
    return kind(message or status.name, code=status, details=details)
