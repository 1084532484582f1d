"""Stored bytes become the state that a declared JSON Schema asks for, as well as they can.

Matching fields are taken, new fields get their defaults, unknown fields are dropped. What the
schema allows explicitly (`additionalProperties`, `patternProperties`) is not unknown. A field that
does not match gets its default too, or is dropped if it may be missing; where neither helps, the
bytes cannot be decoded, and the caller falls back to the initial state. That is never the end of
what matches the schema as it is. Without a schema bytes are opaque.

References stay inside the schema: nothing is ever fetched. jsonschema is imported on first use.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
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
        # Not ==, to which 1 and true are the same.
        same = json.dumps(fitted, sort_keys=True) == json.dumps(value, sort_keys=True)
        return stored if same else _dumped(fitted)
    except (ValueError, RecursionError) as error:
        raise SchemaDecodeFailed(f"not JSON: {error}") from None
    except json_schema.TooCostly:
        return stored  # better as it is than lost


class _Fit:
    """One schema, with what it takes to apply parts of it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = json_schema.validator(schema)
        self._resolver = json_schema.resolver(schema)

    def whole(self, value: Any, initial: Any) -> Any:
        try:
            fitted = self._fitted(value, self._schema, initial)
            problem = next(iter(self._validator.iter_errors(fitted)), None)
            if problem is not None and self._matches(value, self._schema):
                return value  # a default may go with nothing that is there: as it is, it is right
        except json_schema.TooCostly:
            raise
        except Exception as error:
            # The schema itself may be broken in many ways; the state must not end the run for it.
            raise SchemaDecodeFailed(f"the schema cannot be applied: {error}") from error
        if problem is not None:
            where = "/".join(map(str, problem.absolute_path)) or "the state"
            raise SchemaDecodeFailed(f"{where[:200]}: {_said(problem)}")
        return fitted

    def _fitted(self, value: Any, schema: Any, initial: Any = None) -> Any:
        parts = list(self._parts(value, schema, initial, set()))
        # A condition asks for some fields; it does not say that there are no others.
        conditions = {id(part.get("if")) for part in parts}
        declaring = (part for part in parts if id(part) not in conditions)
        if isinstance(value, dict) and any(map(_describes_fields, declaring)):
            return self._fitted_object(value, parts, initial if isinstance(initial, dict) else {})
        for part in parts:
            items = part.get("items")
            if isinstance(value, list) and isinstance(items, Mapping):
                value = [self._fitted(item, items) for item in value]
        return value

    def _parts(
        self, value: Any, schema: Any, initial: Any, seen: set[int]
    ) -> Iterator[Mapping[str, Any]]:
        """The schema and all that it applies to the same value, each once: there may be circles."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        seen.add(id(schema))
        json_schema.looked_at_part()
        yield schema
        for other in self._applied(value, schema, initial):
            yield from self._parts(value, other, initial, seen)

    def _applied(self, value: Any, schema: Mapping[str, Any], initial: Any) -> Iterator[Any]:
        if isinstance(schema.get("$ref"), str):
            yield self._referred(schema["$ref"])
        yield from schema.get("allOf", ())
        for choices in (schema.get("anyOf", ()), schema.get("oneOf", ())):
            yield from self._chosen(value, choices, initial)
        if "if" in schema:
            yield from self._branch(value, schema)
        for name, other in schema.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and name in value:
                yield other

    def _chosen(self, value: Any, choices: Sequence[Any], initial: Any) -> list[Any]:
        """Those that the value matches as it is, else the first that it can be fitted to."""
        if matching := [choice for choice in choices if self._matches(value, choice)]:
            return matching
        for choice in choices:
            if self._matches(self._fitted(value, choice, initial), choice):
                return [choice]
        return []

    def _branch(self, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if self._matches(value, schema["if"]):
            yield schema["if"]
            yield schema.get("then")
        else:
            yield schema.get("else")

    def _fitted_object(
        self, value: dict[str, Any], parts: Sequence[Mapping[str, Any]], initial: dict[str, Any]
    ) -> dict[str, Any]:
        required = {name for part in parts for name in part.get("required", ())}
        declared = [name for part in parts for name in part.get("properties", {})]
        fitted = {}
        for name in dict.fromkeys((*declared, *value)):
            described = [each for part in parts for each in _descriptions(part, name)]
            if not described or False in described:
                continue
            field = self._field(name, value, described, initial, required=name in required)
            if field is not _NOTHING:
                fitted[name] = field
        return fitted

    def _field(
        self,
        name: str,
        value: dict[str, Any],
        described: Sequence[Any],
        initial: dict[str, Any],
        required: bool,
    ) -> Any:
        """What is stored if it matches, else the default, else nothing."""
        if name in value:
            candidate = value[name]
            for each in described:
                candidate = self._fitted(candidate, each, initial.get(name))
            if all(self._matches(candidate, each) for each in described):
                return candidate
        parts = [part for each in described for part in self._parts(_NOTHING, each, None, set())]
        for part in parts:
            if "default" in part:
                return part["default"]
        if name in initial:
            return initial[name]
        if required and any("properties" in part for part in parts):
            return self._fitted_object({}, parts, {})
        return _NOTHING

    def _matches(self, value: Any, schema: Any) -> bool:
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _referred(self, reference: str) -> Any:
        """What a reference means, if it stays within the schema."""
        from referencing.exceptions import Unresolvable

        try:
            return self._resolver.lookup(reference).contents
        except Unresolvable:
            return None


def _describes_fields(schema: Mapping[str, Any]) -> bool:
    return any(
        name in schema for name in ("properties", "patternProperties", "additionalProperties")
    )


def _descriptions(schema: Mapping[str, Any], name: str) -> list[Any]:
    """What one schema says of the field: nothing, if it is unknown to it; False: it is refused."""
    patterns = schema.get("patternProperties", {}).items()
    found = [part for pattern, part in patterns if json_schema.found(pattern, name)]
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    if found:
        return found
    return [schema["additionalProperties"]] if "additionalProperties" in schema else []


def _dumped(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character, which only an escape can carry
        return json.dumps(value, separators=(",", ":")).encode()


def _said(problem: Any) -> str:
    """Which rule is broken; the values that break it are nobody's business, and stay here."""
    if problem.validator == "required":
        return str(problem.message)[:500]  # a name that the schema gives
    return f"does not match what the schema says by {problem.validator}"
