import datetime

from . import schedules_pb2 as _schedules_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobPriority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_PRIORITY_UNSPECIFIED: _ClassVar[JobPriority]
    JOB_PRIORITY_CRITICAL: _ClassVar[JobPriority]
    JOB_PRIORITY_HIGH: _ClassVar[JobPriority]
    JOB_PRIORITY_NORMAL: _ClassVar[JobPriority]
    JOB_PRIORITY_LOW: _ClassVar[JobPriority]

class JobConflict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_CONFLICT_UNSPECIFIED: _ClassVar[JobConflict]
    JOB_CONFLICT_EXISTING: _ClassVar[JobConflict]
    JOB_CONFLICT_REPLACE: _ClassVar[JobConflict]
    JOB_CONFLICT_REJECT: _ClassVar[JobConflict]
JOB_PRIORITY_UNSPECIFIED: JobPriority
JOB_PRIORITY_CRITICAL: JobPriority
JOB_PRIORITY_HIGH: JobPriority
JOB_PRIORITY_NORMAL: JobPriority
JOB_PRIORITY_LOW: JobPriority
JOB_CONFLICT_UNSPECIFIED: JobConflict
JOB_CONFLICT_EXISTING: JobConflict
JOB_CONFLICT_REPLACE: JobConflict
JOB_CONFLICT_REJECT: JobConflict

class JobSpec(_message.Message):
    __slots__ = ("name", "payload", "content_type", "queue", "priority", "due_at", "delay", "expires_at", "key", "unique", "retry", "timeout", "labels", "batch")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    payload: bytes
    content_type: str
    queue: str
    priority: JobPriority
    due_at: _timestamp_pb2.Timestamp
    delay: _duration_pb2.Duration
    expires_at: _timestamp_pb2.Timestamp
    key: str
    unique: JobUnique
    retry: _schedules_pb2.RetryPolicy
    timeout: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    batch: str
    def __init__(self, name: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ..., queue: _Optional[str] = ..., priority: _Optional[_Union[JobPriority, str]] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[str] = ..., unique: _Optional[_Union[JobUnique, _Mapping]] = ..., retry: _Optional[_Union[_schedules_pb2.RetryPolicy, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., batch: _Optional[str] = ...) -> None: ...

class JobUnique(_message.Message):
    __slots__ = ("key", "window", "on_conflict")
    KEY_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ON_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    key: str
    window: _duration_pb2.Duration
    on_conflict: JobConflict
    def __init__(self, key: _Optional[str] = ..., window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_conflict: _Optional[_Union[JobConflict, str]] = ...) -> None: ...
