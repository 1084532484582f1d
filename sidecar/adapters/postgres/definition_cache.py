"""Definitions of schedules for those who read the same ones again and again: the leader's turns."""

import json
from functools import lru_cache

from sidecar.adapters.postgres.definitions import from_json
from sidecar.config.work import Schedule


@lru_cache(maxsize=2048)
def from_text(name: str, group: str, stored: str | None) -> Schedule:
    """Like `from_json`, without payload; the text is parsed once."""
    return from_json(name, group, b"", json.loads(stored or "{}"))
