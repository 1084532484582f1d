"""Reads `google.rpc.Status` out of trailing metadata, without the googleapis package.

Only three details matter here: ErrorInfo (a typed reason), RetryInfo (when to ask again) and
BadRequest (which fields are wrong). Bytes that cannot be read give empty details: an error about
an error helps nobody.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

_KEY = "grpc-status-details-bin"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class StatusDetails:
    """What the sidecar said beyond code and message."""

    reason: str = ""
    retry_after: float | None = None
    violations: tuple[tuple[str, str], ...] = ()
    existing: bytes | None = None  # what stands already, if it is small


def status_details(metadata: Iterable[tuple[str, str | bytes]] | None) -> StatusDetails:
    """The details found in trailing metadata; empty if there are none or they are damaged."""
    for key, value in metadata or ():
        if key == _KEY and isinstance(value, bytes):
            try:
                return _parsed(value)
            except (DecodeError, ValueError, IndexError):
                return StatusDetails()
    return StatusDetails()


def _parsed(status: bytes) -> StatusDetails:
    reason, retry_after, existing = "", None, None
    violations: tuple[tuple[str, str], ...] = ()
    for packed in _fields(status, 3):
        detail = Any.FromString(packed)
        if detail.TypeName() == "google.rpc.ErrorInfo":
            reason = _text(detail.value, 1)
            metadata = {_text(pair, 1): _text(pair, 2) for pair in _fields(detail.value, 3)}
            if "existing" in metadata:
                existing = b64decode(metadata["existing"])
        elif detail.TypeName() == "google.rpc.RetryInfo":
            delay = Duration.FromString(next(_fields(detail.value, 1), b""))
            retry_after = delay.ToTimedelta().total_seconds()
        elif detail.TypeName() == "google.rpc.BadRequest":
            violations = tuple((_text(v, 1), _text(v, 2)) for v in _fields(detail.value, 1))
    return StatusDetails(reason, retry_after, violations, existing)


def _text(message: bytes, number: int) -> str:
    return next(_fields(message, number), b"").decode()


def _fields(message: bytes, number: int) -> Iterator[bytes]:
    """The values of a length-delimited field, by the protobuf wire format; others are skipped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, at = _varint(message, at)
        elif wire_type == _BYTES:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("cut short")
            if key >> 3 == number:
                yield message[at : at + length]
            at += length
        elif wire_type in (_FIXED64, _FIXED32):
            at += 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError("unknown wire type")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1
