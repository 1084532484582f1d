"""A cache of parsed schedule definitions: a leader reads the same ones in every round."""

import json
from functools import lru_cache
from typing import Any

from sidecar.adapters.postgres.definitions import from_json, values_of
from sidecar.model.definitions import Schedule


@lru_cache(maxsize=2048)
def _parsed(stored: str) -> dict[str, Any]:
    """By the text alone: thousands of schedules often differ in nothing but their names."""
    return values_of(json.loads(stored))


@lru_cache(maxsize=2048)
def from_text(name: str, group: str, stored: str | None) -> Schedule:
    """Like `from_json`, without payload; the text is parsed once."""
    try:
        values = _parsed(stored or "{}")
    except ValueError:
        return from_json(name, group, b"", json.loads(stored or "{}"))  # says what is wrong
    return Schedule(name=name, group=group, **values)
