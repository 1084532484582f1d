"""JSON Schema (2020-12) as we apply it: nothing is fetched, and nothing takes for ever (G11).

The work of one use is counted and limited: references that refer to references can double it with
each line, and Python's `re` needs exponential time for some expressions. RE2 needs time in
proportion to expression and text. It has no lookaround and no backreferences: a schema that uses
them is refused where one is declared; in one that was accepted before, such an expression
constrains nothing, so that no state is lost for it.

jsonschema (8 MB of memory) and RE2 (3 MB) are imported on first use.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any

# Instructions of an expression times characters: a second or so, which only made-up ones need.
WORK_MAX = 50_000_000
_CHECKING_WORK_MAX = 4 * WORK_MAX  # of a schema itself: in proportion to its size
_KEYWORD_WORK = 1_000  # to apply one keyword once
_ERROR_WORK = 1_000  # to keep what one said: many at once are dear to collect as garbage
_ITEM_WORK = 50  # to look at one item of a list or an object
_COMPILING_WORK = 200  # per instruction
_LOOKING_WORK = 500  # to follow one part for what it evaluates
_EXPRESSION_BYTES_MAX = 1024 * 1024  # of memory, when compiled

_work_left: ContextVar[int] = ContextVar("work_left", default=WORK_MAX)


class TooCostly(Exception):
    """Applying the schema takes more work than we allow."""


def check(schema: Mapping[str, Any]) -> None:
    """Raise jsonschema's SchemaError unless this is a schema that we can apply."""
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError

    _work_left.set(_CHECKING_WORK_MAX)
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
        "const": lambda validator, value, *rest: _enum(validator, [value], *rest),
        "dependentRequired": _dependent_required,
        "enum": _enum,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "uniqueItems": _unique_items,
    }
    if pattern_properties:
        ours["patternProperties"] = _pattern_properties
        ours["additionalProperties"] = _additional_properties
        # Theirs looks for patterns everywhere, by `re`.
        ours["unevaluatedProperties"] = lambda *_: ()
    extend: Any = validators.extend
    types: Any = Draft202012Validator.TYPE_CHECKER
    made = extend(
        Draft202012Validator,
        {name: _counted(each) for name, each in ours.items()},
        type_checker=types.redefine("boolean", _is_boolean),
    )
    made.evolve = _evolved
    return made


def _evolved(validator: Any, **changes: Any) -> Any:
    """For a part of the schema. Theirs would leave for a class of its own, which counts nothing,
    where that part names its `$schema`, as the whole does, which `#` refers to."""
    changes.setdefault("schema", validator.schema)
    for field in validator.__attrs_attrs__:
        if field.init:
            changes.setdefault(field.alias, getattr(validator, field.name))
    return type(validator)(**changes)


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _work(_KEYWORD_WORK + _ITEM_WORK * (_items(value) + _items(instance)))
        for error in keyword(validator, value, instance, schema) or ():
            _work(_ERROR_WORK + len(error.message))  # which may show the whole of both
            yield error

    return counted


def _is_boolean(_: Any, part: Any) -> bool:
    """Asked at each part by those who look for unevaluated ones, who count nothing themselves."""
    _work(_LOOKING_WORK)
    return isinstance(part, bool)


def _items(part: Any) -> int:
    return len(part) if isinstance(part, list | dict) else 0


def _enum(validator: Any, allowed: Iterable[Any], instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not any(_equal(each, instance) for each in allowed):
        yield ValidationError("is none of the values that are allowed")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not wanted or not isinstance(instance, list):
        return
    if any(isinstance(each, list | dict) for each in instance):
        _work(_ITEM_WORK * len(instance) ** 2)
    # Texts: nobody can choose many that hash alike, and they need not be compared in pairs.
    if len({_written(each) for each in instance}) < len(instance):
        yield ValidationError("has items that are equal")


def _written(part: Any) -> str:
    """The same text for what is equal as JSON: 1 is 1.0, but not true."""
    _work(_items(part) * _ITEM_WORK)
    if isinstance(part, list):
        return f"[{','.join(map(_written, part))}]"
    if isinstance(part, dict):
        return f"{{{','.join(f'{key!r}:{_written(part[key])}' for key in sorted(part))}}}"
    whole = isinstance(part, float) and part.is_integer()
    return repr(int(part) if whole else part)


def _equal(one: Any, two: Any) -> bool:
    """As JSON knows it: 1 is 1.0, but not true."""
    _work(_items(one) * _ITEM_WORK)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    return isinstance(one, bool) is isinstance(two, bool) and bool(one == two)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator, ValidationError

    theirs: Any = Draft202012Validator.VALIDATORS["multipleOf"]
    try:
        yield from theirs(validator, step, instance, schema)
    except OverflowError:  # a number of hundreds of digits, which no float can hold
        if Fraction(instance) % Fraction(step):
            yield ValidationError("is no such multiple")


def _dependent_required(
    validator: Any, needed: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    from jsonschema import Draft202012Validator

    if isinstance(instance, dict):
        _work(_ITEM_WORK * sum(len(names) for name, names in needed.items() if name in instance))
    theirs: Any = Draft202012Validator.VALIDATORS["dependentRequired"]
    yield from theirs(validator, needed, instance, schema)


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
