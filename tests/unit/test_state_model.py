"""The pure rules of state: keys, limits, and fitting stored bytes to a schema."""

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config.kinds import Name
from sidecar.config.problems import InvalidValue
from sidecar.config.schemas import schema_problem, value_problem
from sidecar.model import json_schema
from sidecar.model.definitions import State
from sidecar.model.errors import (
    FailedPrecondition,
    InvalidArgument,
    SchemaDecodeFailed,
)
from sidecar.model.run import RunRef
from sidecar.model.state import (
    check_delete,
    check_key,
    check_prefix,
    check_put,
    owner_of,
    prefix_end,
)
from sidecar.model.state_schema import decoded, initial_state
from sidecar.model.state_types import Delete, Owner, Put

RUN = RunRef(1, 1, 1)


@pytest.mark.parametrize(
    "key", ["a", "a b", "é" * 127, "x" * 255, "a:b/c", "😀", "singleton-states"]
)
def test_keys(key: str) -> None:
    check_key(key)


@pytest.mark.parametrize(
    "key", ["", "a\0", "\n", "x" * 256, "é" * 128, "\x7f", "\x85", "\U0010ffff", "singleton-state:"]
)
def test_not_keys(key: str) -> None:
    """G11."""
    with pytest.raises(InvalidArgument, match=r"^key: "):
        check_key(key)


@pytest.mark.parametrize("name", ["", "-a", "a/b", "a b", "x" * 256, "a\n", "ü"])
def test_an_owned_key_ends_in_a_name(name: str) -> None:
    """G11: nobody hides a key of his own behind a reserved prefix."""
    with pytest.raises(InvalidArgument, match=r"^key: "):
        check_key(f"schedule-state:{name}")


@pytest.mark.parametrize("name", ["a", "job_", "job.", "job-", "0--", "x" * 254 + "_"])
def test_whatever_may_be_a_name_may_own_state(name: str) -> None:
    """G11: what `baton check` accepts, the API accepts."""
    assert Name().parse(name) == name
    check_key(Owner("singleton", name).key)


@given(st.from_regex("[A-Za-z0-9._ ü-]{0,5}", fullmatch=True))
def test_nothing_else_may(name: str) -> None:
    try:
        check_key(Owner("singleton", name).key)
    except InvalidArgument:
        with pytest.raises(InvalidValue):
            Name().parse(name)
    else:
        Name().parse(name)


def test_owners() -> None:
    assert owner_of("singleton-state:a.b") == Owner("singleton", "a.b")
    assert owner_of("schedule-state:a") == Owner("schedule", "a")
    assert owner_of("other-state:a") is None
    check_key(Owner("singleton", "x" * 255).key)


def test_owned_keys_need_a_run() -> None:
    """G3."""
    with pytest.raises(FailedPrecondition):
        check_put(Put("singleton-state:a", b""))
    with pytest.raises(FailedPrecondition):
        check_delete(Delete("schedule-state:a"))
    check_put(Put("singleton-state:a", b"", run=RUN))


def test_deleting_what_is_not_there_is_no_wish() -> None:
    with pytest.raises(InvalidArgument, match="expected_version"):
        check_delete(Delete("k", expected_version=0))


def test_prefixes_have_a_limit_too() -> None:
    check_prefix("")
    check_prefix("singleton-state:" + "x" * 255)
    with pytest.raises(InvalidArgument, match="prefix"):
        check_prefix("x" * 300)


KEY_CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\U0010ffff")


