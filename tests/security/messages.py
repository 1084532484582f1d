"""Random messages for every method of the API: well-formed, nearly so, and not at all.

Made from the descriptors, so that a new method or field is covered the day it appears.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    ids_pb2,
    leadership_pb2,
    operations_pb2,
    runs_pb2,
    schedules_pb2,
    singletons_pb2,
    state_pb2,
)

_FILES = (
    deferreds_pb2, ids_pb2, leadership_pb2, operations_pb2, runs_pb2, schedules_pb2,
    singletons_pb2, state_pb2,
)  # fmt: skip
# These end what the others need: they have tests of their own.
_SPARED = {"/baton.v1.Operations/Drain", "/baton.v1.Leadership/Resign"}
_DEPTH_MAX = 3

Field = FieldDescriptor
# Texts that mean something somewhere, and texts that are meant to hurt.
_WORDS = (
    "", "a", "default", "one", "k", "singleton-state:one", "schedule-state:fuzz-1",
    "@daily", "* * * * *", "H H * * *", "0 0 30 2 *", "*/0 * * * *", "61 * * * *", "@reboot",
    "UTC", "Europe/Berlin", "Mars/Base", "../../etc/passwd", "application/json", "a" * 256,
    "a" * 5000, "a\0b", "\x1b[31m", "a\nb", "\u202e", "'; DROP TABLE baton.run; --", "%s%(x)s",
    "{}", "null", "bdt_" + "A" * 43, "http://127.0.0.1:1/x", "file:///etc/passwd", "\U0001f600",
)  # fmt: skip
_BYTES = (
    b"", b"{}", b"null", b"[" * 2000, b'{"type": 5}', b'{"$ref": "#"}', b"1e999", b"\xff\xfe",
    b"x" * (256 * 1024 + 1), b"x" * (1024 * 1024 + 1),
)  # fmt: skip
_EDGES = (0, 1, 2, 3, 1000, 1001, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
_FLOATS = (0.0, 0.5, 1.0, 1.5, -1.0, 1e300, float("nan"), float("inf"), float("-inf"))
# What a sensible caller would send, by the name of the field: only past the first checks is a
# message dangerous.
_SENSIBLE: dict[str, tuple[Any, ...]] = {
    "name": ("fuzz-1", "fuzz-2", "one"), "key": ("k", "k/1", "k/2"), "prefix": ("", "k"),
    "group": ("default",), "cron": ("@daily", "H H * * *", "*/5 * * * * *"), "timezone": ("UTC",),
    "run_id": (1, 2, 3, 4, 5), "attempt": (0, 1), "epoch": (0, 1), "step": ("s",),
    "page_size": (0, 1, 10), "page_token": ("",), "n": (0, 5), "count": (0, 1, 10),
    "seconds": (1, 60, 3600), "nanos": (0,), "expected_version": (0, 1), "after_version": (0,),
    "catch_up": (0, 1, 2), "overlap": (0, 1, 2), "catch_up_max": (0, 5), "attempts": (0, 2),
    "version": (0, 1), "initial": (b"", b"{}"), "schema": (b"", b'{"type": "object"}'),
    "ping_url": ("",), "content_type": ("", "text/plain"), "payload": (b"", b"{}"),
    "value": (b"", b"v"), "outcome": (0, 1), "state": (0, 1), "request_id": ("", "r"),
    "consistency": (0, 1), "progress": (0.0, 0.5), "token": ("bdt_" + "A" * 43,),
}  # fmt: skip
_RANGES = {
    Field.TYPE_INT32: (-(2**31), 2**31 - 1),
    Field.TYPE_INT64: (-(2**63), 2**63 - 1),
    Field.TYPE_UINT32: (0, 2**32 - 1),
    Field.TYPE_UINT64: (0, 2**64 - 1),
}


def _scalar(chance: Random, kind: int) -> Any:
    match kind:
        case Field.TYPE_STRING:
            letters = [chr(chance.choice((chance.randrange(128), chance.randrange(0xD800))))
                       for _ in range(chance.randrange(20))]  # fmt: skip
            return chance.choice((chance.choice(_WORDS), "".join(letters)))
        case Field.TYPE_BYTES:
            return chance.choice((chance.choice(_BYTES), chance.randbytes(chance.randrange(64))))
        case Field.TYPE_BOOL:
            return chance.random() < 0.5
        case Field.TYPE_ENUM:
            return chance.randint(-1, 12)
        case Field.TYPE_DOUBLE | Field.TYPE_FLOAT:
            return chance.choice((chance.choice(_FLOATS), chance.uniform(-1e6, 1e6)))
    low, high = _RANGES[kind]
    edge = chance.choice(_EDGES) * chance.choice((1, 1, 1, -1))
    return edge if low <= edge <= high else chance.randint(low, high)


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as bytes; `streams`: the answer is a stream."""

    seed: int
    path: str
    request: bytes
    streams: bool

    def __repr__(self) -> str:
        return f"seed {self.seed}: {self.path} {self.request[:200]!r}"


@dataclass(frozen=True, slots=True)
class Mood:
    """How many fields are set, and how many of them to something odd."""

    full: float
    wild: float


def methods() -> list[MethodDescriptor]:
    """Every method of every service that the sidecar serves to apps, but two."""
    found = [
        method
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    return [method for method in found if path_of(method) not in _SPARED]


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def message(chance: Random, descriptor: Descriptor, mood: Mood, depth: int = 0) -> Message:
    made = message_factory.GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if chance.random() < mood.full and depth < _DEPTH_MAX:
            values = [_value(chance, field, mood, depth) for _ in range(_count(chance, field))]
            _set(made, field, values)
    return made


def _value(chance: Random, field: FieldDescriptor, mood: Mood, depth: int) -> Any:
    if field.message_type is not None:
        return message(chance, field.message_type, mood, depth + 1)
    sensible = _SENSIBLE.get(field.name)
    if sensible and chance.random() >= mood.wild:
        return chance.choice(sensible)
    return _scalar(chance, field.type)


def _count(chance: Random, field: FieldDescriptor) -> int:
    return chance.randrange(4) if field.is_repeated else 1


def _set(made: Message, field: FieldDescriptor, values: list[Any]) -> None:
    if field.is_repeated:
        getattr(made, field.name).extend(values)
    elif field.message_type is not None:
        getattr(made, field.name).CopyFrom(values[0])
    else:
        setattr(made, field.name, values[0])


def call(seed: int) -> Call:
    """The call of this seed; the methods take turns, so that none is left out.

    Mostly a well-formed message; now and then one that is cut, lengthened or none at all.
    """
    chance, known = Random(seed), methods()
    method = known[seed % len(known)]
    mood = Mood(full=chance.choice((0.3, 0.6, 0.95)), wild=chance.choice((0.0, 0.05, 0.3, 1.0)))
    request = message(chance, method.input_type, mood).SerializeToString()
    match chance.randrange(20):
        case 0:
            request = request[: len(request) // 2]
        case 1:
            request += chance.randbytes(chance.randrange(32))
        case 2:
            request = chance.randbytes(chance.randrange(200))
    return Call(seed, path_of(method), request, bool(method.server_streaming))
