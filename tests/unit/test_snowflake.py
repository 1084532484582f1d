"""Snowflakes: unique and rising, whatever the clock does."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.snowflake import (
    EPOCH,
    MACHINES_MAX,
    Window,
    decomposed,
    first_position,
    taken,
    used_ms,
)

WIDE = Window(machine=5, floor_ms=0, ceiling_ms=2**42 - 1)
calls = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 9000)), min_size=1, max_size=30)


def test_the_layout_is_the_documented_one() -> None:
    ids, _ = taken(Window(3, 0, 2**41), 0, 1_000, 2) or ([], 0)
    assert ids == [(1_000 << 22) | (3 << 12), (1_000 << 22) | (3 << 12) | 1]
    parts = decomposed(ids[1])
    assert parts.at == datetime(2025, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (parts.machine, parts.sequence) == (3, 1)


@given(calls)
def test_ids_rise_and_never_repeat_whatever_the_clock_does(moves: list[tuple[int, int]]) -> None:
    """A clock that steps back borrows; so do more than 4,096 ids in a millisecond."""
    position, last = 0, -1
    for now_ms, count in moves:
        found = taken(WIDE, position, now_ms, count)
        assert found is not None
        ids, position = found
        assert len(ids) == count
        assert ids == sorted(set(ids))
        assert ids[0] > last
        last = ids[-1]
        assert decomposed(ids[0]).at >= EPOCH + timedelta(milliseconds=now_ms)
        assert {decomposed(each).machine for each in (ids[0], ids[-1])} == {5}


@given(calls, st.integers(0, 2**40), st.integers(0, 5))
def test_no_id_leaves_its_window(
    moves: list[tuple[int, int]], floor_ms: int, length_ms: int
) -> None:
    """Windows of one number never overlap, so neither do the ids."""
    window = Window(1, floor_ms, floor_ms + length_ms)
    position = 0
    for now_ms, count in moves:
        found = taken(window, position, now_ms, count)
        if found is None:
            first = max(position >> 12, floor_ms, now_ms)
            assert (first + 1 + count // 4096) >= window.ceiling_ms
            continue
        ids, position = found
        for each in (ids[0], ids[-1]):
            assert floor_ms <= each >> 22 < window.ceiling_ms
        assert used_ms(position) <= window.ceiling_ms


@given(st.integers(0, 2**50), st.integers(0, 2**40), st.integers(0, 1023), st.integers(0, 1023))
def test_ids_still_rise_under_another_machine_number(
    position: int, floor_ms: int, before: int, after: int
) -> None:
    old, _ = taken(Window(before, 0, 2**42 - 1), position, 0, 1) or ([], 0)
    window = Window(after, floor_ms, 2**42 - 1)
    new, _ = taken(window, first_position(window, position + 1), 0, 1) or ([], 0)
    assert new[0] > old[0]


@given(st.integers(0, 2**64 - 1))
def test_every_number_can_be_taken_apart(id: int) -> None:
    parts = decomposed(id)
    ms = (parts.at - EPOCH) // timedelta(milliseconds=1)
    assert (ms << 22) | (parts.machine << 12) | parts.sequence == id


@pytest.mark.parametrize("id", [-1, 2**64])
def test_what_is_no_id_is_refused(id: int) -> None:
    """G11"""
    with pytest.raises(ValueError, match="unsigned 64-bit"):
        decomposed(id)


@pytest.mark.parametrize("window", [(-1, 0, 1), (MACHINES_MAX, 0, 1), (0, 2, 1), (0, 0, 2**42)])
def test_what_is_no_window_is_refused(window: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"outside|window"):
        Window(*window)
