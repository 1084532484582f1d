"""The Python client of the Baton sidecar.

`Baton` is the app object: register handlers and hooks on it, then `run()` it beside a sidecar.
`Sidecar` alone is for programs that only call the sidecar. Messages of the contract are in
`baton.v1`.
"""

from baton._app import Baton
from baton._cluster import ClusterContext, cluster_context, next_id
from baton._context import Context, OwnedState
from baton._deferreds import Deferred
from baton._enqueue import Enqueue
from baton._jobs import Submitted
from baton._outcomes import Fail, Result, Retry, Skip, Snooze
from baton._sidecar import Sidecar
from baton._specs import JobSpec, Unique
from baton._state import Change, Entry
from baton.errors import (
    AlreadyExists,
    BatonError,
    ClusterContextRequired,
    Conflict,
    DeadlineExceeded,
    DeferredFailed,
    FailedPrecondition,
    Fenced,
    HeartbeatFailed,
    InvalidArgument,
    LeaderHandoffFailed,
    LimitExceeded,
    NotConnected,
    NotFound,
    OutOfRange,
    SchemaDecodeFailed,
    StateLoadFailed,
    StatePersistFailed,
    Unauthenticated,
    Unavailable,
)
from baton.v1.jobs_pb2 import Job
from baton.v1.leadership_pb2 import Leader
from baton.v1.runs_pb2 import Run
from baton.v1.schedules_pb2 import RetryPolicy, Schedule

__all__ = [
    "AlreadyExists",
    "Baton",
    "BatonError",
    "Change",
    "ClusterContext",
    "ClusterContextRequired",
    "Conflict",
    "Context",
    "DeadlineExceeded",
    "Deferred",
    "DeferredFailed",
    "Enqueue",
    "Entry",
    "Fail",
    "FailedPrecondition",
    "Fenced",
    "HeartbeatFailed",
    "InvalidArgument",
    "Job",
    "JobSpec",
    "Leader",
    "LeaderHandoffFailed",
    "LimitExceeded",
    "NotConnected",
    "NotFound",
    "OutOfRange",
    "OwnedState",
    "Result",
    "Retry",
    "RetryPolicy",
    "Run",
    "Schedule",
    "SchemaDecodeFailed",
    "Sidecar",
    "Skip",
    "Snooze",
    "StateLoadFailed",
    "StatePersistFailed",
    "Submitted",
    "Unauthenticated",
    "Unavailable",
    "Unique",
    "cluster_context",
    "next_id",
]
