"""Every error that Baton raises on purpose, in one tree. Each says what to do next.

    SidecarError
    ├── StoreUnavailable        Postgres did not answer in time             UNAVAILABLE, retry
    │   └── AnswerLost          … after the commit was sent: outcome unknown
    ├── StoreRefused            Postgres answered, but cannot serve us      it says why
    │   ├── WrongServer         a pooler or a read-only server in place of a primary
    │   ├── IncompatibleSchema  the tables are too old or too new for this binary
    │   ├── DamagedRow          a row holds what no release writes          DATA_LOSS
    │   ├── NotStorable         what was to be written is no value for it
    │   └── ClusterTaken        another app registered under this cluster's name
    ├── AppUnavailable          the app refused the connection              retry
    ├── Fenced                  written under a term or attempt that is over  FAILED_PRECONDITION
    ├── InvalidArgument         names the field                             INVALID_ARGUMENT
    ├── NotFound                                                            NOT_FOUND
    ├── AlreadyExists           carries what exists                         ALREADY_EXISTS
    ├── Conflict                a lost compare-and-set                      ABORTED, read and retry
    ├── FailedPrecondition      the thing is in no state for this call      FAILED_PRECONDITION
    ├── LimitExceeded           a documented limit                          RESOURCE_EXHAUSTED
    ├── DeadlineExceeded        still waiting when the time was up          DEADLINE_EXCEEDED, again
    ├── StateLoadFailed         retry                                       UNAVAILABLE
    ├── StatePersistFailed      retry                                       UNAVAILABLE
    ├── SchemaDecodeFailed      stored bytes do not fit the declared schema DATA_LOSS
    ├── HeartbeatFailed         the 30 s heartbeat could not be written     UNAVAILABLE
    └── LeaderHandoffFailed     the app did not take or give up leadership  ABORTED

gRPC status codes are mapped once, in `adapters/grpc_server/status.py`.
"""

from typing import ClassVar


class SidecarError(Exception):
    """Base of all; `reason` is stable and appears in `ErrorInfo` and in metrics."""

    retryable: ClassVar[bool] = False

    @property
    def reason(self) -> str:
        return type(self).__name__


class StoreUnavailable(SidecarError):
    """Postgres is away, too slow or read-only; the same call may succeed later."""

    retryable = True


class AnswerLost(StoreUnavailable):
    """The connection broke after the statement was sent: it may or may not have been committed."""


class StoreRefused(SidecarError):
    """Postgres answered and cannot serve us; waiting may help, retrying at once does not."""


class WrongServer(StoreRefused):
    """The URL leads to a pooler or to a read-only server."""


class IncompatibleSchema(StoreRefused):
    """The tables do not fit this binary: run `baton migrate`, or use a newer release."""


class DamagedRow(StoreRefused):
    """A row was changed by hand, or by a release that we do not know; the message names it."""


class NotStorable(StoreRefused):
    """Postgres cannot hold what was to be written; waiting does not help."""


class ClusterTaken(StoreRefused):
    """A different app is registered under the same cluster name."""


class AppUnavailable(SidecarError):
    """The app refused the connection or was still starting."""

    retryable = True


class Fenced(SidecarError):
    """A newer term or attempt exists: nothing of the old one is committed any more."""


class InvalidArgument(SidecarError):
    """What the caller sent cannot be right; `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotFound(SidecarError):
    """There is no such thing in this cluster."""


class AlreadyExists(SidecarError):
    """There is one already, and it differs; `existing` is the value that stands, if it is one."""

    def __init__(self, message: str, existing: bytes | None = None) -> None:
        super().__init__(message)
        self.existing = existing


class Conflict(SidecarError):
    """A compare-and-set lost: read again, then try again."""


class FailedPrecondition(SidecarError):
    """The thing exists but is in no state for this call."""


class LimitExceeded(SidecarError):
    """A documented limit was reached; the message names it."""


class DeadlineExceeded(SidecarError):
    """What was waited for has not happened yet: ask again, at once if you like."""

    retryable = True


class StateLoadFailed(SidecarError):
    """Stored state could not be read; it is retried and never replaced by the initial state."""

    retryable = True


class StatePersistFailed(SidecarError):
    """State could not be written; nothing was acknowledged."""

    retryable = True


class SchemaDecodeFailed(SidecarError):
    """Stored bytes do not fit the declared schema; they were set aside."""


class HeartbeatFailed(SidecarError):
    """The heartbeat of a singleton or schedule could not be written."""

    retryable = True


class LeaderHandoffFailed(SidecarError):
    """The app did not answer OnBecomeLeader or OnLoseLeadership as it must."""

    retryable = True
