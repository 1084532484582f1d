"""The rules for names, texts, sizes and references: what each refuses, and in which words."""

from collections.abc import Callable

import pytest

from sidecar.model import validation
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef

LONG = "é" * 128  # 256 bytes
BIG = 2**63
NO_RUN = "needs the run_id, attempt and epoch that Execute was given"


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (lambda: validation.check_text("f", LONG), "is longer than 255 bytes"),
        (lambda: validation.check_text("f", "a\0b"), "holds a NUL character"),
        (lambda: validation.check_name("f", ""), "is empty"),
        (lambda: validation.check_name("f", LONG), "is longer than 255 bytes"),
        (lambda: validation.check_name("f", "\0"), "holds a NUL character"),
        (lambda: validation.check_not_empty("f", ""), "is empty"),
        (lambda: validation.check_characters("f", "a\nb"), "holds a control character"),
        (lambda: validation.check_characters("f", "\x85"), "holds a control character"),
        (lambda: validation.check_characters("f", LONG), "has 256 bytes; at most 255"),
        (lambda: validation.check_characters("f", "abc", bytes_max=2), "has 3 bytes; at most 2"),
        (lambda: validation.check_size("f", b"abc", 2), "has 3 bytes; at most 2"),
    ],
)
def test_texts(check: Callable[[], None], problem: str) -> None:
    """G11."""
    with pytest.raises(InvalidArgument) as refused:
        check()
    assert (refused.value.field, refused.value.problem) == ("f", problem)


def test_texts_that_are_allowed() -> None:
    validation.check_text("f", "")
    validation.check_text("f", "two\nlines")
    validation.check_text("f", "é" * 127)
    validation.check_name("f", "n" * 255)
    validation.check_characters("f", "")
    validation.check_characters("f", "a\nb", refused=validation.NOT_STORABLE)
    validation.check_size("f", bytes(validation.VALUE_BYTES_MAX))


@pytest.mark.parametrize("seconds", [0.0, -1.0, validation.TTL_SECONDS_MAX + 1, float("nan")])
def test_no_time_to_live(seconds: float) -> None:
    """G11."""
    with pytest.raises(InvalidArgument, match="must be above zero and at most ten years"):
        validation.check_ttl(seconds)


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (RunRef(BIG, 1, 1), "run_id"),
        (RunRef(1, 2**31, 1), "attempt"),
        (RunRef(1, 1, BIG), "epoch"),
        (RunRef(-1, 1, 1), "run_id"),
    ],
)
def test_a_run_out_of_range(run: RunRef, part: str) -> None:
    """G11."""
    with pytest.raises(InvalidArgument) as refused:
        validation.check_run_range(run)
    assert (refused.value.field, refused.value.problem) == (f"run.{part}", "is out of range")
    with pytest.raises(InvalidArgument, match=NO_RUN):
        validation.check_run(run)


@pytest.mark.parametrize("run", [RunRef(0, 1, 1), RunRef(1, 0, 1), RunRef(1, 1, 0)])
def test_a_zero_is_in_range_and_no_live_run(run: RunRef) -> None:
    validation.check_run_range(run)
    with pytest.raises(InvalidArgument, match=NO_RUN):
        validation.check_run(run)


def test_what_is_in_range() -> None:
    most = RunRef(BIG - 1, 2**31 - 1, BIG - 1)
    validation.check_run(most)
    validation.check_run_range(most)
    validation.check_run_id(BIG - 1)
    validation.check_ttl(None)
    validation.check_ttl(validation.TTL_SECONDS_MAX)


@pytest.mark.parametrize("run_id", [0, -1, BIG])
def test_no_run_id(run_id: int) -> None:
    """G11."""
    with pytest.raises(InvalidArgument, match="run_id: is not the id of a run"):
        validation.check_run_id(run_id)
