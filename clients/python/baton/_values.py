"""How values travel: bytes as they are, everything else as JSON.

A stored step must come back as the kind it was. JSON never begins with a NUL byte, so that byte
marks raw bytes; a step therefore returns the same value whether it ran or was remembered.
"""

from __future__ import annotations

import json
from typing import Any

_RAW = b"\x00"


def to_bytes(value: Any) -> bytes:
    """The value as sent: bytes unchanged, anything else as compact JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def from_json(value: bytes, default: Any = None) -> Any:
    """The JSON in `value`; `default` if it is empty."""
    return json.loads(value) if value else default


def to_stored(value: Any) -> bytes:
    """A step's result as it is stored."""
    is_raw = isinstance(value, (bytes, bytearray, memoryview))
    return _RAW + bytes(value) if is_raw else to_bytes(value)


def from_stored(stored: bytes) -> Any:
    """A step's result as it was, but for what JSON does to it (a tuple becomes a list)."""
    return stored[1:] if stored[:1] == _RAW else from_json(stored)