@given(st.text(KEY_CHARACTERS, max_size=5), st.text(KEY_CHARACTERS, max_size=8))
def test_a_prefix_is_a_range(prefix: str, key: str) -> None:
    inside = prefix.encode() <= key.encode() < prefix_end(prefix).encode()
    assert inside == key.startswith(prefix)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "default": 0},
        "name": {"type": "string"},
        "limits": {"$ref": "#/$defs/limits"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "by_day": {"type": "object", "additionalProperties": {"type": "integer"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["count", "limits"],
    "$defs": {
        "limits": {"type": "object", "properties": {"most": {"type": "integer", "default": 5}}},
        "tag": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    },
}
_DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {
    "d40": {}
}
# Each keyword that applies an expression, and references that double the work with each line; what
# becomes of {AAA: AAA}, and what is said of it.
AAA = "a" * 40 + "!"
ENDLESS: list[tuple[dict[str, Any], Any, str]] = [
    ({"additionalProperties": {"pattern": "^(a+)+$"}}, {}, "fails pattern"),
    ({"propertyNames": {"pattern": "^(a+)+$"}}, None, "fails pattern"),
    ({"patternProperties": {"^(a+)+$": {}}}, {}, ""),
    ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {}, "fails additional"),
    ({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}, {}, "cannot be"),
    ({"$defs": _DOUBLING, "$ref": "#/$defs/d0"}, {AAA: AAA}, "too much work"),
    ({"$defs": _DOUBLING, "anyOf": [{"$ref": "#/$defs/d0"}]}, {AAA: AAA}, "too much work"),
]
EMPTY = {"count": 0, "limits": {"most": 5}, "note": None}
_A, _B = ({"properties": {name: {"type": "integer"}}} for name in "ab")
_DEFS = {"$defs": {"b": _B | {"$anchor": "bee"}, "b b": _B, "five": {"type": "integer"}}}
# Every way in which a schema describes a field "b" beside its own "a".
APART: list[dict[str, Any]] = [
    _A | {"allOf": [_B]},
    {"allOf": [_A, _B]},
    {"anyOf": [_A, _B]},
    _A | {"anyOf": [_A, _B]},
    _A | {"oneOf": [{"required": ["c"]}, _B | {"required": ["b"]}]},
    _A | {"if": {"required": ["a"]}, "then": _B},
    _A | {"if": {"required": ["c"]}, "else": _B},
    _A | {"dependentSchemas": {"a": _B}},
    *(_A | _DEFS | {"$ref": f"#{part}"} for part in ("/$defs/b", "/$defs/b%20b", "bee")),
    _A | _DEFS | {"allOf": [{"$ref": "#/$defs/b"}]},
]


def fitted(value: object, schema: dict[str, Any] | None = None, initial: object = None) -> Any:
    policy = State(schema=SCHEMA if schema is None else schema, initial=initial)
    return json.loads(decoded(json.dumps(value).encode(), policy))


class TestDecoding:
    def test_matching_fields_are_taken(self) -> None:
        value = {"count": 3, "limits": {"most": 9}, "name": "n", "note": "x", "by_day": {"mon": 1}}
        assert fitted(value) == value

    def test_new_fields_get_their_defaults(self) -> None:
        assert fitted({}) == EMPTY

    def test_new_fields_without_a_default_get_the_initial_value(self) -> None:
        assert fitted({}, initial={"name": "new"}) == EMPTY | {"name": "new"}

    def test_unknown_fields_are_dropped(self) -> None:
        assert fitted({"old": 1, "limits": {"gone": 1}}) == EMPTY
        assert fitted({"tags": [{"id": 1, "old": 2}]}) == EMPTY | {"tags": [{"id": 1}]}

    def test_what_the_schema_allows_is_not_unknown(self) -> None:
        schema = {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}}
        assert fitted({"x-a": 1, "y": 2}, schema) == {"x-a": 1}
        assert fitted({"a": 1}, {"type": "object", "additionalProperties": True}) == {"a": 1}

    @pytest.mark.parametrize("schema", APART)
    def test_a_field_is_known_wherever_the_schema_describes_it(
        self, schema: dict[str, Any]
    ) -> None:
        """G7: what was stored by the rules of the schema is not lost."""
        assert fitted({"a": 1, "b": 2, "old": 3}, schema) == {"a": 1, "b": 2}

    def test_a_condition_makes_no_field_unknown(self) -> None:
        """G7: it is the only part of the schema that names one."""
        value, condition = {"a": 1, "x": 2}, _A | {"required": ["a"]}
        assert fitted(value, {"if": condition, "then": {"minProperties": 1}}) == value
        assert fitted(value, _B | {"if": condition}) == {"a": 1}

    def test_what_one_part_of_a_schema_refuses_no_other_brings_back(self) -> None:
        schema = {"allOf": [_A | {"additionalProperties": False}, _B]}
        assert fitted({"a": 1, "b": 2}, schema) == {"a": 1}

    def test_a_choice_may_take_what_it_lacks_from_the_initial_state(self) -> None:
        schema = {"oneOf": [_A | {"required": ["a", "b"]} | {"allOf": [_B]}, {"type": "string"}]}
        assert fitted({"a": 1}, schema, {"a": 0, "b": 0}) == {"a": 1, "b": 0}

    def test_a_default_beside_a_reference_counts(self) -> None:
        schema = _DEFS | {"properties": {"n": {"$ref": "#/$defs/five", "default": 5}}}
        assert fitted({}, schema) == {"n": 5}

    def test_what_matches_is_not_lost_for_what_would_be_added(self) -> None:
        """G7: each of the two has a default, and there may be one of them only."""
        defaults = {"properties": {name: {"default": 0} for name in "ab"}}
        schema = defaults | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
        assert fitted({"b": 2}, schema) == {"b": 2}
        assert fitted({"a": 1}, {"properties": {"b": {"type": "string", "default": 0}}}) == {"a": 1}

    def test_an_entry_that_does_not_match_costs_no_other(self) -> None:
        integer = {"type": "integer"}
        assert fitted({"x": 1, "y": "?"}, {"additionalProperties": integer}) == {"x": 1}
        assert fitted({"x": 1, "y": "?"}, {"patternProperties": {".": integer}}) == {"x": 1}

    def test_one_is_not_true(self) -> None:
        schema = {"properties": {"on": {"type": "boolean", "default": True}}}
        assert fitted({"on": 1}, schema)["on"] is True

    def test_half_a_character_stays_what_it_is(self) -> None:
        assert fitted({"a": "\ud800", "old": 1}, {"properties": {"a": {}}}) == {"a": "\ud800"}

    def test_a_field_that_does_not_match_gets_its_default(self) -> None:
        assert fitted({"count": "three", "name": 5}) == EMPTY

    @pytest.mark.parametrize(
        "stored", [b"", b"\xff", b"{", b"[1]", b'"x"', b"null", b"[" * 100_000]
    )
    def test_what_cannot_be_decoded_says_so(self, stored: bytes) -> None:
        with pytest.raises(SchemaDecodeFailed):
            decoded(stored, State(schema=SCHEMA))

    def test_a_required_field_without_any_value_cannot_be_made_up(self) -> None:
        schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
        with pytest.raises(SchemaDecodeFailed, match="id"):
            fitted({}, schema)

    def test_without_a_schema_bytes_are_opaque(self) -> None:
        assert decoded(b"\xff\0", State()) == b"\xff\0"

    def test_bytes_that_fit_are_left_as_they_are(self) -> None:
        stored = b'{ "count": 1, "limits": {"most": 1}, "note": null }'
        assert decoded(stored, State(schema=SCHEMA)) is stored

    @pytest.mark.parametrize(
        "schema",
        [
            {"$ref": "http://127.0.0.1:1/schema.json"},
            {"$ref": "#/nowhere"},
            {"$ref": "#"},
            {"type": 5},
        ],
    )
    def test_a_broken_schema_ends_nothing(self, schema: dict[str, Any]) -> None:
        """G11: nothing is fetched, nothing hangs, nothing but our own error comes out."""
        with pytest.raises(SchemaDecodeFailed):
            fitted({"a": "x"}, schema)

    @pytest.mark.parametrize("expression", ["(", "^(?=x)x$", r"^(x)\1?$"])
    def test_no_state_is_lost_for_an_expression_that_cannot_be_applied(
        self, expression: str
    ) -> None:
        """Such a schema is refused now, but older ones may be in the database."""
        schema = {"properties": {"a": {"pattern": expression}}, "patternProperties": {"(": {}}}
        assert fitted({"a": "x", "b": 1}, schema) == {"a": "x", "b": 1}

    @pytest.mark.parametrize(("schema", "becomes", "problem"), ENDLESS)
    def test_no_schema_takes_for_ever(
        self, schema: dict[str, Any], becomes: Any, problem: str
    ) -> None:
        """G11: nothing a user sends ends the process, or stops its loop."""
        if becomes is not None:
            assert fitted({AAA: AAA}, schema) == becomes
            return
        with pytest.raises(SchemaDecodeFailed, match="does not match"):
            fitted({AAA: AAA}, schema)

    def test_the_initial_state(self) -> None:
        assert initial_state(State()) == b"{}"
        assert initial_state(State(initial={"ü": [1]})) == '{"ü":[1]}'.encode()
        assert initial_state(State(initial=0)) == b"0"


