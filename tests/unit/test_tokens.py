"""Tokens: who may call, and files that change while we run (G12)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sidecar.adapters.tokens import METADATA_KEY, Token
from sidecar.config import SecretSource
from sidecar.logs import redacted


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def test_without_a_token_everybody_may_call() -> None:
    token = Token(SecretSource())
    assert token.accepts(None)
    assert token.metadata() == ()


@pytest.mark.parametrize(
    "metadata", [None, (), ((METADATA_KEY, ""),), ((METADATA_KEY, "Xirst"),), (("other", "first"),)]
)
def test_a_wrong_token_is_refused(file: Path, metadata: tuple[tuple[str, str], ...] | None) -> None:
    """G12."""
    assert not Token(SecretSource.from_file(file)).accepts(metadata)


def test_the_right_one_is_accepted_as_text_and_as_bytes(file: Path) -> None:
    token = Token(SecretSource.from_file(file))
    assert token.accepts(((METADATA_KEY, "first"),))
    assert token.accepts(((METADATA_KEY, b"first"),))
    assert token.metadata() == ((METADATA_KEY, "first"),)


def test_a_changed_file_counts_at_the_next_call(file: Path) -> None:
    """G12."""
    token = Token(SecretSource.from_file(file))
    assert token.read() == "first"
    replacement = file.with_name("new")
    replacement.write_text("second")
    os.replace(replacement, file)
    assert token.accepts(((METADATA_KEY, "second"),))
    assert not token.accepts(((METADATA_KEY, "first"),))


def test_a_changed_token_is_hidden_from_when_it_counts(file: Path) -> None:
    """G12: so is the one before it, which may still be written down somewhere."""
    token = Token(SecretSource.from_file(file))
    assert token.read() == "first"
    file.write_text("rotated")
    assert token.read() == "rotated"
    assert redacted("refused: rotated, first") == "refused: ***, ***"


def test_while_the_file_is_away_the_last_one_holds(file: Path) -> None:
    token = Token(SecretSource.from_file(file))
    assert token.read() == "first"
    file.unlink()
    assert token.accepts(((METADATA_KEY, "first"),))


def test_a_file_that_cannot_be_read_is_told_once(file: Path) -> None:
    """And not with each call, of which there may be thousands a second."""
    token = Token(SecretSource.from_file(file))
    with capture_logs() as told:
        for content in ("", "two\nlines", "second", ""):
            file.write_text(content)
            for _ in range(3):
                token.read()
    empty, lines = "is empty", "is not one line of printable ASCII"
    assert [line["problem"] for line in told] == [empty, lines, empty]


@pytest.mark.parametrize("content", ["two\nlines", "tökén", "a\tb", "a\x00b"])
def test_what_no_call_can_carry_is_no_token(file: Path, content: str) -> None:
    """G11: gRPC refuses such metadata, and every call with it."""
    token = Token(SecretSource.from_file(file))
    assert token.read() == "first"
    file.write_text(content)
    assert token.metadata() == ((METADATA_KEY, "first"),)


def test_a_file_that_was_never_readable_lets_nobody_in(tmp_path: Path) -> None:
    """G12: no token is not an empty token."""
    token = Token(SecretSource.from_file(tmp_path / "missing"))
    assert not token.accepts(((METADATA_KEY, ""),))
    assert not token.accepts(None)
