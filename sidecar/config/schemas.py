"""JSON Schema of a declared state: is it one, and does the initial state satisfy it?

Both must be JSON that Postgres can keep, which refuses some of what parsers of JSON take.

Guarantee: both functions return a sentence or an empty text, whatever the schema; no reference is
ever fetched from a network, and no value of the state is repeated.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sidecar.model import json_schema
from sidecar.model.state import VALUE_BYTES_MAX

# An even number of backslashes before it stands for backslashes.
_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")


def schema_problem(schema: Any) -> str:
    """Why this is no JSON Schema; empty if it is one."""
    if not isinstance(schema, Mapping):
        return "is not a mapping"
    if not schema:
        return ""
    if problem := _json_problem(schema):
        return problem
    # Costs 8 MB of memory, which only those pay who declare a schema.
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
    """Why the value cannot be kept, or where it breaks the schema; empty if neither."""
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
        return "holds half a character"
    except ValueError:
        return "holds a number that JSON does not have"
    if _NUL.search(text):
        return "holds a NUL character"
    return f"has {size} bytes; at most {VALUE_BYTES_MAX}" if size > VALUE_BYTES_MAX else ""


def _place(json_path: str) -> str:
    return json_path if len(json_path) <= 60 else json_path[:60] + "…"
