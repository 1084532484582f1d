"""The definition of a schedule as JSON, the form in which it is stored.

Guarantees: what was written is read back equal; a key that this release does not know is ignored
and a missing key gets its default, so that two releases can share a database during a rollout.
A value that no release writes raises `DamagedRow`, which names its key.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, get_args, get_type_hints

from sidecar.model.definitions import Retry, Schedule, State
from sidecar.model.errors import DamagedRow

_OWN_COLUMNS = frozenset({"name", "group", "payload"})  # not part of the JSON
Form = Callable[[Any], Any]
_INTEGER_MAX = 2**31 - 1
_SECONDS_MAX = 3650 * 86_400.0


def _names(section: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(section))


_KNOWN = _names(Schedule) - _OWN_COLUMNS


def to_json(definition: Schedule) -> dict[str, Any]:
    return {name: _plain(getattr(definition, name)) for name in sorted(_KNOWN)}


def from_json(name: str, group: str, payload: bytes, stored: Any) -> Schedule:
    try:
        values = values_of(stored)
    except ValueError as error:
        problem = f"its {error} is nothing that any release writes"
        raise DamagedRow(f"schedule {name!r} is damaged in the database: {problem}") from None
    return Schedule(name=name, group=group, payload=payload, **values)


def values_of(stored: Any) -> dict[str, Any]:
    """All but name, group and payload; ValueError names the first value that is invalid."""
    return _read(_FORMS, stored, "definition")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return dict(value) if isinstance(value, Mapping) else value


def _read(forms: Mapping[str, Form], stored: Any, place: str) -> dict[str, Any]:
    """The values of the known keys; ValueError names the first key whose value is invalid."""
    if not isinstance(stored, Mapping):
        raise ValueError(place)  # noqa: TRY004 - one kind of error, caught in one place
    values: dict[str, Any] = {}
    for key, value in stored.items():
        if form := forms.get(key):
            try:
                values[key] = form(value)
            except (TypeError, ValueError):
                raise ValueError(f"{place}.{key}") from None
    return values


# One parser per type of an attribute: it returns the value or raises.


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INTEGER_MAX:
        raise TypeError
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    if not 0 <= value <= _SECONDS_MAX:
        raise ValueError
    return value


def _instant(value: Any) -> datetime:
    instant = datetime.fromisoformat(value)
    if instant.tzinfo is None:
        raise ValueError
    return instant


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _form(hint: Any) -> Form:
    allowed = get_args(hint)
    if type(None) in allowed:
        inner = _form(next(each for each in allowed if each is not type(None)))
        return lambda value: None if value is None else inner(value)
    if allowed and isinstance(allowed[0], str):
        return lambda value: allowed[allowed.index(value)]
    return _BY_TYPE.get(hint, lambda value: value)


_BY_TYPE: dict[Any, Form] = {
    str: _text,
    bool: _boolean,
    int: _integer,
    float: _seconds,
    datetime: _instant,
    Mapping[str, Any]: _object,
}


def _forms(section: Any) -> dict[str, Form]:
    hints = get_type_hints(section).items()
    return {name: _form(hint) for name, hint in hints if name not in _OWN_COLUMNS}


def _section(section: Any, key: str) -> Form:
    forms = _forms(section)
    return lambda value: section(**_read(forms, value, key))


_FORMS = _forms(Schedule) | {"retry": _section(Retry, "retry"), "state": _section(State, "state")}
