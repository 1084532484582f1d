"""The rules of terms and trust, on a clock that the test turns."""

from __future__ import annotations

from datetime import timedelta

import pytest
from baton._terms import Term, Terms, trust_end
from baton.v1.callback_pb2 import OnBecomeLeaderRequest
from baton.v1.leadership_pb2 import Leader


class Clock:
    """Shows what the test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def term(clock: Clock) -> Term:
    """Term 7, trusted until 103."""
    return Terms(clock).open("default", 7, 103.0)


def renewal(seconds: float, epoch: int = 7, *, is_leader: bool = True) -> Leader:
    trusted_for = timedelta(seconds=seconds)
    return Leader(group="default", epoch=epoch, is_leader=is_leader, trusted_for=trusted_for)


def test_trust_ends_at_its_time_and_not_later(term: Term, clock: Clock):
    """G1: at the instant of its end, trust is over."""
    clock.now = 102.999
    assert term.leads()
    clock.now = 103.0
    assert not term.leads()
    term.hear(renewal(3.0), read_at=clock.now)
    assert term.leads()


def test_only_the_newest_message_counts_even_where_it_ends_sooner(term: Term, clock: Clock):
    """G1: the sidecar may take trust back."""
    term.hear(renewal(3.0), read_at=100.0)
    term.hear(renewal(0.5), read_at=100.0)
    clock.now = 100.6
    assert not term.leads()


@pytest.mark.parametrize("message", [renewal(3.0, is_leader=False), renewal(3.0, epoch=8)])
def test_a_message_of_another_leader_or_term_ends_trust(term: Term, message: Leader):
    """G1: at once, not only when the time given before has passed."""
    term.hear(message, read_at=100.0)
    assert not term.leads()


def test_a_closed_term_is_never_trusted_again(clock: Clock):
    """G1: a late renewal does not bring a lost term back."""
    terms = Terms(clock)
    term = terms.open("default", 7, 103.0)
    assert terms.close("default", 7) is term
    term.hear(renewal(3.0), read_at=100.0)
    assert not term.leads()
    assert terms.get("default") is None


def test_the_earlier_end_counts():
    """G1: `trusted_for` from the reading, or the boot time reading, whichever is first."""
    request = OnBecomeLeaderRequest(trusted_for=timedelta(seconds=3))
    assert trust_end(request, read_at=100.0) == 103.0
    request.trusted_until_boottime.FromMilliseconds(101_500)
    assert trust_end(request, read_at=100.0) == 101.5
    request.trusted_until_boottime.FromMilliseconds(104_000)
    assert trust_end(request, read_at=100.0) == 103.0
    assert trust_end(OnBecomeLeaderRequest(), read_at=100.0) is None


def test_groups_are_independent_and_epochs_only_rise(clock: Clock):
    """G2: what one group lost says nothing about another; nothing old is opened."""
    terms = Terms(clock)
    terms.close("default", 9)
    assert not terms.is_news("default", 9)
    assert terms.is_news("default", 10)
    assert terms.is_news("reports", 1)
    assert not terms.is_news("reports", 0)
    with pytest.raises(ValueError, match="cannot be opened"):
        terms.open("default", 9, None)
