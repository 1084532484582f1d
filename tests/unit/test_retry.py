"""Waits between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.definitions import Retry
from sidecar.model.retry import wait_seconds


def test_it_doubles_up_to_the_cap() -> None:
    policy = Retry(attempts=9, initial_seconds=1.0, max_seconds=10.0)
    waits = [wait_seconds(policy, n, chance=0.5) for n in range(1, 7)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@given(
    failures=st.integers(0, 10**9),
    chance=st.floats(0, 1, exclude_max=True),
    initial=st.floats(0.01, 100),
    cap=st.floats(0.01, 1000),
)
def test_a_wait_has_bounds(failures: int, chance: float, initial: float, cap: float) -> None:
    policy = Retry(3, initial, cap)
    wait = wait_seconds(policy, failures, chance)
    assert 0.8 * min(initial, cap) * 0.999 <= wait <= cap


def test_chance_parts_runs_that_failed_together() -> None:
    policy = Retry(3, 10.0, 60.0)
    assert wait_seconds(policy, 1, 0.0) == 8.0
    assert wait_seconds(policy, 1, 0.999) > 11.9
