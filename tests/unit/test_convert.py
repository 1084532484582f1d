"""Timestamps, durations and run refs between protobuf and Python."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from sidecar._proto.baton.v1 import runs_pb2, schedules_pb2, state_pb2
from sidecar.adapters import convert
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef

INSTANTS = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]),
)


@given(INSTANTS)
def test_a_timestamp_is_what_protobuf_itself_makes(instant: datetime) -> None:
    expected = Timestamp()
    expected.FromDatetime(instant)
    made = convert.timestamp(instant)
    assert made == expected
    assert convert.to_datetime(expected) == instant


@given(st.integers(0, 315_576_000_000 * 1000))
def test_milliseconds_survive_as_a_duration(milliseconds: int) -> None:
    made = convert.duration(milliseconds / 1000)
    expected = Duration()
    expected.FromMilliseconds(milliseconds)
    assert made is not None
    assert abs(made.ToNanoseconds() - expected.ToNanoseconds()) < 100_000
    assert round(convert.to_seconds(made) * 1000) == milliseconds


def test_what_is_not_set_is_none() -> None:
    assert convert.timestamp(None) is None
    assert convert.duration(None) is None
    request = state_pb2.StatePutRequest()
    assert convert.seconds_of(request, "ttl") is None
    assert convert.run_of(request) is None
    assert convert.instant_of(schedules_pb2.Schedule(), "at") is None


def test_a_run_is_taken_as_it_is() -> None:
    request = state_pb2.StatePutRequest(run=runs_pb2.RunRef(run_id=1, attempt=2, epoch=3))
    assert convert.run_of(request) == RunRef(run_id=1, attempt=2, epoch=3)


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(0, 10**9), (1, -1), (-1, 1), (315_576_000_001, 0), (0, -(10**9))]
)
def test_no_duration(seconds: int, nanos: int) -> None:
    """G11."""
    request = state_pb2.StatePutRequest(ttl=Duration(seconds=seconds, nanos=nanos))
    with pytest.raises(InvalidArgument) as refused:
        convert.seconds_of(request, "ttl", "state.")
    assert refused.value.field == "state.ttl"


@pytest.mark.parametrize(
    ("seconds", "problem"),
    [
        (2**62, "is not a time between the years 1 and 9999"),
        (-1, "must be between the years 1970 and 2199"),
        (7_258_118_400, "must be between the years 1970 and 2199"),  # 2200-01-01
    ],
)
def test_no_instant(seconds: int, problem: str) -> None:
    """G11."""
    message = schedules_pb2.Schedule(at=Timestamp(seconds=seconds))
    with pytest.raises(InvalidArgument) as refused:
        convert.instant_of(message, "at", "schedule.")
    assert (refused.value.field, refused.value.problem) == ("schedule.at", problem)
