"""Overlap policies, decided without a database."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.overlap import Admission, Candidate, Overlap, admission

A, B, C = Candidate(1), Candidate(2), Candidate(3)
BACK = Candidate(9, backfill=True)
RETRY = Candidate(4, begun=True)


def test_allow_starts_everything() -> None:
    assert admission(Overlap.ALLOW, [A, B], busy=True) == Admission(start=(1, 2))


def test_skip_starts_one_and_skips_the_rest() -> None:
    assert admission(Overlap.SKIP, [A, B, C], busy=False) == Admission(start=(1,), skip=(2, 3))
    assert admission(Overlap.SKIP, [A, B], busy=True) == Admission(skip=(1, 2))


def test_queue_keeps_one_waiting() -> None:
    assert admission(Overlap.QUEUE, [A, B, C], busy=False) == Admission(start=(1,), skip=(3,))
    assert admission(Overlap.QUEUE, [A, B], busy=True) == Admission(skip=(2,))
    assert admission(Overlap.QUEUE, [A], busy=True) == Admission()


def test_replace_keeps_the_newest() -> None:
    assert admission(Overlap.REPLACE, [A, B], busy=False) == Admission(start=(2,), skip=(1,))
    assert admission(Overlap.REPLACE, [A, B], busy=True) == Admission(skip=(1,), replace=True)
    assert admission(Overlap.REPLACE, [RETRY, A], busy=False) == Admission(replace=True)


def test_a_retry_is_the_execution_in_progress() -> None:
    assert admission(Overlap.SKIP, [RETRY, A], busy=False) == Admission(start=(4,), skip=(1,))
    assert admission(Overlap.QUEUE, [RETRY, A], busy=False) == Admission(start=(4,))
    assert admission(Overlap.REPLACE, [RETRY], busy=False) == Admission(start=(4,))


def test_what_was_begun_when_it_could_overlap_goes_on_one_after_the_other() -> None:
    other = Candidate(5, begun=True)
    for policy in (Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE):
        assert admission(policy, [RETRY, other], busy=False) == Admission(start=(4,))
        assert admission(policy, [other], busy=True, running=True) == Admission()
        assert admission(policy, [other], busy=True) == Admission(start=(5,))


def test_backfilled_ticks_wait_and_are_never_skipped() -> None:
    assert admission(Overlap.SKIP, [BACK], busy=True) == Admission()
    assert admission(Overlap.SKIP, [BACK, A], busy=False) == Admission(start=(9,), skip=(1,))
    assert admission(Overlap.REPLACE, [BACK], busy=True) == Admission()
    assert admission(Overlap.REPLACE, [BACK], busy=False) == Admission(start=(9,))


def test_backfilled_ticks_are_waited_for_and_not_replaced() -> None:
    """`replace` leaves them out; a retry of one must go on, or nobody ever would."""
    again = Candidate(8, begun=True, backfill=True)
    assert admission(Overlap.REPLACE, [again, A, B], busy=False) == Admission(
        start=(8,), skip=(1,), replace=True
    )
    assert admission(Overlap.REPLACE, [RETRY, again, A], busy=False).start == (8,)


candidates = st.lists(
    st.builds(Candidate, run_id=st.integers(), begun=st.booleans(), backfill=st.booleans()),
    unique_by=lambda candidate: candidate.run_id,
    max_size=8,
)


@given(
    policy=st.sampled_from(list(Overlap)),
    due=candidates,
    busy=st.booleans(),
    running=st.booleans(),
)
def test_no_policy_but_allow_starts_a_second_one(
    policy: Overlap, due: list[Candidate], busy: bool, running: bool
) -> None:
    busy = busy or running
    decided = admission(policy, due, busy=busy, running=running)
    fresh = {c.run_id for c in due if not c.begun}
    assert not set(decided.start) & set(decided.skip)
    assert set(decided.skip) <= {c.run_id for c in due if not c.backfill and not c.begun}
    if policy is not Overlap.ALLOW:
        started = [run_id for run_id in decided.start if run_id in fresh]
        assert len(started) <= (0 if busy or len(fresh) < len(due) else 1)
        assert len(decided.start) <= (0 if running else 1)
