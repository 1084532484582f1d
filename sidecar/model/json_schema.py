"""JSON Schema (2020-12) validation that fetches nothing and takes bounded time (G11).

Each use counts its work and has a limit: nested references can double the work with each line, and
Python's `re` needs exponential time for some expressions. RE2 needs time proportional to expression
and text. It has no lookaround and no backreferences. `check` rejects a schema that uses them; in a
schema that was accepted before, such an expression matches any text, so that no state is lost.

jsonschema (8 MB of memory) and RE2 (3 MB) are imported on first use.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any

# In RE2 instructions times characters: about a second, which only a hostile schema needs.
WORK_MAX = 50_000_000
_CHECKING_WORK_MAX = 4 * WORK_MAX  # to check a schema itself: proportional to its size
_KEYWORD_WORK = 1_000  # to apply one keyword once
_ERROR_WORK = 1_000  # to keep one error: garbage collection of many is expensive
_ITEM_WORK = 50  # to visit one item of a list or an object
_COMPILING_WORK = 200  # per instruction
_SUBSCHEMA_WORK = 500  # to visit one subschema in the search for unevaluated items
_EXPRESSION_BYTES_MAX = 1024 * 1024  # of memory, when compiled

_work_left: ContextVar[int] = ContextVar("work_left", default=WORK_MAX)


class TooCostly(Exception):
    """The schema needs more work than the limit."""


def check(schema: Mapping[str, Any]) -> None:
    """Raise jsonschema's SchemaError unless Baton can apply this schema."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError

    _work_left.set(_CHECKING_WORK_MAX)
    formats = FormatChecker(())
    formats.checkers = {**Draft202012Validator.FORMAT_CHECKER.checkers, "regex": (_usable, ())}
    meta = _validator_class(False)(Draft202012Validator.META_SCHEMA, format_checker=formats)
    for error in meta.iter_errors(schema):
        raise SchemaError.create_from(error)
    if _has_key(schema, "unevaluatedProperties") and _has_key(schema, "patternProperties"):
        raise SchemaError("beside patternProperties", validator="unevaluatedProperties")


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator for one use; it counts its work from now on and may raise TooCostly."""
    from referencing import Registry

    _work_left.set(WORK_MAX)
    # A registry of its own: the default one would fetch remote references.
    return _validator_class(_has_key(schema, "patternProperties"))(schema, registry=Registry())


def resolver(schema: Mapping[str, Any]) -> Any:
    """A resolver for references within the schema; it raises `referencing`'s Unresolvable."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    registry: Any = Registry()
    return registry.resolver_with_root(DRAFT202012.create_resource(schema))


def count_part() -> None:
    """Count one visited subschema; call it in every walk, because references can be circular."""
    _spend(_ITEM_WORK)


def matches(expression: str, text: str) -> bool:
    """Whether the expression matches anywhere in the text; True if RE2 cannot decide it."""
    compiled = _compiled(expression)
    if compiled is None:
        return True
    _spend(compiled.programsize * len(text))
    try:
        return compiled.search(text) is not None
    except UnicodeEncodeError:
        return True  # a lone surrogate, which RE2 cannot encode


@cache
def _validator_class(pattern_properties: bool) -> Any:
    from jsonschema import Draft202012Validator, validators

    keywords: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "const": lambda validator, value, *rest: _enum(validator, [value], *rest),
        "dependentRequired": _dependent_required,
        "enum": _enum,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "uniqueItems": _unique_items,
    }
    if pattern_properties:
        keywords["patternProperties"] = _pattern_properties
        keywords["additionalProperties"] = _additional_properties
        # The implementation of jsonschema matches patterns with `re`; `check` rejects the pair.
        keywords["unevaluatedProperties"] = lambda *_: ()
    extend: Any = validators.extend
    types: Any = Draft202012Validator.TYPE_CHECKER
    counting = extend(
        Draft202012Validator,
        {name: _counted(each) for name, each in keywords.items()},
        type_checker=types.redefine("boolean", _is_boolean),
    )
    counting.evolve = _evolve_counted
    return counting


