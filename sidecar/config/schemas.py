"""Checks the JSON Schema of a declared state, and the initial state against it.

Both must be JSON that Postgres can store, which refuses some JSON that parsers accept.

Guarantee: both functions return a message or an empty text for any schema; no reference is fetched
from a network, and no message contains a value of the state.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sidecar.model import json_schema
from sidecar.model.validation import VALUE_BYTES_MAX

# An even number of backslashes before it is an escaped text, not an escape.
_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")


def schema_problem(schema: Any) -> str:
    """Why this is not a JSON Schema; empty if it is one."""
    if not isinstance(schema, Mapping):
        return "is not a mapping"
    if not schema:
        return ""
    if problem := _json_problem(schema):
        return problem
    # Imported here: it takes 8 MB of memory, only needed where a schema is declared.
    from jsonschema import SchemaError

    try:
        json_schema.check(schema)
    except SchemaError as error:
        return _unusable(error)
    except RecursionError:
        return "is not a JSON Schema: nested too deeply"
    except json_schema.TooCostly:
        return "takes too much work to be checked"
    return ""


def value_problem(value: Any, schema: Mapping[str, Any]) -> str:
    """Why the value cannot be stored, or where it violates the schema; empty if neither."""
    if problem := _json_problem(value):
        return problem
    if not schema:
        return ""
    from referencing.exceptions import Unresolvable

    try:
        error = next(iter(json_schema.validator(schema).iter_errors(value)), None)
    except Unresolvable:
        return "the schema refers to something that is not in it"
    except RecursionError:
        return "the schema cannot be applied"
    except json_schema.TooCostly:
        return "the schema takes too much work to be applied"
    if error is None:
        return ""
    return f"the initial state breaks the schema: {_place(error.json_path)} fails {error.validator}"


def _unusable(error: Any) -> str:
    if error.validator_value == "regex":
        what = "holds an expression that RE2 cannot apply, such as a lookahead or a backreference"
        return f"{_place(error.json_path)} {what}"
    if error.validator == "unevaluatedProperties":
        return "has unevaluatedProperties beside patternProperties, which cannot be applied"
    return f"is not a JSON Schema: {_place(error.json_path)}"


def _json_problem(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except RecursionError:
        return "is nested too deeply"
    except UnicodeEncodeError:
        return "holds a lone surrogate"
    except ValueError:
        return "holds a number that JSON does not have"
    if _NUL.search(text):
        return "holds a NUL character"
    return f"has {size} bytes; at most {VALUE_BYTES_MAX}" if size > VALUE_BYTES_MAX else ""


def _place(json_path: str) -> str:
    return json_path if len(json_path) <= 60 else json_path[:60] + "…"