@pytest.mark.parametrize(("schema", "becomes", "problem"), ENDLESS)
def test_no_schema_takes_for_ever_to_be_checked(
    schema: dict[str, Any], becomes: Any, problem: str
) -> None:
    """G11: what comes through Create or `baton check`."""
    found = schema_problem(schema) or value_problem({AAA: AAA}, schema)
    assert problem in found
    assert bool(found) is bool(problem)


@pytest.mark.parametrize(
    ("expression", "text", "matches"),
    [("^a+$", "aa", True), ("^a+$", "ab", False), ("b", "abc", True), ("^ü{2}$", "üü", True)],
)
def test_expressions_mean_what_they_mean_elsewhere(
    expression: str, text: str, matches: bool
) -> None:
    assert not schema_problem({"pattern": expression})
    assert bool(value_problem(text, {"pattern": expression})) is not matches
    keyed = {"patternProperties": {expression: {}}, "additionalProperties": False}
    assert bool(value_problem({text: 1}, keyed)) is not matches


def test_much_text_under_a_dear_expression_is_refused_at_once() -> None:
    """G11: RE2 is linear, but in the size of both."""
    schema = {"pattern": "a[ab]{900}c|d"}
    assert "too much work" in value_problem("ab" * 250_000, schema)
    many = {"allOf": [{"pattern": f"(a{{500}}){{2}}{n}"} for n in range(5000)]}
    assert "too much work" in schema_problem(many)
    objects = [{"a": n} for n in range(50_000)]
    assert "too much work" in value_problem(objects, {"uniqueItems": True})
    assert value_problem([{"a": 1}, {"a": 1}], {"uniqueItems": True})
    assert not value_problem([*map(str, range(50_000))], {"uniqueItems": True})


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LONG: list[Any] = [{} for _ in range(80)]
_DEPENDING = {
    f"d{n}": {"dependentSchemas": {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "ab"}}
    for n in range(40)
} | {"d40": {}}
# Keywords that look at far more than their own items: schema, state, and what is said of it.
DEAR: dict[str, tuple[dict[str, Any], Any, str]] = {
    "enum-of-long-lists": (
        {"items": {"enum": [[*_LONG, n] for n in range(900)]}},
        [[*_LONG, 899]] * 900,
        "too much work",
    ),
    "unique-items-of-two-types": (
        {"uniqueItems": True},
        [n if n % 2 else str(n) for n in range(100_000)],
        "",
    ),
    "unique-items-that-hash-alike": (
        {"uniqueItems": True},
        [n * (2**61 - 1) for n in range(40_000)],
        "",
    ),
    "what-is-shown-of-each-failure": (
        {"anyOf": [{"type": "string"}] * 40_000},
        {"a": "x" * 900_000},
        "too much work",
    ),
    "names-that-depend-on-one": (
        {"contains": {"not": {"dependentRequired": {"a": [f"{n}" for n in range(50_000)] * 2}}}},
        [{"a": 1} | {f"{n}": 1 for n in range(50_000)}] + [{"a": 1}] * 9_000,
        "too much work",
    ),
    "a-part-that-names-its-draft": (
        {"properties": {"a": {"$schema": _DRAFT, "pattern": "^(a+)+$"}}},
        {"a": AAA},
        "fails pattern",
    ),
    "the-whole-as-a-part-of-itself": (
        {"$schema": _DRAFT, "properties": {"a": {"pattern": "^(a+)+$"}, "b": {"$ref": "#"}}},
        {"b": {"a": AAA}},
        "fails pattern",
    ),
    "unevaluated-properties": (
        {"unevaluatedProperties": False, "$defs": _DEPENDING, "allOf": [{"$ref": "#/$defs/d0"}]},
        {"a": 1, "b": 2},
        "too much work",
    ),
    "unevaluated-properties-of-its-own": (
        {"unevaluatedProperties": False, "$defs": _DEPENDING, "$ref": "#/$defs/d0"},
        {"a": 1, "b": 2},
        "too much work",
    ),
}


