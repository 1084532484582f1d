"""The rules of deferreds: tokens, limits, and when two ends are the same."""

import re
from datetime import UTC, datetime

import pytest

from sidecar.model.deferred import (
    ERROR_BYTES_MAX,
    Deferred,
    DeferredState,
    check_create,
    completed,
    failed,
    id_of,
    token_of,
)
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.validation import TEXT_BYTES_MAX, TTL_SECONDS_MAX, VALUE_BYTES_MAX

KEY, SALT = b"k" * 32, b"s" * 16
TOKEN = token_of(KEY, SALT)


def test_a_token_is_the_same_again_and_differs_by_key_and_salt() -> None:
    assert token_of(KEY, SALT) == TOKEN
    others = {token_of(KEY, b"t" * 16), token_of(b"l" * 32, SALT), TOKEN}
    assert len(others) == 3


def test_a_token_is_safe_in_urls_and_as_an_argument() -> None:
    for n in range(200):
        token = token_of(KEY, n.to_bytes(16))
        assert re.fullmatch(r"bdt_[A-Za-z0-9_-]{43}", token)  # 256 bits


def test_the_id_does_not_give_the_token_away() -> None:
    assert len(id_of(TOKEN)) == 32
    assert TOKEN.removeprefix("bdt_").encode() not in id_of(TOKEN)


@pytest.mark.parametrize(
    "token", ["", "bdt_", TOKEN[:-1], TOKEN + "A", TOKEN + "\n", "x" + TOKEN[1:], "bdt_" + "é" * 43]
)
def test_a_malformed_token_is_refused_and_never_repeated(token: str) -> None:
    """G11, G12."""
    with pytest.raises(InvalidArgument) as refused:
        id_of(token)
    assert refused.value.field == "token"
    assert not token or token not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "run", "ttl", "field"),
    [
        ("", None, None, "name"),
        ("é" * 128, None, None, "name"),
        ("a\x00b", None, None, "name"),
        ("a\nb", None, None, "name"),
        ("a", None, 0.0, "ttl"),
        ("a", None, -1.0, "ttl"),
        ("a", None, TTL_SECONDS_MAX * 2, "ttl"),
        ("a", RunRef(2**63, 1, 1), None, "run.run_id"),
        ("a", RunRef(1, 2**31, 1), None, "run.attempt"),
        ("a", RunRef(1, 1, 2**63), None, "run.epoch"),
    ],
)
def test_create_names_the_field_that_cannot_be_right(
    name: str, run: RunRef | None, ttl: float | None, field: str
) -> None:
    """G11."""
    with pytest.raises(InvalidArgument) as refused:
        check_create(name, run, ttl)
    assert refused.value.field == field


def test_what_is_just_within_the_limits_passes() -> None:
    check_create("n" * TEXT_BYTES_MAX, RunRef(2**63 - 1, 2**31 - 1, 2**63 - 1), TTL_SECONDS_MAX)
    completed(b"v" * VALUE_BYTES_MAX)
    failed("e" * ERROR_BYTES_MAX)
    failed("two\nlines")


def test_ends_above_the_limits_are_refused() -> None:
    """G11."""
    with pytest.raises(InvalidArgument, match="value: has 1048577 bytes"):
        completed(b"v" * (VALUE_BYTES_MAX + 1))
    for error in ("", "e" * (ERROR_BYTES_MAX + 1), "a\x00b"):
        with pytest.raises(InvalidArgument, match=r"^error: "):
            failed(error)


def test_an_end_is_the_same_only_in_state_and_content() -> None:
    now = datetime.now(UTC)
    state = DeferredState.COMPLETED
    deferred = Deferred(b"", "a", 0, state, b"1", "", now, now, None, None)
    assert deferred.ended_as(completed(b"1"))
    assert not deferred.ended_as(completed(b"2"))
    assert not deferred.ended_as(failed("1"))
    assert "b'1'" not in repr(deferred)
