import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Leader(_message.Message):
    __slots__ = ("group", "is_leader", "leader_runner_id", "leader_host", "epoch", "trusted_for", "draining", "drain_deadline", "trusted_until_boottime")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_HOST_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FOR_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    DRAIN_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_UNTIL_BOOTTIME_FIELD_NUMBER: _ClassVar[int]
    group: str
    is_leader: bool
    leader_runner_id: str
    leader_host: str
    epoch: int
    trusted_for: _duration_pb2.Duration
    draining: bool
    drain_deadline: _timestamp_pb2.Timestamp
    trusted_until_boottime: _duration_pb2.Duration
    def __init__(self, group: _Optional[str] = ..., is_leader: bool = ..., leader_runner_id: _Optional[str] = ..., leader_host: _Optional[str] = ..., epoch: _Optional[int] = ..., trusted_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., draining: bool = ..., drain_deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., trusted_until_boottime: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TermRecord(_message.Message):
    __slots__ = ("group", "epoch", "runner_id", "host", "taken_at", "ended_at", "end_reason")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    group: str
    epoch: int
    runner_id: str
    host: str
    taken_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    end_reason: str
    def __init__(self, group: _Optional[str] = ..., epoch: _Optional[int] = ..., runner_id: _Optional[str] = ..., host: _Optional[str] = ..., taken_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_reason: _Optional[str] = ...) -> None: ...

class LeadershipGetRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class LeadershipGetResponse(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: Leader
    def __init__(self, leader: _Optional[_Union[Leader, _Mapping]] = ...) -> None: ...

class LeadershipListRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class LeadershipListResponse(_message.Message):
    __slots__ = ("leaders", "next_page_token")
    LEADERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    leaders: _containers.RepeatedCompositeFieldContainer[Leader]
    next_page_token: str
    def __init__(self, leaders: _Optional[_Iterable[_Union[Leader, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class LeadershipHistoryRequest(_message.Message):
    __slots__ = ("group", "page_size", "page_token")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    group: str
    page_size: int
    page_token: str
    def __init__(self, group: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class LeadershipHistoryResponse(_message.Message):
    __slots__ = ("terms", "next_page_token")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    terms: _containers.RepeatedCompositeFieldContainer[TermRecord]
    next_page_token: str
    def __init__(self, terms: _Optional[_Iterable[_Union[TermRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class LeadershipResignRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class LeadershipResignResponse(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: Leader
    def __init__(self, leader: _Optional[_Union[Leader, _Mapping]] = ...) -> None: ...

class LeadershipWatchRequest(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class LeadershipWatchResponse(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: Leader
    def __init__(self, leader: _Optional[_Union[Leader, _Mapping]] = ...) -> None: ...
