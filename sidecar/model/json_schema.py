"""JSON Schema (2020-12) as we apply it: nothing is fetched, and nothing takes for ever (G11).

The work of one use is counted and limited: references that refer to references can double it with
each line, and Python's `re` needs exponential time for some expressions. RE2 needs time in
proportion to expression and text. It has no lookaround and no backreferences: a schema that uses
them is refused where one is declared; in one that was accepted before, such an expression
constrains nothing, so that no state is lost for it.

jsonschema (8 MB of memory) and RE2 (3 MB) are imported on first use.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

# Instructions of an expression times characters: a second or so, which only made-up ones need.
WORK_MAX = 50_000_000
_KEYWORD_WORK = 1_000  # to apply one keyword once
_ITEM_WORK = 50  # to look at one item of a list or an object
_COMPILING_WORK = 50  # per instruction
_EXPRESSION_BYTES_MAX = 1024 * 1024  # of memory, when compiled

_work_left: ContextVar[int] = ContextVar("work_left", default=WORK_MAX)


class TooCostly(Exception):
    """Applying the schema takes more work than we allow."""


def check(schema: Mapping[str, Any]) -> None:
    """Raise jsonschema's SchemaError unless this is a schema that we can apply."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError

    _work_left.set(WORK_MAX)
    formats = FormatChecker(())
    formats.checkers = {**Draft202012Validator.FORMAT_CHECKER.checkers, "regex": (_usable, ())}
    meta = _validator_class(False)(Draft202012Validator.META_SCHEMA, format_checker=formats)
    for error in meta.iter_errors(schema):
        raise SchemaError.create_from(error)
    if _names(schema, "unevaluatedProperties") and _names(schema, "patternProperties"):
        raise SchemaError("beside patternProperties", validator="unevaluatedProperties")


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator for one use, whose work is counted from now on; it raises TooCostly."""
    from referencing import Registry

    _work_left.set(WORK_MAX)
    # A registry of its own: the default one would fetch remote references.
    return _validator_class(_names(schema, "patternProperties"))(schema, registry=Registry())


def resolver(schema: Mapping[str, Any]) -> Any:
    """Looks up references, within the schema only; it raises `referencing`'s Unresolvable."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    registry: Any = Registry()
    return registry.resolver_with_root(DRAFT202012.create_resource(schema))


def looked_at_part() -> None:
    """Whoever walks through a schema says so at each part: references can make it endless."""
    _work(_ITEM_WORK)


def found(expression: str, text: str) -> bool:
    """Does the expression match somewhere in the text? True too if that cannot be told."""
    compiled = _compiled(expression)
    if compiled is None:
        return True
    _work(compiled.programsize * len(text))
    try:
        return compiled.search(text) is not None
    except UnicodeEncodeError:
        return True  # half a character, which RE2 does not know


@cache
def _validator_class(pattern_properties: bool) -> Any:
    from jsonschema import Draft202012Validator, validators

    ours: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _pattern,
        "uniqueItems": _unique_items,
    }
    if pattern_properties:
        ours["patternProperties"] = _pattern_properties
        ours["additionalProperties"] = _additional_properties
        # Theirs looks for patterns everywhere, by `re`.
        ours["unevaluatedProperties"] = lambda *_: ()
    extend: Any = validators.extend
    return extend(Draft202012Validator, {name: _counted(each) for name, each in ours.items()})


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _work(_KEYWORD_WORK + _ITEM_WORK * (_items(value) + _items(instance)))
        return keyword(validator, value, instance, schema)

    return counted


def _items(part: Any) -> int:
    return len(part) if isinstance(part, list | dict) else 0


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator

    if isinstance(instance, list) and any(isinstance(each, list | dict) for each in instance):
        _work(_ITEM_WORK * len(instance) ** 2)  # each is compared with each
    theirs: Any = Draft202012Validator.VALIDATORS["uniqueItems"]
    yield from theirs(validator, wanted, instance, schema)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, part in patterns.items():
            for name in instance:
                if found(pattern, name):
                    yield from validator.descend(
                        instance[name], part, path=name, schema_path=pattern
                    )


def _additional_properties(
    validator: Any, part: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(instance, dict):
        return
    described, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name in described or any(found(each, name) for each in patterns):
            continue
        if part is False:
            yield ValidationError(f"{name!r} is not described")
        else:
            yield from validator.descend(instance[name], part, path=name)


def _usable(expression: object) -> bool:
    if not isinstance(expression, str):
        return True
    compiled = _compiled(expression)
    if compiled is None:
        return False
    _work(compiled.programsize * _COMPILING_WORK)
    return True


def _compiled(expression: str) -> Any:
    """None: RE2 does not take it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _EXPRESSION_BYTES_MAX
    try:
        return re2.compile(expression, options=options)
    except (re2.error, UnicodeEncodeError):
        return None


def _work(amount: int) -> None:
    left = _work_left.get() - amount
    if left < 0:
        raise TooCostly
    _work_left.set(left)


def _names(part: Any, key: str) -> bool:
    """Does this key occur anywhere in it?"""
    if isinstance(part, Mapping):
        return key in part or any(_names(each, key) for each in part.values())
    return isinstance(part, list) and any(_names(each, key) for each in part)
