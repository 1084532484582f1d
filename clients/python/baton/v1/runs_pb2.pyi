import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_KIND_UNSPECIFIED: _ClassVar[RunKind]
    RUN_KIND_SINGLETON: _ClassVar[RunKind]
    RUN_KIND_SCHEDULE: _ClassVar[RunKind]
    RUN_KIND_TRIGGER: _ClassVar[RunKind]
    RUN_KIND_JOB: _ClassVar[RunKind]

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_QUEUED: _ClassVar[RunState]
    RUN_STATE_RUNNING: _ClassVar[RunState]
    RUN_STATE_WAITING: _ClassVar[RunState]
    RUN_STATE_ENDED: _ClassVar[RunState]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_SUCCEEDED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_SKIPPED: _ClassVar[Outcome]

class SkipReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKIP_REASON_UNSPECIFIED: _ClassVar[SkipReason]
    SKIP_REASON_MISFIRE: _ClassVar[SkipReason]
    SKIP_REASON_COALESCED: _ClassVar[SkipReason]
    SKIP_REASON_OVERLAP: _ClassVar[SkipReason]
    SKIP_REASON_PAUSED: _ClassVar[SkipReason]
    SKIP_REASON_OPERATOR: _ClassVar[SkipReason]
    SKIP_REASON_APP_DECLINED: _ClassVar[SkipReason]
    SKIP_REASON_EXPIRED: _ClassVar[SkipReason]
RUN_KIND_UNSPECIFIED: RunKind
RUN_KIND_SINGLETON: RunKind
RUN_KIND_SCHEDULE: RunKind
RUN_KIND_TRIGGER: RunKind
RUN_KIND_JOB: RunKind
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_QUEUED: RunState
RUN_STATE_RUNNING: RunState
RUN_STATE_WAITING: RunState
RUN_STATE_ENDED: RunState
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_SUCCEEDED: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_SKIPPED: Outcome
SKIP_REASON_UNSPECIFIED: SkipReason
SKIP_REASON_MISFIRE: SkipReason
SKIP_REASON_COALESCED: SkipReason
SKIP_REASON_OVERLAP: SkipReason
SKIP_REASON_PAUSED: SkipReason
SKIP_REASON_OPERATOR: SkipReason
SKIP_REASON_APP_DECLINED: SkipReason
SKIP_REASON_EXPIRED: SkipReason

