"""Timestamps, durations and run refs: from protobuf to Python and back.

Guarantee: what a caller sent is checked here, because protobuf checks its well-known types only in
JSON; InvalidArgument names the field. A field that is not set is None, both ways: the constructors
of messages take None so.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, overload

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef

T = TypeVar("T")

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS_MAX = 999_999_999
_SECONDS_MAX = 315_576_000_000  # ten thousand years, as the well-known type has it
_YEARS = (1970, 2199)


@overload
def timestamp(instant: datetime) -> Timestamp: ...
@overload
def timestamp(instant: datetime | None) -> Timestamp | None: ...
def timestamp(instant: datetime | None) -> Timestamp | None:
    if instant is None:
        return None
    # FromDatetime of protobuf takes ten times as long, and each Execute carries several.
    since = instant - _UNIX_EPOCH
    seconds = since.days * 86_400 + since.seconds
    return Timestamp(seconds=seconds, nanos=since.microseconds * 1000)


@overload
def duration(seconds: float) -> Duration: ...
@overload
def duration(seconds: float | None) -> Duration | None: ...
def duration(seconds: float | None) -> Duration | None:
    """Not for negative times: their nanos would need the same sign."""
    if seconds is None:
        return None
    whole, nanos = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(seconds=whole, nanos=nanos)


def to_datetime(timestamp: Timestamp) -> datetime:
    """Raises ValueError or OverflowError outside of the years 1 to 9999."""
    return timestamp.ToDatetime(tzinfo=UTC)


def to_seconds(duration: Duration) -> float:
    return duration.seconds + duration.nanos / 1e9


def instant_of(message: Any, field: str, prefix: str = "") -> datetime | None:
    """The time in this field of a request, checked; `prefix` and `field` name it in an error."""
    if not message.HasField(field):
        return None
    try:
        instant = to_datetime(getattr(message, field))
    except (ValueError, OverflowError):
        raise InvalidArgument(
            prefix + field, "is not a time between the years 1 and 9999"
        ) from None
    first, last = _YEARS
    if not first <= instant.year <= last:
        raise InvalidArgument(prefix + field, f"must be between the years {first} and {last}")
    return instant


def seconds_of(message: Any, field: str, prefix: str = "") -> float | None:
    """The duration in this field of a request, checked; `prefix` and `field` name it in errors."""
    if not message.HasField(field):
        return None
    given: Duration = getattr(message, field)
    if (
        abs(given.nanos) > _NANOS_MAX
        or abs(given.seconds) > _SECONDS_MAX
        or given.seconds * given.nanos < 0
    ):
        raise InvalidArgument(
            prefix + field,
            "is not a duration: nanos have at most nine digits and the sign of seconds",
        )
    return to_seconds(given)


def run_of(request: Any) -> RunRef | None:
    """The attempt that a request names in its field `run`."""
    if not request.HasField("run"):
        return None
    return RunRef(request.run.run_id, request.run.attempt, request.run.epoch)


def chosen(values: Mapping[int, T], number: int, field: str) -> T | None:
    """The value of an enum; None: unspecified."""
    if number and number not in values:
        raise InvalidArgument(field, f"{number} is not known")
    return values.get(number)