def _evolve_counted(validator: Any, **changes: Any) -> Any:
    """Replaces `evolve`, which applies a part of the schema.

    For a part with its own `$schema`, such as the whole schema that `#` refers to, jsonschema's
    `evolve` switches to a validator class that does not count work.
    """
    changes.setdefault("schema", validator.schema)
    for field in validator.__attrs_attrs__:
        if field.init:
            changes.setdefault(field.alias, getattr(validator, field.name))
    return type(validator)(**changes)


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _spend(_KEYWORD_WORK + _ITEM_WORK * (_items(value) + _items(instance)))
        for error in keyword(validator, value, instance, schema) or ():
            # The message may contain the whole instance.
            _spend(_ERROR_WORK + len(error.message))
            yield error

    return counted


def _is_boolean(_: Any, part: Any) -> bool:
    """Counts work: jsonschema's search for unevaluated items calls this at each subschema."""
    _spend(_SUBSCHEMA_WORK)
    return isinstance(part, bool)


def _items(part: Any) -> int:
    return len(part) if isinstance(part, list | dict) else 0


def _enum(validator: Any, allowed: Iterable[Any], instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not any(_equal(each, instance) for each in allowed):
        yield ValidationError("is not one of the allowed values")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not wanted or not isinstance(instance, list):
        return
    if any(isinstance(each, list | dict) for each in instance):
        _spend(_ITEM_WORK * len(instance) ** 2)
    # As text: its hash is randomized, so a set is fast, and no comparison of all pairs is needed.
    if len({_canonical_text(each) for each in instance}) < len(instance):
        yield ValidationError("has equal items")


def _canonical_text(part: Any) -> str:
    """A text that is the same for values that are equal as JSON: 1 equals 1.0, but not true."""
    _spend(_items(part) * _ITEM_WORK)
    if isinstance(part, list):
        return f"[{','.join(map(_canonical_text, part))}]"
    if isinstance(part, dict):
        return f"{{{','.join(f'{key!r}:{_canonical_text(part[key])}' for key in sorted(part))}}}"
    whole = isinstance(part, float) and part.is_integer()
    return repr(int(part) if whole else part)


def _equal(one: Any, two: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, but not true."""
    _spend(_items(one) * _ITEM_WORK)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    return isinstance(one, bool) is isinstance(two, bool) and bool(one == two)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator, ValidationError

    original: Any = Draft202012Validator.VALIDATORS["multipleOf"]
    try:
        yield from original(validator, step, instance, schema)
    except OverflowError:  # the number is too large for a float
        if Fraction(instance) % Fraction(step):
            yield ValidationError("is not such a multiple")


def _dependent_required(
    validator: Any, needed: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    from jsonschema import Draft202012Validator

    if isinstance(instance, dict):
        _spend(_ITEM_WORK * sum(len(names) for name, names in needed.items() if name in instance))
    original: Any = Draft202012Validator.VALIDATORS["dependentRequired"]
    yield from original(validator, needed, instance, schema)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, part in patterns.items():
            for name in instance:
                if matches(pattern, name):
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
        if name in described or any(matches(each, name) for each in patterns):
            continue
        if part is False:
            yield ValidationError(f"{name!r} is not allowed")
        else:
            yield from validator.descend(instance[name], part, path=name)


def _usable(expression: object) -> bool:
    if not isinstance(expression, str):
        return True
    compiled = _compiled(expression)
    if compiled is None:
        return False
    _spend(compiled.programsize * _COMPILING_WORK)
    return True


def _compiled(expression: str) -> Any:
    """The compiled expression; None if RE2 rejects it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _EXPRESSION_BYTES_MAX
    try:
        return re2.compile(expression, options=options)
    except (re2.error, UnicodeEncodeError):
        return None


def _spend(amount: int) -> None:
    left = _work_left.get() - amount
    if left < 0:
        raise TooCostly
    _work_left.set(left)


def _has_key(part: Any, key: str) -> bool:
    """Whether the key occurs anywhere in the schema."""
    if isinstance(part, Mapping):
        return key in part or any(_has_key(each, key) for each in part.values())
    return isinstance(part, list) and any(_has_key(each, key) for each in part)
