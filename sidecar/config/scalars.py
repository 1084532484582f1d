"""What an unquoted scalar of YAML means, and which are refused because YAML tools disagree.

Guarantee: a value that YAML 1.1 tools (Helm, older libraries) and YAML 1.2 tools would read
differently, such as `no`, `1:30`, `010` or `2027-01-01`, never becomes a text by accident.
"""

import math
import re
from typing import Any

from sidecar.config.problems import InvalidValue
from sidecar.config.yaml_reader import Mapping, Node, Scalar

_NULL = ("", "~", "null", "Null", "NULL")
_BOOLEAN = re.compile(r"true|false|yes|no|on|off", re.IGNORECASE)
_NUMBER = re.compile(
    r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?"
    r"|[-+]?0[xob][0-9a-fA-F_]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")
_JSON_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")


def is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text in _NULL


def other_type(node: Scalar) -> str:
    """`a boolean`, `a number` or `a date` if YAML may not take this scalar for text, else empty."""
    if not node.plain:
        return ""
    if _BOOLEAN.fullmatch(node.text):
        return "a boolean"
    if _NUMBER.fullmatch(node.text) or _SIXTIES.fullmatch(node.text):
        return "a number"
    return "a date" if _DATE.fullmatch(node.text) else ""


def to_json(node: Node) -> Any:
    """The value as JSON; raises InvalidValue for a value that JSON does not have."""
    if isinstance(node, Mapping):
        return {key: to_json(value) for key, (_, value) in node.entries.items()}
    if not isinstance(node, Scalar):
        return [to_json(item) for item in node.items]
    if is_null(node):
        return None
    if node.plain and node.text in ("true", "false"):
        return node.text == "true"
    if node.plain and _JSON_WHOLE.fullmatch(node.text):
        return int(node.text)
    if node.plain and _JSON_NUMBER.fullmatch(node.text):
        return _finite(node)
    if kind := other_type(node):
        raise InvalidValue(f"line {node.line} is {kind} to some readers of YAML", "JSON, or quotes")
    return node.text


def _finite(node: Scalar) -> float:
    number = float(node.text)
    if not math.isfinite(number):
        raise InvalidValue(f"line {node.line} is too large", "numbers that JSON can hold")
    return number
