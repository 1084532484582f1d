import datetime

from . import runs_pb2 as _runs_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Singleton(_message.Message):
    __slots__ = ("name", "group", "leader", "metadata", "state_version", "last_heartbeat", "stale", "stale_reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    STALE_REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    group: str
    leader: str
    metadata: _runs_pb2.ExecutionMetadata
    state_version: int
    last_heartbeat: _timestamp_pb2.Timestamp
    stale: bool
    stale_reason: str
    def __init__(self, name: _Optional[str] = ..., group: _Optional[str] = ..., leader: _Optional[str] = ..., metadata: _Optional[_Union[_runs_pb2.ExecutionMetadata, _Mapping]] = ..., state_version: _Optional[int] = ..., last_heartbeat: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stale: bool = ..., stale_reason: _Optional[str] = ...) -> None: ...

class SingletonsGetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SingletonsGetResponse(_message.Message):
    __slots__ = ("singleton",)
    SINGLETON_FIELD_NUMBER: _ClassVar[int]
    singleton: Singleton
    def __init__(self, singleton: _Optional[_Union[Singleton, _Mapping]] = ...) -> None: ...

class SingletonsListRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class SingletonsListResponse(_message.Message):
    __slots__ = ("singletons", "next_page_token")
    SINGLETONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    singletons: _containers.RepeatedCompositeFieldContainer[Singleton]
    next_page_token: str
    def __init__(self, singletons: _Optional[_Iterable[_Union[Singleton, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
