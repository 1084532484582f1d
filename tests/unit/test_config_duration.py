"""Durations: every written form, and back again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.duration import format_duration, parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0.0),
        ("500ms", 0.5),
        ("1.5ms", 0.0015),
        ("3s", 3.0),
        ("3.2s", 3.2),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("7d", 604800.0),
        ("1d1h1m1s1ms", 90061.001),
    ],
)
def test_written_forms(text: str, seconds: float) -> None:
    assert parse(text) == seconds


REFUSED = """s 3 -3s +3s 3S 3sec 1:30 30m1h 1s1s 1e3s .5s 3.s inf nan ٣s 1m1ms1s 9999999999999s"""


@pytest.mark.parametrize("text", ["", " ", " 3s", "3 s", "3s\n", *REFUSED.split()])
def test_refused_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not a duration|has no unit)$"):
        parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.1, "100ms"), (1, "1s"), (3.2, "3.2s"), (5400, "1h30m"), (86400, "1d")],
)
def test_short_forms(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_a_negative_duration_has_no_form() -> None:
    with pytest.raises(ValueError, match="never negative"):
        format_duration(-1)


@given(st.integers(min_value=0, max_value=10**12))
def test_round_trip_to_the_millisecond(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse(format_duration(seconds)) == seconds
