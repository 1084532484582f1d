"""Checks a definition from the API against the limits that apply to the config file (G11).

The limits come from the declarations of the settings, which are their only definition.
"""

from typing import Any

from sidecar.config import schemas
from sidecar.config.declare import declarations
from sidecar.config.kinds import Boolean, Duration, Instant, Kind, Payload
from sidecar.config.problems import InvalidValue
from sidecar.model.definitions import Schedule
from sidecar.model.duration import format_duration
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import PAYLOAD_BYTES_MAX
from sidecar.model.schedule import Timing, timing_of
from sidecar.model.stored_schedule import policy_of
from sidecar.model.validation import check_size


def checked(definition: Schedule, cluster: str, place: str = "schedule") -> Timing:
    """Return the timing of a valid definition; InvalidArgument names the first invalid field."""
    _check_values(definition, place)
    _check_retry(definition, place)
    _check_state(definition, place)
    try:
        policy_of(definition)
        timing = timing_of(definition, cluster)
    except InvalidArgument as error:
        field = place if error.field == "schedule" else f"{place}.{error.field}"
        raise InvalidArgument(field, error.problem) from None
    if timing.never_ticks:
        raise InvalidArgument(f"{place}.end_at", "never ticks between start_at and end_at")
    return timing


def _check_values(section: Any, place: str) -> None:
    for key, field, declaration in declarations(type(section)):
        value = getattr(section, field.name)
        if declaration.form == "section":
            _check_values(value, f"{place}.{key}")
        elif declaration.form == "scalar" and declaration.kind and value is not None:
            _check_value(declaration.kind, value, f"{place}.{key}")


def _check_value(kind: Kind, value: Any, place: str) -> None:
    if isinstance(kind, Boolean | Instant):
        return  # the type already limits the value
    if isinstance(kind, Payload):
        check_size(place, value, PAYLOAD_BYTES_MAX)
        return
    try:
        text = format_duration(value) if isinstance(kind, Duration) else str(value)
        kind.parse(text)
    except (InvalidValue, ValueError) as error:
        raise InvalidArgument(place, f"{error}; {kind.allowed}") from None


def _check_retry(definition: Schedule, place: str) -> None:
    if definition.retry.initial_seconds > definition.retry.max_seconds:
        raise InvalidArgument(f"{place}.retry.initial", "is longer than retry.max")


def _check_state(definition: Schedule, place: str) -> None:
    state = definition.state
    if problem := schemas.schema_problem(state.schema):
        raise InvalidArgument(f"{place}.state.schema", problem)
    if problem := schemas.value_problem(state.initial, state.schema):
        raise InvalidArgument(f"{place}.state.initial", problem)
