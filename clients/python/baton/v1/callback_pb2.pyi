import datetime

from . import job_types_pb2 as _job_types_pb2
from . import runs_pb2 as _runs_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LossReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_REASON_UNSPECIFIED: _ClassVar[LossReason]
    LOSS_REASON_RESIGNED: _ClassVar[LossReason]
    LOSS_REASON_SHUTDOWN: _ClassVar[LossReason]
    LOSS_REASON_LEASE_LOST: _ClassVar[LossReason]
    LOSS_REASON_APP_UNHEALTHY: _ClassVar[LossReason]
    LOSS_REASON_STALE: _ClassVar[LossReason]
    LOSS_REASON_FENCED: _ClassVar[LossReason]
LOSS_REASON_UNSPECIFIED: LossReason
LOSS_REASON_RESIGNED: LossReason
LOSS_REASON_SHUTDOWN: LossReason
LOSS_REASON_LEASE_LOST: LossReason
LOSS_REASON_APP_UNHEALTHY: LossReason
LOSS_REASON_STALE: LossReason
LOSS_REASON_FENCED: LossReason

class ClusterContext(_message.Message):
    __slots__ = ("cluster", "runner_id", "group", "is_leader", "epoch", "entity_type", "entity_id")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_ID_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    runner_id: str
    group: str
    is_leader: bool
    epoch: int
    entity_type: str
    entity_id: str
    def __init__(self, cluster: _Optional[str] = ..., runner_id: _Optional[str] = ..., group: _Optional[str] = ..., is_leader: bool = ..., epoch: _Optional[int] = ..., entity_type: _Optional[str] = ..., entity_id: _Optional[str] = ...) -> None: ...

class OnBecomeLeaderRequest(_message.Message):
    __slots__ = ("context", "trusted_for", "trusted_until_boottime")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FOR_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_UNTIL_BOOTTIME_FIELD_NUMBER: _ClassVar[int]
    context: ClusterContext
    trusted_for: _duration_pb2.Duration
    trusted_until_boottime: _duration_pb2.Duration
    def __init__(self, context: _Optional[_Union[ClusterContext, _Mapping]] = ..., trusted_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., trusted_until_boottime: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class OnBecomeLeaderResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OnLoseLeadershipRequest(_message.Message):
    __slots__ = ("context", "reason", "deadline")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    context: ClusterContext
    reason: LossReason
    deadline: _timestamp_pb2.Timestamp
    def __init__(self, context: _Optional[_Union[ClusterContext, _Mapping]] = ..., reason: _Optional[_Union[LossReason, str]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class OnLoseLeadershipResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("context", "run_id", "kind", "name", "attempt", "scheduled_at", "deadline", "idempotency_key", "payload", "content_type", "state", "state_version", "checkpoints", "metadata", "traceparent", "job")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    context: ClusterContext
    run_id: int
    kind: _runs_pb2.RunKind
    name: str
    attempt: int
    scheduled_at: _timestamp_pb2.Timestamp
    deadline: _timestamp_pb2.Timestamp
    idempotency_key: str
    payload: bytes
    content_type: str
    state: bytes
    state_version: int
    checkpoints: _containers.RepeatedCompositeFieldContainer[_runs_pb2.Checkpoint]
    metadata: _runs_pb2.ExecutionMetadata
    traceparent: str
    job: JobContext
    def __init__(self, context: _Optional[_Union[ClusterContext, _Mapping]] = ..., run_id: _Optional[int] = ..., kind: _Optional[_Union[_runs_pb2.RunKind, str]] = ..., name: _Optional[str] = ..., attempt: _Optional[int] = ..., scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., state: _Optional[bytes] = ..., state_version: _Optional[int] = ..., checkpoints: _Optional[_Iterable[_Union[_runs_pb2.Checkpoint, _Mapping]]] = ..., metadata: _Optional[_Union[_runs_pb2.ExecutionMetadata, _Mapping]] = ..., traceparent: _Optional[str] = ..., job: _Optional[_Union[JobContext, _Mapping]] = ...) -> None: ...

class JobContext(_message.Message):
    __slots__ = ("queue", "key", "priority", "labels", "batch", "submitted_at", "rescues")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    RESCUES_FIELD_NUMBER: _ClassVar[int]
    queue: str
    key: str
    priority: _job_types_pb2.JobPriority
    labels: _containers.ScalarMap[str, str]
    batch: str
    submitted_at: _timestamp_pb2.Timestamp
    rescues: int
    def __init__(self, queue: _Optional[str] = ..., key: _Optional[str] = ..., priority: _Optional[_Union[_job_types_pb2.JobPriority, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., batch: _Optional[str] = ..., submitted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rescues: _Optional[int] = ...) -> None: ...

class ExecuteResponse(_message.Message):
    __slots__ = ("succeeded", "failed", "skipped", "snoozed")
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    SNOOZED_FIELD_NUMBER: _ClassVar[int]
    succeeded: Succeeded
    failed: Failed
    skipped: Skipped
    snoozed: Snoozed
    def __init__(self, succeeded: _Optional[_Union[Succeeded, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., skipped: _Optional[_Union[Skipped, _Mapping]] = ..., snoozed: _Optional[_Union[Snoozed, _Mapping]] = ...) -> None: ...

class Succeeded(_message.Message):
    __slots__ = ("result", "state", "jobs")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    state: bytes
    jobs: _containers.RepeatedCompositeFieldContainer[_job_types_pb2.JobSpec]
    def __init__(self, result: _Optional[bytes] = ..., state: _Optional[bytes] = ..., jobs: _Optional[_Iterable[_Union[_job_types_pb2.JobSpec, _Mapping]]] = ...) -> None: ...

class Snoozed(_message.Message):
    __slots__ = ("at", "after", "state")
    AT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    after: _duration_pb2.Duration
    state: bytes
    def __init__(self, at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., state: _Optional[bytes] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("message", "code", "retryable", "retry_after", "state")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    message: str
    code: str
    retryable: bool
    retry_after: _duration_pb2.Duration
    state: bytes
    def __init__(self, message: _Optional[str] = ..., code: _Optional[str] = ..., retryable: bool = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., state: _Optional[bytes] = ...) -> None: ...

class Skipped(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
