"""Converts stored bytes to state that matches the declared JSON Schema, as far as possible.

Matching fields are kept, new fields get their defaults, unknown fields are dropped. A field that
the schema allows explicitly (`additionalProperties`, `patternProperties`) is not unknown. A field
that does not match also gets its default, or is dropped if it is optional. If neither is possible,
the bytes cannot be decoded, and the caller uses the initial state. Bytes that match the schema
unchanged can always be decoded. Without a schema, bytes are opaque.

References resolve inside the schema only: nothing is fetched. jsonschema is imported on first use.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sidecar.model import json_schema
from sidecar.model.definitions import State
from sidecar.model.errors import SchemaDecodeFailed

_MISSING: Any = object()


def initial_state(policy: State) -> bytes:
    """The state before the first run."""
    if policy.initial is None or policy.initial == {}:
        return b"{}"
    return _encoded(policy.initial)


def decoded(stored: bytes, policy: State) -> bytes:
    """The stored bytes, converted to match the schema; SchemaDecodeFailed if that is impossible."""
    if not policy.schema:
        return stored
    try:
        value = json.loads(stored)
        fitted = _Fitter(dict(policy.schema)).fit(value, policy.initial)
        # Not ==: in Python 1 == True.
        same = json.dumps(fitted, sort_keys=True) == json.dumps(value, sort_keys=True)
        return stored if same else _encoded(fitted)
    except (ValueError, RecursionError) as error:
        raise SchemaDecodeFailed(f"not JSON: {error}") from None
    except json_schema.TooCostly:
        return stored  # unchecked state is better than lost state


class _Fitter:
    """Fits values to one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = json_schema.validator(schema)
        self._resolver = json_schema.resolver(schema)

    def fit(self, value: Any, initial: Any) -> Any:
        try:
            fitted = self._fitted(value, self._schema, initial)
            problem = next(iter(self._validator.iter_errors(fitted)), None)
            if problem is not None and self._matches(value, self._schema):
                return value  # the defaults conflict with the stored value, which matches unchanged
        except json_schema.TooCostly:
            raise
        except Exception as error:
            # An invalid schema can raise many errors; none of them may fail the run.
            raise SchemaDecodeFailed(f"the schema cannot be applied: {error}") from error
        if problem is not None:
            where = "/".join(map(str, problem.absolute_path)) or "the state"
            raise SchemaDecodeFailed(f"{where[:200]}: {_problem_text(problem)}")
        return fitted

    def _fitted(self, value: Any, schema: Any, initial: Any = None) -> Any:
        parts = list(self._parts(value, schema, initial, set()))
        # An `if` tests some fields; it does not declare that there are no others.
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
        """The schema and all schemas it applies to the same value, each once despite cycles."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        seen.add(id(schema))
        json_schema.count_part()
        yield schema
        for other in self._applied(value, schema, initial):
            yield from self._parts(value, other, initial, seen)

    def _applied(self, value: Any, schema: Mapping[str, Any], initial: Any) -> Iterator[Any]:
        if isinstance(schema.get("$ref"), str):
            yield self._resolved(schema["$ref"])
        yield from schema.get("allOf", ())
        for choices in (schema.get("anyOf", ()), schema.get("oneOf", ())):
            yield from self._chosen(value, choices, initial)
        if "if" in schema:
            yield from self._branch(value, schema)
        for name, other in schema.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and name in value:
                yield other

    def _chosen(self, value: Any, choices: Sequence[Any], initial: Any) -> list[Any]:
        """The choices that the value matches unchanged, else the first that it can be fitted to."""
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
            if field is not _MISSING:
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
        """The stored value if it matches, else the default, else `_MISSING`."""
        if name in value:
            candidate = value[name]
            for each in described:
                candidate = self._fitted(candidate, each, initial.get(name))
            if all(self._matches(candidate, each) for each in described):
                return candidate
        parts = [part for each in described for part in self._parts(_MISSING, each, None, set())]
        for part in parts:
            if "default" in part:
                return part["default"]
        if name in initial:
            return initial[name]
        if required and any("properties" in part for part in parts):
            return self._fitted_object({}, parts, {})
        return _MISSING

    def _matches(self, value: Any, schema: Any) -> bool:
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _resolved(self, reference: str) -> Any:
        """The schema that a reference points to; None if it is not inside this schema."""
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
    """The schemas for one field: none if the field is unknown; False means it is not allowed."""
    patterns = schema.get("patternProperties", {}).items()
    found = [part for pattern, part in patterns if json_schema.matches(pattern, name)]
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    if found:
        return found
    return [schema["additionalProperties"]] if "additionalProperties" in schema else []


def _encoded(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only represent as an escape
        return json.dumps(value, separators=(",", ":")).encode()


def _problem_text(problem: Any) -> str:
    """The violated rule, without the values, which may be confidential."""
    if problem.validator == "required":
        return str(problem.message)[:500]  # contains only a name from the schema
    return f"does not match {problem.validator} of the schema"
