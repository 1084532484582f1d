import datetime

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

class DeferredState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEFERRED_STATE_UNSPECIFIED: _ClassVar[DeferredState]
    DEFERRED_STATE_PENDING: _ClassVar[DeferredState]
    DEFERRED_STATE_COMPLETED: _ClassVar[DeferredState]
    DEFERRED_STATE_FAILED: _ClassVar[DeferredState]
    DEFERRED_STATE_EXPIRED: _ClassVar[DeferredState]
DEFERRED_STATE_UNSPECIFIED: DeferredState
DEFERRED_STATE_PENDING: DeferredState
DEFERRED_STATE_COMPLETED: DeferredState
DEFERRED_STATE_FAILED: DeferredState
DEFERRED_STATE_EXPIRED: DeferredState

class Deferred(_message.Message):
    __slots__ = ("token", "name", "run_id", "state", "value", "error", "created_at", "finished_at", "expires_at")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    token: str
    name: str
    run_id: int
    state: DeferredState
    value: bytes
    error: str
    created_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, token: _Optional[str] = ..., name: _Optional[str] = ..., run_id: _Optional[int] = ..., state: _Optional[_Union[DeferredState, str]] = ..., value: _Optional[bytes] = ..., error: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DeferredsCreateRequest(_message.Message):
    __slots__ = ("name", "run", "ttl")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    name: str
    run: _runs_pb2.RunRef
    ttl: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., run: _Optional[_Union[_runs_pb2.RunRef, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeferredsCreateResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class DeferredsAwaitRequest(_message.Message):
    __slots__ = ("token", "timeout")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    token: str
    timeout: _duration_pb2.Duration
    def __init__(self, token: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DeferredsAwaitResponse(_message.Message):
    __slots__ = ("deferred",)
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    deferred: Deferred
    def __init__(self, deferred: _Optional[_Union[Deferred, _Mapping]] = ...) -> None: ...

class DeferredsCompleteRequest(_message.Message):
    __slots__ = ("token", "value")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    token: str
    value: bytes
    def __init__(self, token: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class DeferredsCompleteResponse(_message.Message):
    __slots__ = ("deferred",)
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    deferred: Deferred
    def __init__(self, deferred: _Optional[_Union[Deferred, _Mapping]] = ...) -> None: ...

class DeferredsFailRequest(_message.Message):
    __slots__ = ("token", "error")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    token: str
    error: str
    def __init__(self, token: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class DeferredsFailResponse(_message.Message):
    __slots__ = ("deferred",)
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    deferred: Deferred
    def __init__(self, deferred: _Optional[_Union[Deferred, _Mapping]] = ...) -> None: ...

class DeferredsGetRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class DeferredsGetResponse(_message.Message):
    __slots__ = ("deferred",)
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    deferred: Deferred
    def __init__(self, deferred: _Optional[_Union[Deferred, _Mapping]] = ...) -> None: ...

class DeferredsListRequest(_message.Message):
    __slots__ = ("run_id", "state", "page_size", "page_token")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    state: DeferredState
    page_size: int
    page_token: str
    def __init__(self, run_id: _Optional[int] = ..., state: _Optional[_Union[DeferredState, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class DeferredsListResponse(_message.Message):
    __slots__ = ("deferreds", "next_page_token")
    DEFERREDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deferreds: _containers.RepeatedCompositeFieldContainer[Deferred]
    next_page_token: str
    def __init__(self, deferreds: _Optional[_Iterable[_Union[Deferred, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
