import datetime

from . import callback_pb2 as _callback_pb2
from . import leadership_pb2 as _leadership_pb2
from . import runs_pb2 as _runs_pb2
from . import schedules_pb2 as _schedules_pb2
from . import state_pb2 as _state_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LeadershipEvent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEADERSHIP_EVENT_UNSPECIFIED: _ClassVar[LeadershipEvent]
    LEADERSHIP_EVENT_BECOME: _ClassVar[LeadershipEvent]
    LEADERSHIP_EVENT_LOSE: _ClassVar[LeadershipEvent]
LEADERSHIP_EVENT_UNSPECIFIED: LeadershipEvent
LEADERSHIP_EVENT_BECOME: LeadershipEvent
LEADERSHIP_EVENT_LOSE: LeadershipEvent

class AttachRequest(_message.Message):
    __slots__ = ("hello", "answers", "leadership", "pong", "checkpoints", "heartbeats", "capacity")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    LEADERSHIP_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEATS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    answers: _containers.RepeatedCompositeFieldContainer[RunAnswer]
    leadership: _containers.RepeatedCompositeFieldContainer[LeadershipAnswer]
    pong: Pong
    checkpoints: _containers.RepeatedCompositeFieldContainer[StreamCheckpoint]
    heartbeats: _containers.RepeatedCompositeFieldContainer[StreamHeartbeat]
    capacity: int
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., answers: _Optional[_Iterable[_Union[RunAnswer, _Mapping]]] = ..., leadership: _Optional[_Iterable[_Union[LeadershipAnswer, _Mapping]]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., checkpoints: _Optional[_Iterable[_Union[StreamCheckpoint, _Mapping]]] = ..., heartbeats: _Optional[_Iterable[_Union[StreamHeartbeat, _Mapping]]] = ..., capacity: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("client", "process_id", "capacity", "singletons", "schedules", "jobs", "declared_schedules", "declared_singletons", "revision")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    SINGLETONS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    DECLARED_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    DECLARED_SINGLETONS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    client: str
    process_id: str
    capacity: int
    singletons: _containers.RepeatedScalarFieldContainer[str]
    schedules: _containers.RepeatedScalarFieldContainer[str]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    declared_schedules: _containers.RepeatedCompositeFieldContainer[_schedules_pb2.Schedule]
    declared_singletons: _containers.RepeatedCompositeFieldContainer[DeclaredSingleton]
    revision: int
    def __init__(self, client: _Optional[str] = ..., process_id: _Optional[str] = ..., capacity: _Optional[int] = ..., singletons: _Optional[_Iterable[str]] = ..., schedules: _Optional[_Iterable[str]] = ..., jobs: _Optional[_Iterable[str]] = ..., declared_schedules: _Optional[_Iterable[_Union[_schedules_pb2.Schedule, _Mapping]]] = ..., declared_singletons: _Optional[_Iterable[_Union[DeclaredSingleton, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class DeclaredSingleton(_message.Message):
    __slots__ = ("name", "group", "expected_interval", "restart_after", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    RESTART_AFTER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    group: str
    expected_interval: _duration_pb2.Duration
    restart_after: _duration_pb2.Duration
    state: _state_pb2.StatePolicy
    def __init__(self, name: _Optional[str] = ..., group: _Optional[str] = ..., expected_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., restart_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., state: _Optional[_Union[_state_pb2.StatePolicy, _Mapping]] = ...) -> None: ...

class RunAnswer(_message.Message):
    __slots__ = ("run_id", "attempt", "response", "status")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    attempt: int
    response: _callback_pb2.ExecuteResponse
    status: CallStatus
    def __init__(self, run_id: _Optional[int] = ..., attempt: _Optional[int] = ..., response: _Optional[_Union[_callback_pb2.ExecuteResponse, _Mapping]] = ..., status: _Optional[_Union[CallStatus, _Mapping]] = ...) -> None: ...

class CallStatus(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class LeadershipAnswer(_message.Message):
    __slots__ = ("event", "group", "epoch", "error")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    event: LeadershipEvent
    group: str
    epoch: int
    error: CallStatus
    def __init__(self, event: _Optional[_Union[LeadershipEvent, str]] = ..., group: _Optional[str] = ..., epoch: _Optional[int] = ..., error: _Optional[_Union[CallStatus, _Mapping]] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class StreamCheckpoint(_message.Message):
    __slots__ = ("number", "run", "step", "value")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    number: int
    run: _runs_pb2.RunRef
    step: str
    value: bytes
    def __init__(self, number: _Optional[int] = ..., run: _Optional[_Union[_runs_pb2.RunRef, _Mapping]] = ..., step: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class StreamHeartbeat(_message.Message):
    __slots__ = ("number", "run", "progress", "message")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    number: int
    run: _runs_pb2.RunRef
    progress: float
    message: str
    def __init__(self, number: _Optional[int] = ..., run: _Optional[_Union[_runs_pb2.RunRef, _Mapping]] = ..., progress: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("welcome", "runs", "cancels", "leadership", "trust", "stored", "ping")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    LEADERSHIP_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    runs: _containers.RepeatedCompositeFieldContainer[_callback_pb2.ExecuteRequest]
    cancels: _containers.RepeatedCompositeFieldContainer[RunCancel]
    leadership: _containers.RepeatedCompositeFieldContainer[LeadershipChange]
    trust: _containers.RepeatedCompositeFieldContainer[_leadership_pb2.Leader]
    stored: _containers.RepeatedCompositeFieldContainer[Stored]
    ping: Ping
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., runs: _Optional[_Iterable[_Union[_callback_pb2.ExecuteRequest, _Mapping]]] = ..., cancels: _Optional[_Iterable[_Union[RunCancel, _Mapping]]] = ..., leadership: _Optional[_Iterable[_Union[LeadershipChange, _Mapping]]] = ..., trust: _Optional[_Iterable[_Union[_leadership_pb2.Leader, _Mapping]]] = ..., stored: _Optional[_Iterable[_Union[Stored, _Mapping]]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("cluster", "runner_id", "health_interval", "message_bytes_max", "frame_entries_max")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RUNNER_ID_FIELD_NUMBER: _ClassVar[int]
    HEALTH_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    FRAME_ENTRIES_MAX_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    runner_id: str
    health_interval: _duration_pb2.Duration
    message_bytes_max: int
    frame_entries_max: int
    def __init__(self, cluster: _Optional[str] = ..., runner_id: _Optional[str] = ..., health_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., message_bytes_max: _Optional[int] = ..., frame_entries_max: _Optional[int] = ...) -> None: ...

class RunCancel(_message.Message):
    __slots__ = ("run_id", "attempt", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    attempt: int
    reason: str
    def __init__(self, run_id: _Optional[int] = ..., attempt: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class LeadershipChange(_message.Message):
    __slots__ = ("become", "lose")
    BECOME_FIELD_NUMBER: _ClassVar[int]
    LOSE_FIELD_NUMBER: _ClassVar[int]
    become: _callback_pb2.OnBecomeLeaderRequest
    lose: _callback_pb2.OnLoseLeadershipRequest
    def __init__(self, become: _Optional[_Union[_callback_pb2.OnBecomeLeaderRequest, _Mapping]] = ..., lose: _Optional[_Union[_callback_pb2.OnLoseLeadershipRequest, _Mapping]] = ...) -> None: ...

class Stored(_message.Message):
    __slots__ = ("number", "error", "existing")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    number: int
    error: CallStatus
    existing: bytes
    def __init__(self, number: _Optional[int] = ..., error: _Optional[_Union[CallStatus, _Mapping]] = ..., existing: _Optional[bytes] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...
