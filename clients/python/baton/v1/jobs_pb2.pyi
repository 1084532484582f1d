import datetime

from . import job_types_pb2 as _job_types_pb2
from . import runs_pb2 as _runs_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Job(_message.Message):
    __slots__ = ("job_id", "name", "queue", "priority", "key", "labels", "batch", "state", "outcome", "reason", "attempt", "failures", "rescues", "created_at", "due_at", "expires_at", "started_at", "finished_at", "runner_id", "progress", "progress_message", "error", "content_type", "payload", "result", "history", "cancel_requested", "blocked_by", "idempotency_key")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    RESCUES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    name: str
    queue: str
    priority: _job_types_pb2.JobPriority
    key: str
    labels: _containers.ScalarMap[str, str]
    batch: str
    state: _runs_pb2.RunState
    outcome: _runs_pb2.Outcome
    reason: _runs_pb2.SkipReason
    attempt: int
    failures: int
    rescues: int
    created_at: _timestamp_pb2.Timestamp
    due_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    runner_id: str
    progress: float
    progress_message: str
    error: str
    content_type: str
    payload: bytes
    result: bytes
    history: _containers.RepeatedCompositeFieldContainer[_runs_pb2.RunEvent]
    cancel_requested: bool
    blocked_by: str
    idempotency_key: str
    def __init__(self, job_id: _Optional[int] = ..., name: _Optional[str] = ..., queue: _Optional[str] = ..., priority: _Optional[_Union[_job_types_pb2.JobPriority, str]] = ..., key: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., batch: _Optional[str] = ..., state: _Optional[_Union[_runs_pb2.RunState, str]] = ..., outcome: _Optional[_Union[_runs_pb2.Outcome, str]] = ..., reason: _Optional[_Union[_runs_pb2.SkipReason, str]] = ..., attempt: _Optional[int] = ..., failures: _Optional[int] = ..., rescues: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., runner_id: _Optional[str] = ..., progress: _Optional[float] = ..., progress_message: _Optional[str] = ..., error: _Optional[str] = ..., content_type: _Optional[str] = ..., payload: _Optional[bytes] = ..., result: _Optional[bytes] = ..., history: _Optional[_Iterable[_Union[_runs_pb2.RunEvent, _Mapping]]] = ..., cancel_requested: bool = ..., blocked_by: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class JobsSubmitRequest(_message.Message):
    __slots__ = ("jobs", "request_id", "on_complete", "batch")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ON_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_types_pb2.JobSpec]
    request_id: str
    on_complete: _job_types_pb2.JobSpec
    batch: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_types_pb2.JobSpec, _Mapping]]] = ..., request_id: _Optional[str] = ..., on_complete: _Optional[_Union[_job_types_pb2.JobSpec, _Mapping]] = ..., batch: _Optional[str] = ...) -> None: ...

class SubmittedJob(_message.Message):
    __slots__ = ("job_id", "duplicate")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    duplicate: bool
    def __init__(self, job_id: _Optional[int] = ..., duplicate: bool = ...) -> None: ...

class JobsSubmitResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[SubmittedJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[SubmittedJob, _Mapping]]] = ...) -> None: ...

class JobsGetRequest(_message.Message):
    __slots__ = ("job_id", "wait")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    wait: _duration_pb2.Duration
    def __init__(self, job_id: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class JobsGetResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class JobFilter(_message.Message):
    __slots__ = ("queue", "name", "state", "outcome", "key", "labels", "since", "until", "batch", "error_contains")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_CONTAINS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    state: _runs_pb2.RunState
    outcome: _runs_pb2.Outcome
    key: str
    labels: _containers.ScalarMap[str, str]
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    batch: str
    error_contains: str
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[_runs_pb2.RunState, str]] = ..., outcome: _Optional[_Union[_runs_pb2.Outcome, str]] = ..., key: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., batch: _Optional[str] = ..., error_contains: _Optional[str] = ...) -> None: ...

class JobsListRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class JobsListResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class JobsCancelRequest(_message.Message):
    __slots__ = ("job_ids", "filter", "note")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[int]
    filter: JobFilter
    note: str
    def __init__(self, job_ids: _Optional[_Iterable[int]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class JobsCancelResponse(_message.Message):
    __slots__ = ("cancelled", "requested")
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    requested: int
    def __init__(self, cancelled: _Optional[int] = ..., requested: _Optional[int] = ...) -> None: ...

class JobsRetryRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    def __init__(self, job_id: _Optional[int] = ...) -> None: ...

class JobsRetryResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class JobsRescheduleRequest(_message.Message):
    __slots__ = ("job_id", "due_at")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    due_at: _timestamp_pb2.Timestamp
    def __init__(self, job_id: _Optional[int] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class JobsRescheduleResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class JobsWatchRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    def __init__(self, job_id: _Optional[int] = ...) -> None: ...

class JobsWatchResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "ready", "scheduled", "running", "dead", "oldest_wait", "ended_last_minute", "failed_last_minute", "paused", "pause_note", "max_running", "cluster_max_running", "rate")
    NAME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAIT_FIELD_NUMBER: _ClassVar[int]
    ENDED_LAST_MINUTE_FIELD_NUMBER: _ClassVar[int]
    FAILED_LAST_MINUTE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_NOTE_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_MAX_RUNNING_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    ready: int
    scheduled: int
    running: int
    dead: int
    oldest_wait: _duration_pb2.Duration
    ended_last_minute: int
    failed_last_minute: int
    paused: bool
    pause_note: str
    max_running: int
    cluster_max_running: int
    rate: float
    def __init__(self, name: _Optional[str] = ..., ready: _Optional[int] = ..., scheduled: _Optional[int] = ..., running: _Optional[int] = ..., dead: _Optional[int] = ..., oldest_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ended_last_minute: _Optional[int] = ..., failed_last_minute: _Optional[int] = ..., paused: bool = ..., pause_note: _Optional[str] = ..., max_running: _Optional[int] = ..., cluster_max_running: _Optional[int] = ..., rate: _Optional[float] = ...) -> None: ...

class JobsStatsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class JobsStatsResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ...) -> None: ...

class JobsPauseQueueRequest(_message.Message):
    __slots__ = ("queue", "note")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    note: str
    def __init__(self, queue: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class JobsPauseQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class JobsResumeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class JobsResumeQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class JobsGetBatchRequest(_message.Message):
    __slots__ = ("batch",)
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: str
    def __init__(self, batch: _Optional[str] = ...) -> None: ...

class JobsGetBatchResponse(_message.Message):
    __slots__ = ("total", "succeeded", "failed", "skipped", "closed", "complete", "completion_job_id")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    total: int
    succeeded: int
    failed: int
    skipped: int
    closed: bool
    complete: bool
    completion_job_id: int
    def __init__(self, total: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., skipped: _Optional[int] = ..., closed: bool = ..., complete: bool = ..., completion_job_id: _Optional[int] = ...) -> None: ...

class JobsListDeadRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class JobsListDeadResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class JobsReplayRequest(_message.Message):
    __slots__ = ("job_ids", "filter", "dry_run")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[int]
    filter: JobFilter
    dry_run: bool
    def __init__(self, job_ids: _Optional[_Iterable[int]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., dry_run: bool = ...) -> None: ...

class JobsReplayResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: int
    def __init__(self, replayed: _Optional[int] = ...) -> None: ...

class JobsDiscardRequest(_message.Message):
    __slots__ = ("job_ids", "filter", "dry_run")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[int]
    filter: JobFilter
    dry_run: bool
    def __init__(self, job_ids: _Optional[_Iterable[int]] = ..., filter: _Optional[_Union[JobFilter, _Mapping]] = ..., dry_run: bool = ...) -> None: ...

class JobsDiscardResponse(_message.Message):
    __slots__ = ("discarded",)
    DISCARDED_FIELD_NUMBER: _ClassVar[int]
    discarded: int
    def __init__(self, discarded: _Optional[int] = ...) -> None: ...
