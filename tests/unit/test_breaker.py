"""The circuit breaker: closed, open, half open with one probe."""

from math import inf

from sidecar.model.breaker import Breaker


def opened(failures: int = 3, at: float = 100.0) -> Breaker:
    breaker = Breaker(failures_max=failures, open_seconds=10.0)
    for _ in range(failures):
        breaker.failed(at, probe=breaker.began(at))
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breaker = Breaker(failures_max=3, open_seconds=10.0)
    for outcome in ("failed", "failed", "ok", "failed", "failed"):
        probe = breaker.began(0.0)
        breaker.succeeded() if outcome == "ok" else breaker.failed(0.0, probe=probe)
    assert breaker.room(0.0) == inf
    breaker.failed(0.0, probe=breaker.began(0.0))
    assert (breaker.is_open, breaker.room(0.0)) == (True, 0)


def test_half_open_lets_one_probe_through_at_a_time() -> None:
    breaker = opened()
    assert breaker.room(109.9) == 0
    assert breaker.room(110.0) == 1
    assert breaker.began(110.0)
    assert breaker.room(111.0) == 0


def test_a_probe_that_succeeds_closes_it_one_that_fails_opens_it_again() -> None:
    breaker = opened()
    breaker.failed(110.0, probe=breaker.began(110.0))
    assert (breaker.room(119.0), breaker.room(120.0)) == (0, 1)
    assert breaker.began(120.0)
    breaker.succeeded()
    assert breaker.room(120.0) == inf


def test_an_abandoned_probe_makes_room_for_another() -> None:
    breaker = opened()
    breaker.abandoned(probe=breaker.began(110.0))
    assert breaker.room(110.0) == 1


def test_a_long_probe_keeps_no_other_from_being_tried() -> None:
    """It may be a run of hours, of a healthy app: another one a time decides."""
    breaker = opened()
    assert breaker.began(110.0)  # takes its time
    assert (breaker.room(119.9), breaker.room(120.0)) == (0, 1)
    quick = breaker.began(120.0)
    assert (breaker.room(129.9), breaker.room(130.0)) == (0, 1)
    breaker.failed(121.0, probe=quick)  # the app is broken: no more than one in 10 s
    assert (breaker.room(130.9), breaker.room(131.0)) == (0, 1)
    assert breaker.began(131.0)
    breaker.succeeded()
    assert breaker.room(131.0) == inf


def test_a_call_from_before_is_not_taken_for_the_probe() -> None:
    breaker = Breaker(failures_max=1, open_seconds=10.0)
    straggler = breaker.began(90.0)
    breaker.failed(100.0, probe=breaker.began(100.0))
    assert breaker.began(112.0)  # the probe
    breaker.failed(115.0, probe=straggler)
    breaker.abandoned(probe=straggler)
    assert breaker.room(115.0) == 0
