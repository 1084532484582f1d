"""Stored bytes become the state that a declared JSON Schema asks for, as well as they can.

Matching fields are taken, new fields get their defaults, unknown fields are dropped. What the
schema allows explicitly (`additionalProperties`, `patternProperties`) is not unknown. A field that
does not match gets its default too, or is dropped if it may be missing; where neither helps, the
bytes cannot be decoded, and the caller falls back to the initial state. Without a schema bytes are
opaque.

References stay inside the schema: nothing is ever fetched. jsonschema is imported on first use.
"""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from sidecar.model import json_schema
from sidecar.model.errors import SchemaDecodeFailed

_NOTHING: Any = object()


class StatePolicy(Protocol):
    """What a singleton or schedule declares about its state."""

    @property
    def version(self) -> int: ...
    @property
    def initial(self) -> Any:
        """Any JSON value."""
        ...

    @property
    def schema(self) -> Mapping[str, Any]:
        """Empty: the state is opaque bytes."""
        ...

    @property
    def ttl_seconds(self) -> float:
        """0: the state never expires."""
        ...


def initial_state(policy: StatePolicy) -> bytes:
    """The state before the first run."""
    if policy.initial is None or policy.initial == {}:
        return b"{}"
    return _dumped(policy.initial)


def decoded(stored: bytes, policy: StatePolicy) -> bytes:
    """The stored bytes, fitted to the schema; SchemaDecodeFailed if they cannot be."""
    if not policy.schema:
        return stored
    try:
        value = json.loads(stored)
        fitted = _Fit(dict(policy.schema)).whole(value, policy.initial)
    except (ValueError, RecursionError) as error:
        raise SchemaDecodeFailed(f"not JSON: {error}") from None
    except json_schema.TooCostly:
        return stored  # better as it is than lost
    return stored if fitted == value else _dumped(fitted)


class _Fit:
    """One schema, with what it takes to apply parts of it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._validator = json_schema.validator(schema)

    def whole(self, value: Any, initial: Any) -> Any:
        try:
            fitted = self._fitted(value, self._root, initial)
            problem = next(iter(self._validator.iter_errors(fitted)), None)
        except json_schema.TooCostly:
            raise
        except Exception as error:
            # The schema itself may be broken in many ways; the state must not end the run for it.
            raise SchemaDecodeFailed(f"the schema cannot be applied: {error}") from error
        if problem is not None:
            where = "/".join(map(str, problem.absolute_path)) or "the state"
            raise SchemaDecodeFailed(f"{where}: {problem.message[:500]}")
        return fitted

    def _fitted(self, value: Any, schema: Any, initial: Any = None) -> Any:
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping):
            return value
        for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            candidate = self._fitted(value, choice, initial)
            if self._matches(candidate, choice):
                value = candidate
                break
        if isinstance(value, dict) and _describes_fields(schema):
            return self._fitted_object(value, schema, initial if isinstance(initial, dict) else {})
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            return [self._fitted(item, items) for item in value]
        return value

    def _fitted_object(
        self, value: dict[str, Any], schema: Mapping[str, Any], initial: dict[str, Any]
    ) -> dict[str, Any]:
        declared = schema.get("properties", {})
        fitted = {}
        for name, part in declared.items():
            field = self._field(
                name, value, part, initial, required=name in schema.get("required", ())
            )
            if field is not _NOTHING:
                fitted[name] = field
        for name in value.keys() - declared.keys():
            part = _part_for_other(schema, name)
            if part is not None:
                fitted[name] = self._fitted(value[name], part)
        return fitted

    def _field(
        self,
        name: str,
        value: dict[str, Any],
        part: Any,
        initial: dict[str, Any],
        required: bool,
    ) -> Any:
        """What is stored if it matches, else the default, else nothing."""
        if name in value:
            candidate = self._fitted(value[name], part, initial.get(name))
            if self._matches(candidate, part):
                return candidate
        resolved = self._resolved(part)
        if isinstance(resolved, Mapping) and "default" in resolved:
            return resolved["default"]
        if name in initial:
            return initial[name]
        if required and isinstance(resolved, Mapping) and "properties" in resolved:
            return self._fitted_object({}, resolved, {})
        return _NOTHING

    def _matches(self, value: Any, schema: Any) -> bool:
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _resolved(self, schema: Any) -> Any:
        """Follow references within the schema; a circle of them leads nowhere."""
        for _ in range(32):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#"):
                return schema
            schema = _pointed_at(self._root, reference[1:])
        return {}


def _describes_fields(schema: Mapping[str, Any]) -> bool:
    return any(
        name in schema for name in ("properties", "patternProperties", "additionalProperties")
    )


def _part_for_other(schema: Mapping[str, Any], name: str) -> Any:
    """What describes a field that is not among the properties; None: it is unknown."""
    for pattern, part in schema.get("patternProperties", {}).items():
        if json_schema.found(pattern, name):
            return part
    others = schema.get("additionalProperties", False)
    return None if others is False else others


def _pointed_at(root: Any, pointer: str) -> Any:
    for step in filter(None, pointer.split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        root = root[int(name)] if isinstance(root, list) else root[name]
    return root


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
