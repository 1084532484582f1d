"""An OpenAPI 3.1 document of the JSON API, generated from the descriptors.

Types follow the JSON mapping of protobuf: 64-bit integers are strings, bytes are base64, times and
durations are text. Imported and built when the document is first asked for.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from sidecar.adapters.http.methods import Method

Schema = dict[str, Any]
Described = Any  # a Descriptor or an EnumDescriptor; their stubs know two kinds of each
_REFERENCE = "#/components/schemas/"
_INTEGERS_64 = (
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_SFIXED64,
)
_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
_UNSIGNED_32 = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32)
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {
        "type": "string",
        "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$",
        "examples": ["1.5s"],
    },
    "google.protobuf.Empty": {"type": "object"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
    "google.protobuf.Any": {"type": "object", "properties": {"@type": {"type": "string"}}},
}
_ERROR: Schema = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string", "description": "A gRPC code in the spelling of Connect."},
        "message": {"type": "string"},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string"},
                    "value": {"type": "string", "contentEncoding": "base64"},
                    "debug": {"type": "object"},
                },
            },
        },
    },
}


def document(methods: Iterable[Method], version: str) -> Schema:
    listed = sorted(methods, key=lambda method: method.path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": version,
            "summary": "The API of the Baton sidecar as JSON over HTTP.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": [{"name": name} for name in dict.fromkeys(_tag(method) for method in listed)],
        "paths": {method.path: {"post": _operation(method)} for method in listed},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**_schemas(listed), "Error": _ERROR},
        },
    }


def _tag(method: Method) -> str:
    return method.service.rpartition(".")[2]


def _operation(method: Method) -> Schema:
    answer = _reference(method.response.DESCRIPTOR)
    if method.streams:
        description = f"Server-sent events; each `data` is a {method.response.DESCRIPTOR.name}."
        content: Schema = {
            "text/event-stream": {"schema": {"type": "string", "contentSchema": answer}}
        }
    else:
        description = "The answer."
        content = {"application/json": {"schema": answer}}
    return {
        "operationId": f"{_tag(method)}.{method.name}",
        "tags": [_tag(method)],
        "x-reads-only": method.reads,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _reference(method.request.DESCRIPTOR)}},
        },
        "responses": {
            "200": {"description": description, "content": content},
            "default": {
                "description": "An error.",
                "content": {"application/json": {"schema": {"$ref": _REFERENCE + "Error"}}},
            },
        },
    }


def _schemas(methods: Iterable[Method]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    waiting: list[Described] = []
    for method in methods:
        waiting += [method.request.DESCRIPTOR, method.response.DESCRIPTOR]
    while waiting:
        kind = waiting.pop()
        if kind.full_name in found or kind.full_name in _WELL_KNOWN:
            continue
        if isinstance(kind, EnumDescriptor):
            found[kind.full_name] = {"type": "string", "enum": [one.name for one in kind.values]}
        else:
            found[kind.full_name] = _message(kind)
            waiting += _used_by(kind)
    return dict(sorted(found.items()))


def _used_by(kind: Described) -> Iterator[Described]:
    for field in kind.fields:
        if used := field.message_type or field.enum_type:
            yield used


def _message(kind: Described) -> Schema:
    if kind.GetOptions().map_entry:
        return {"type": "object", "additionalProperties": _type(kind.fields_by_name["value"])}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.json_name: _field(field) for field in kind.fields},
    }


def _field(field: FieldDescriptor) -> Schema:
    schema = _type(field)
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    return {"type": "array", "items": schema} if field.is_repeated and not is_map else schema


def _type(field: FieldDescriptor) -> Schema:
    if field.message_type is not None:
        return _reference(field.message_type)
    if field.enum_type is not None:
        return _reference(field.enum_type)
    if field.type == FieldDescriptor.TYPE_STRING:
        return {"type": "string"}
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "contentEncoding": "base64"}
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"type": "boolean"}
    if field.type in _INTEGERS_64:
        return {"type": ["string", "integer"], "pattern": "^-?[0-9]{1,20}$"}
    if field.type in _FLOATS:
        return {"type": "number"}
    return {"type": "integer", **({"minimum": 0} if field.type in _UNSIGNED_32 else {})}


def _reference(kind: Described) -> Schema:
    return _WELL_KNOWN.get(kind.full_name) or {"$ref": _REFERENCE + kind.full_name}
