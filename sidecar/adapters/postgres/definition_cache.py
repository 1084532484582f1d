"""A cache of parsed schedule definitions: a leader reads the same ones in every round."""

import json
from functools import lru_cache

from sidecar.adapters.postgres.definitions import from_json
from sidecar.model.definitions import Schedule


@lru_cache(maxsize=2048)
def from_text(name: str, group: str, stored: str | None) -> Schedule:
    """Like `from_json`, without payload; the text is parsed once."""
    return from_json(name, group, b"", json.loads(stored or "{}"))