class RunRef(_message.Message):
    __slots__ = ("run_id", "attempt", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    attempt: int
    epoch: int
    def __init__(self, run_id: _Optional[int] = ..., attempt: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("step", "value")
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    step: str
    value: bytes
    def __init__(self, step: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class ExecutionMetadata(_message.Message):
    __slots__ = ("last_run_at", "last_success_at", "run_count", "last_error", "missed_count", "average_duration", "last_duration")
    LAST_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_SUCCESS_AT_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    MISSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_DURATION_FIELD_NUMBER: _ClassVar[int]
    LAST_DURATION_FIELD_NUMBER: _ClassVar[int]
    last_run_at: _timestamp_pb2.Timestamp
    last_success_at: _timestamp_pb2.Timestamp
    run_count: int
    last_error: str
    missed_count: int
    average_duration: _duration_pb2.Duration
    last_duration: _duration_pb2.Duration
    def __init__(self, last_run_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_success_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., run_count: _Optional[int] = ..., last_error: _Optional[str] = ..., missed_count: _Optional[int] = ..., average_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., last_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "kind", "name", "group", "scheduled_at", "attempt", "state", "outcome", "reason", "started_at", "finished_at", "error", "progress", "progress_message", "epoch", "runner_id", "idempotency_key", "history", "last_scheduled_at", "tick_count", "next_attempt_at", "cancel_requested", "result", "created_at", "steps")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    LAST_SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    TICK_COUNT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    kind: RunKind
    name: str
    group: str
    scheduled_at: _timestamp_pb2.Timestamp
    attempt: int
    state: RunState
    outcome: Outcome
    reason: SkipReason
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    error: str
    progress: float
    progress_message: str
    epoch: int
    runner_id: str
    idempotency_key: str
    history: _containers.RepeatedCompositeFieldContainer[RunEvent]
    last_scheduled_at: _timestamp_pb2.Timestamp
    tick_count: int
    next_attempt_at: _timestamp_pb2.Timestamp
    cancel_requested: bool
    result: bytes
    created_at: _timestamp_pb2.Timestamp
    steps: _containers.RepeatedCompositeFieldContainer[RunStep]
    def __init__(self, run_id: _Optional[int] = ..., kind: _Optional[_Union[RunKind, str]] = ..., name: _Optional[str] = ..., group: _Optional[str] = ..., scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ..., state: _Optional[_Union[RunState, str]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., reason: _Optional[_Union[SkipReason, str]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[str] = ..., progress: _Optional[float] = ..., progress_message: _Optional[str] = ..., epoch: _Optional[int] = ..., runner_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., history: _Optional[_Iterable[_Union[RunEvent, _Mapping]]] = ..., last_scheduled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tick_count: _Optional[int] = ..., next_attempt_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cancel_requested: bool = ..., result: _Optional[bytes] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[RunStep, _Mapping]]] = ...) -> None: ...

class RunStep(_message.Message):
    __slots__ = ("step", "stored_at", "attempt", "size")
    STEP_FIELD_NUMBER: _ClassVar[int]
    STORED_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    step: str
    stored_at: _timestamp_pb2.Timestamp
    attempt: int
    size: int
    def __init__(self, step: _Optional[str] = ..., stored_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ("at", "state", "outcome", "attempt", "epoch", "runner_id", "cause")
    AT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    state: RunState
    outcome: Outcome
    attempt: int
    epoch: int
    runner_id: str
    cause: str
    def __init__(self, at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state: _Optional[_Union[RunState, str]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., attempt: _Optional[int] = ..., epoch: _Optional[int] = ..., runner_id: _Optional[str] = ..., cause: _Optional[str] = ...) -> None: ...

class RunsGetRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    def __init__(self, run_id: _Optional[int] = ...) -> None: ...

class RunsGetResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class RunsListRequest(_message.Message):
    __slots__ = ("name", "outcome", "state", "page_size", "page_token", "kind", "since", "until")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    name: str
    outcome: Outcome
    state: RunState
    page_size: int
    page_token: str
    kind: RunKind
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., state: _Optional[_Union[RunState, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., kind: _Optional[_Union[RunKind, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunsListResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RunsCancelRequest(_message.Message):
    __slots__ = ("run_id", "note")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    note: str
    def __init__(self, run_id: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class RunsCancelResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class RunsRetryRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    def __init__(self, run_id: _Optional[int] = ...) -> None: ...

class RunsRetryResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class RunsCheckpointRequest(_message.Message):
    __slots__ = ("run", "step", "value")
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    run: RunRef
    step: str
    value: bytes
    def __init__(self, run: _Optional[_Union[RunRef, _Mapping]] = ..., step: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class RunsCheckpointResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunsHeartbeatRequest(_message.Message):
    __slots__ = ("run", "progress", "message")
    RUN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    run: RunRef
    progress: float
    message: str
    def __init__(self, run: _Optional[_Union[RunRef, _Mapping]] = ..., progress: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class RunsHeartbeatResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunsStatsRequest(_message.Message):
    __slots__ = ("name", "window")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    window: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RunsStatsResponse(_message.Message):
    __slots__ = ("since", "until", "truncated", "names", "buckets")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    truncated: bool
    names: _containers.RepeatedCompositeFieldContainer[RunsStatsByName]
    buckets: _containers.RepeatedCompositeFieldContainer[RunsStatsBucket]
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., truncated: bool = ..., names: _Optional[_Iterable[_Union[RunsStatsByName, _Mapping]]] = ..., buckets: _Optional[_Iterable[_Union[RunsStatsBucket, _Mapping]]] = ...) -> None: ...

class RunsStatsByName(_message.Message):
    __slots__ = ("name", "succeeded", "failed", "skipped", "live", "lateness", "durations")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    LATENESS_FIELD_NUMBER: _ClassVar[int]
    DURATIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    succeeded: int
    failed: int
    skipped: int
    live: int
    lateness: Percentiles
    durations: Percentiles
    def __init__(self, name: _Optional[str] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., skipped: _Optional[int] = ..., live: _Optional[int] = ..., lateness: _Optional[_Union[Percentiles, _Mapping]] = ..., durations: _Optional[_Union[Percentiles, _Mapping]] = ...) -> None: ...

class Percentiles(_message.Message):
    __slots__ = ("p50", "p95", "p99", "max")
    P50_FIELD_NUMBER: _ClassVar[int]
    P95_FIELD_NUMBER: _ClassVar[int]
    P99_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    p50: _duration_pb2.Duration
    p95: _duration_pb2.Duration
    p99: _duration_pb2.Duration
    max: _duration_pb2.Duration
    def __init__(self, p50: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., p95: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., p99: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RunsStatsBucket(_message.Message):
    __slots__ = ("start", "succeeded", "failed", "skipped", "live")
    START_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    start: _timestamp_pb2.Timestamp
    succeeded: int
    failed: int
    skipped: int
    live: int
    def __init__(self, start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., skipped: _Optional[int] = ..., live: _Optional[int] = ...) -> None: ...