@pytest.mark.parametrize("name", DEAR)
def test_no_keyword_takes_for_ever(name: str) -> None:
    """G11: the work is counted where it is done, not only where it is asked for."""
    schema, value, problem = DEAR[name]
    began = process_time()
    found = value_problem(json.loads(json.dumps(value)), schema)
    assert process_time() - began < 10
    assert problem in found
    assert bool(found) is bool(problem)


def test_the_parts_of_a_schema_count_as_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: whatever the draft of the rules that they are checked by."""
    monkeypatch.setattr(json_schema, "_CHECKING_WORK_MAX", 1_000_000)
    assert "too much work" in schema_problem({"anyOf": [{}] * 100})
    assert not schema_problem({"$schema": _DRAFT, "anyOf": [{}] * 10})


@pytest.mark.parametrize(
    ("step", "value", "good"),
    [
        (0.5, 10**400, True),
        (0.7, 10**400, False),
        (10**400, 0.5, False),
        (10**400, 3 * 10**400, True),
        (0.1, 1e308, False),
    ],
)
def test_numbers_that_no_float_can_hold(step: float, value: float, good: bool) -> None:
    """G11: JSON has them, whatever machines think."""
    schema = {"multipleOf": step}
    assert not schema_problem(schema)
    assert bool(value_problem(value, schema)) is not good


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, 1.0, True), (1, True, False), (0, False, False), ("1", 1, False), (None, "None", False),
        ([1, {"a": [0]}], [1.0, {"a": [0.0]}], True), ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True), ({"a": 1}, {"a": 1, "b": 2}, False),
        ({}, [], False), ("a", "a", True), (["a'b", "c"], ["a", "b'c"], False),
    ],
)  # fmt: skip
def test_what_is_equal_as_json(one: Any, two: Any, same: bool) -> None:
    """As the authors of JSON Schema have it, and as jsonschema itself says."""
    from jsonschema import Draft202012Validator

    for schema, value in (
        ({"const": one}, two),
        ({"enum": [one]}, two),
        ({"not": {"uniqueItems": True}}, [one, two]),
    ):
        assert (not value_problem(value, schema)) is same
        assert Draft202012Validator(schema).is_valid(value) is same


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "integer"}, {"const": 1}, {"enum": [1]}, {"maxLength": 3}, {"pattern": "^x"},
        {"not": {}}, {"anyOf": [{"type": "null"}]}, {"oneOf": [{"const": 1}]},
    ],
)  # fmt: skip
def test_what_is_said_of_a_state_holds_none_of_it(rule: dict[str, Any]) -> None:
    """G12: it is logged, and a state may hold what nobody else should see."""
    with pytest.raises(SchemaDecodeFailed, match=r"^0: does not match") as caught:
        fitted(["hunter2"], {"items": rule})
    assert "hunter2" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON | st.dictionaries(st.sampled_from(list(SCHEMA["properties"])), JSON))
def test_what_is_decoded_fits_the_schema_and_stays(value: object) -> None:
    """Any JSON either fits after decoding, and then decodes to itself, or is refused."""
    from jsonschema import Draft202012Validator

    try:
        result = fitted(value)
    except SchemaDecodeFailed:
        assert not isinstance(value, dict)
        return
    Draft202012Validator(SCHEMA).validate(result)
    assert fitted(result) == result
