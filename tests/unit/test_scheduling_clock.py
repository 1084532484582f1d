"""The estimate of the database's time."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.database_clock import SAMPLE_SECONDS_MAX, DatabaseClock

T0 = datetime(2026, 5, 1, tzinfo=UTC)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


@given(there=st.floats(0, 2), back=st.floats(0, 2), later=st.floats(0, 100))
def test_it_is_off_by_half_a_round_trip_at_most(there: float, back: float, later: float) -> None:
    clock = DatabaseClock()
    clock.learn(T0 + seconds(there), asked=50.0, answered=50.0 + there + back)
    estimate = clock.time(50.0 + later)
    assert abs((estimate - (T0 + seconds(later))).total_seconds()) <= (there + back) / 2 + 1e-3


def test_the_quickest_answer_counts_until_it_is_old() -> None:
    clock = DatabaseClock()
    clock.learn(T0, asked=10.0, answered=10.002)
    clock.learn(T0 + seconds(1.3), asked=11.0, answered=11.8)
    before = clock.time(12.0)
    clock.learn(T0 + seconds(40.1), asked=50.0, answered=50.4)
    assert SAMPLE_SECONDS_MAX < 50.4 - 10.002
    assert clock.time(50.2) == T0 + seconds(40.1)
    assert before == T0 + seconds(12.0 - 10.001)


def test_a_clock_that_was_set_is_noticed_at_once() -> None:
    """Otherwise the leader would ask too early, again and again."""
    clock = DatabaseClock()
    clock.learn(T0, asked=10.0, answered=10.002)
    assert clock.learn(T0 + seconds(0.5), asked=10.4, answered=10.6) == 0.0
    stepped = clock.learn(T0 - seconds(60), asked=11.0, answered=11.5)
    assert 60 < stepped < 62
    assert clock.time(11.25) == T0 - seconds(60)


def test_what_is_past_is_due_now() -> None:
    clock = DatabaseClock()
    clock.learn(T0, asked=10.0, answered=10.0)
    assert clock.seconds_until(T0 - seconds(5), 10.0) == 0.0
    assert clock.seconds_until(T0 + seconds(5), 10.0) == 5.0
