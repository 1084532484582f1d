"""The errors of Baton, in one tree. Each one states what the caller can do next.

    SidecarError
    ├── StoreUnavailable        Postgres did not answer in time             UNAVAILABLE, retry
    │   ├── ReadOnlyServer      a standby, or a role that may only read     UNAVAILABLE, retry
    │   └── AnswerLost          … after the commit was sent: outcome unknown
    ├── StoreRefused            Postgres answered, but cannot be used       the message says why
    │   ├── WrongServer         a pooler, a server too old, a database that is not in UTF8
    │   ├── IncompatibleSchema  the tables are too old or too new for this binary
    │   ├── DamagedRow          a row has a value that no release writes    DATA_LOSS
    │   ├── NotStorable         Postgres cannot store the value
    │   └── ClusterTaken        another app registered under this cluster's name
    ├── AppUnavailable          the app refused the connection              retry
    │   └── AppNotServing       … or its health check is not SERVING
    ├── SidecarStopping         the sidecar stopped during the call         UNAVAILABLE, retry
    ├── Fenced                  the term or attempt of a write has ended    FAILED_PRECONDITION
    ├── InvalidArgument         names the field                             INVALID_ARGUMENT
    ├── NotFound                                                            NOT_FOUND
    ├── AlreadyExists           carries the existing value                  ALREADY_EXISTS
    ├── Conflict                a compare-and-set failed                    ABORTED, read and retry
    ├── FailedPrecondition      the object's state does not allow the call  FAILED_PRECONDITION
    ├── LimitExceeded           a documented limit                          RESOURCE_EXHAUSTED
    │   └── Overloaded          … for now                                   … retry
    ├── DeadlineExceeded        the wait timed out                          DEADLINE_EXCEEDED, retry
    ├── StateLoadFailed         retry                                       UNAVAILABLE
    ├── StatePersistFailed      retry                                       UNAVAILABLE
    ├── SchemaDecodeFailed      stored bytes do not match the schema        DATA_LOSS
    ├── HeartbeatFailed         the 30 s heartbeat could not be written     UNAVAILABLE
    └── LeaderHandoffFailed     a leadership callback of the app failed     ABORTED

gRPC status codes are mapped once, in `adapters/grpc_server/status.py`.
"""

from typing import ClassVar


class SidecarError(Exception):
    """The base class; `reason` is stable and appears in `ErrorInfo` and in metrics."""

    retryable: ClassVar[bool] = False

    @property
    def reason(self) -> str:
        return type(self).__name__


class StoreUnavailable(SidecarError):
    """Postgres is unreachable, too slow or read-only; the same call may succeed later."""

    retryable = True


class ReadOnlyServer(StoreUnavailable):
    """The URL points to a standby, or writes are off; may be temporary, as in a failover."""


class RowLocked(StoreUnavailable):
    """Another session holds the lock of the row."""


class AnswerLost(StoreUnavailable):
    """The connection failed after the statement was sent: it may or may not be committed."""


class StoreRefused(SidecarError):
    """Postgres answered but cannot be used; a later retry may help, an immediate one does not."""


class WrongServer(StoreRefused):
    """The URL points to a pooler, a read-only or too old server, or a database not in UTF8."""


class IncompatibleSchema(StoreRefused):
    """The schema does not match this binary: run `baton migrate`, or use a newer release."""


class DamagedRow(StoreRefused):
    """A row was changed by hand or by an unknown release; the message names the row."""


class NotStorable(StoreRefused):
    """Postgres cannot store the value; a retry does not help."""


class ClusterTaken(StoreRefused):
    """A different app is registered under the same cluster name."""


class AppUnavailable(SidecarError):
    """The app refused the connection or was still starting."""

    retryable = True


class AppNotServing(AppUnavailable):
    """The app answered its health check with a status other than SERVING."""


class SidecarStopping(SidecarError):
    """The sidecar stopped before the call ended; the call may have taken effect."""

    retryable = True


class Fenced(SidecarError):
    """A newer term or attempt exists: no write of the old one is committed any more."""


class InvalidArgument(SidecarError):
    """The request has an invalid value; `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotFound(SidecarError):
    """The requested object does not exist in this cluster."""


class AlreadyExists(SidecarError):
    """The object exists and differs; `existing` is its value, None if it has none."""

    def __init__(self, message: str, existing: bytes | None = None) -> None:
        super().__init__(message)
        self.existing = existing


class Conflict(SidecarError):
    """A compare-and-set failed: read again, then retry."""


class FailedPrecondition(SidecarError):
    """The object exists, but its state does not allow this call."""


class LimitExceeded(SidecarError):
    """A documented limit was reached; the message names it."""


class Overloaded(LimitExceeded):
    """This pod has too many calls or too little memory; the same call may succeed later."""

    retryable = True


class DeadlineExceeded(SidecarError):
    """The awaited event has not happened yet; an immediate retry is fine."""

    retryable = True


class StateLoadFailed(SidecarError):
    """Stored state could not be read; Baton retries and never uses the initial state instead."""

    retryable = True


class StatePersistFailed(SidecarError):
    """State could not be written; the write was not acknowledged."""

    retryable = True


class SchemaDecodeFailed(SidecarError):
    """Stored bytes do not match the declared schema; the table state_set_aside keeps them."""


class HeartbeatFailed(SidecarError):
    """The heartbeat of a singleton or schedule could not be written."""

    retryable = True


class LeaderHandoffFailed(SidecarError):
    """The app did not answer OnBecomeLeader or OnLoseLeadership with success."""

    retryable = True
