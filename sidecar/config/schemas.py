"""JSON Schema of a declared state: is it one, and does the initial state satisfy it?

Guarantee: both functions return a sentence or an empty text, whatever the schema; no reference is
ever fetched from a network, and no value of the state is repeated.
"""

import re
from collections.abc import Mapping
from typing import Any


def schema_problem(schema: Any) -> str:
    """Why this is no JSON Schema; empty if it is one."""
    if not isinstance(schema, Mapping):
        return "is not a mapping"
    if not schema:
        return ""
    # Costs 8 MB of memory, which only those pay who declare a schema.
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"is not a JSON Schema: {_place(error.json_path)}"
    except RecursionError:
        return "is not a JSON Schema: nested too deeply"
    return ""


def value_problem(value: Any, schema: Mapping[str, Any]) -> str:
    """Where the value breaks the schema; empty if it does not."""
    if not schema:
        return ""
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # A registry of its own: the default one would fetch remote references.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except Unresolvable:
        return "the schema refers to something that is not in it"
    except (RecursionError, re.error):
        return "the schema cannot be applied"
    if error is None:
        return ""
    return f"the initial state breaks the schema: {_place(error.json_path)} fails {error.validator}"


def _place(json_path: str) -> str:
    return json_path if len(json_path) <= 60 else json_path[:60] + "…"
