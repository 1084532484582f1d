"""The rules of jobs: moves, weights, limits, leases and what a rescuer decides."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sidecar.model.definitions import Retry
from sidecar.model.job import (
    FOLLOW_UPS_MAX,
    MOVES,
    JobContext,
    JobSpec,
    JobState,
    Priority,
    may_move,
)
from sidecar.model.queue_limits import QueueLimits, Rates
from sidecar.model.run import (
    CallFailed,
    Failed,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    Snoozed,
    Succeeded,
)
from sidecar.model.verdict import STATE_BYTES_MAX, Verdict, verdict
from sidecar.model.weights import Shares, reserved_slots
from sidecar.model.worker_lease import (
    MARGIN_SECONDS,
    SILENT_SECONDS,
    TRUST_SECONDS,
    Beat,
    LeaseTrust,
    Silence,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Run(
    RunRef(1, 1, 7),
    RunKind.JOB,
    "work",
    "",
    NOW,
    "key",
    job=JobContext("default", Priority.NORMAL, key="k"),
)


def decide(run: Run, answer: object) -> Verdict:
    return verdict(run, answer, age_seconds=0.0, chance=0.5)  # type: ignore[arg-type]


# ── moves ───────────────────────────────────────────────────────────────────────────────────────


def test_an_ended_job_stays_as_it_is() -> None:
    assert not MOVES[JobState.ENDED]
    assert not may_move(JobState.ENDED, JobState.READY)


def test_only_a_running_job_becomes_a_dead_letter() -> None:
    assert [state for state in JobState if may_move(state, JobState.DEAD)] == [JobState.RUNNING]


def test_a_parked_job_does_not_start_before_it_is_admitted() -> None:
    assert not may_move(JobState.PARKED, JobState.RUNNING)


# ── verdicts ────────────────────────────────────────────────────────────────────────────────────


def test_a_job_owns_the_state_of_its_name_and_key() -> None:
    assert JOB.state_key == "job-state:work/k"
    assert (JOB.kind.entity_type, JOB.entity_id) == ("job", "k")


def test_a_snoozed_job_waits_and_uses_nothing_up() -> None:
    decided = decide(JOB, Snoozed(after_seconds=9.0, state=b"1"))
    assert (decided.outcome, decided.wait_seconds, decided.state) == (None, 9.0, b"1")
    assert (decided.used_retry, decided.delivered) == (False, False)
    assert decide(JOB, Snoozed(at=NOW)).due_at == NOW


def test_only_a_job_may_snooze() -> None:
    schedule = replace(JOB, kind=RunKind.SCHEDULE, job=None)
    assert decide(schedule, Snoozed()).outcome is Outcome.FAILED


def test_a_snooze_with_too_much_state_fails() -> None:
    assert decide(JOB, Snoozed(state=b"x" * (STATE_BYTES_MAX + 1))).error_code == "TOO_LARGE"


def test_follow_ups_are_limited() -> None:
    jobs = (JobSpec("work"),) * FOLLOW_UPS_MAX
    assert decide(JOB, Succeeded(jobs=jobs)).jobs == jobs
    assert decide(JOB, Succeeded(jobs=(*jobs, JobSpec("work")))).error_code == "TOO_LARGE"


def test_a_job_may_have_more_attempts_than_a_run_has_deliveries() -> None:
    limits = Limits(Retry(attempts=100), deliveries_max=120)
    late = replace(JOB, limits=limits, failures=50, deliveries=51)
    assert decide(late, Failed("no", retryable=True)).outcome is None
    lost = replace(JOB, limits=limits, deliveries=120)
    assert "after 120 deliveries" in decide(lost, CallFailed("UNAVAILABLE", "gone")).error


# ── weights ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("free", [1, 3, 7, 10, 64, 500])
def test_starts_follow_the_weights_whatever_the_size_of_a_claim(free: int) -> None:
    """G15"""
    shares, counts = Shares(), Counter[int]()
    for _ in range(1000):
        for place, count in enumerate(shares.divided(free)):
            counts[place] += count
    total = 1000 * free
    assert sum(counts.values()) == total
    for place, weight in enumerate((4, 3, 2, 1)):
        assert counts[place] == pytest.approx(total * weight / 10, abs=10)


def test_an_empty_priority_leaves_its_share_to_the_others() -> None:
    shares = Shares()
    assert shares.divided(9, empty=frozenset({3})) == [4, 3, 2, 0]
    assert shares.divided(6, empty=frozenset({0, 1, 2})) == [0, 0, 0, 6]
    assert shares.divided(6, empty=frozenset({0, 1, 2, 3})) == [0, 0, 0, 0]


def test_an_empty_priority_saves_nothing_up() -> None:
    shares = Shares()
    for _ in range(100):
        asked = shares.divided(5)
        assert 3 in shares.claimed(asked, [*asked[:3], 0]) or asked[3] == 0
    counts = Counter[int]()
    for _ in range(10):
        for place, count in enumerate(shares.divided(10)):
            counts[place] += count
    assert counts[3] == pytest.approx(10, abs=2)


def test_reserved_slots_go_to_critical_jobs_alone() -> None:
    assert Shares().divided(5, critical_only=5) == [5, 0, 0, 0]
    assert sum(Shares().divided(10, critical_only=4)[1:]) <= 6
    assert Shares().divided(5, critical_only=5, empty=frozenset({0})) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("capacity", "reserve", "slots"), [(64, 0.1, 7), (1, 0.1, 0), (2, 0.9, 1), (10, 0.0, 0)]
)
def test_slots_for_critical_jobs(capacity: int, reserve: float, slots: int) -> None:
    assert reserved_slots(capacity, reserve) == slots


# ── limits ──────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_of_the_cluster() -> None:
    assert Rates().room(QueueLimits("q", cluster_max_running=5, admitted=3), 0.0) == 2
    assert Rates().room(QueueLimits("q", cluster_max_running=5, admitted=9), 0.0) == 0


def test_a_rate_begins_empty_and_never_exceeds_one_second() -> None:
    rates, limits = Rates(), QueueLimits("q", rate=10.0)
    assert rates.room(limits, 0.0) == 0
    assert rates.room(limits, 0.35) == 3
    rates.admitted("q", 3)
    assert rates.room(limits, 0.45) == 1
    assert rates.room(limits, 100.0) == 10


def test_a_slow_rate_allows_one_job_at_its_time() -> None:
    rates, limits = Rates(), QueueLimits("q", rate=0.1)
    assert rates.next_token_seconds(limits, 0.0) == pytest.approx(10.0)
    assert rates.room(limits, 9.9) == 0
    assert rates.room(limits, 10.1) == 1


# ── the lease ───────────────────────────────────────────────────────────────────────────────────


def test_trust_counts_from_when_a_beat_was_sent() -> None:
    trust = LeaseTrust(sent_at=10.0)
    assert trust.trusted_seconds(10.0) == pytest.approx(TRUST_SECONDS - MARGIN_SECONDS)
    trust.acknowledged(11.0)
    assert trust.trusted_seconds(12.0) == pytest.approx(TRUST_SECONDS - MARGIN_SECONDS - 1)
    trust.acknowledged(10.5)  # an answer that was overtaken
    assert trust.trusted_seconds(12.0) == pytest.approx(TRUST_SECONDS - MARGIN_SECONDS - 1)


def test_a_lease_that_is_over_is_not_trusted() -> None:
    trust = LeaseTrust(sent_at=10.0)
    trust.over = True
    trust.acknowledged(10.1)
    assert trust.trusted_seconds(10.1) == 0.0


def test_a_worker_is_silent_only_after_its_trust_has_ended() -> None:
    """G14: the trust counts from the send time, the silence from the receipt, which is later."""
    assert SILENT_SECONDS >= 1.05 * TRUST_SECONDS
    silence = Silence()
    assert not silence.silent([Beat(1, 5)], 100.0)
    assert not silence.silent([Beat(1, 5)], 100.0 + SILENT_SECONDS - 0.01)
    assert silence.silent([Beat(1, 5)], 100.0 + SILENT_SECONDS) == [Beat(1, 5)]


def test_a_worker_that_beats_is_not_silent() -> None:
    silence = Silence()
    for second in range(20):
        assert not silence.silent([Beat(1, second)], float(second))


def test_a_worker_that_was_never_seen_before_gets_its_time() -> None:
    silence = Silence()
    silence.silent([], 0.0)
    assert not silence.silent([Beat(1, 5)], 50.0)


def test_a_worker_that_was_not_watched_meanwhile_gets_its_time() -> None:
    silence = Silence()
    silence.silent([Beat(1, 5)], 0.0)
    silence.silent([], 1.0)  # another neighbour was closer
    assert not silence.silent([Beat(1, 5)], 50.0)


def test_a_fenced_worker_is_cleared_at_once() -> None:
    assert Silence().silent([Beat(1, 5, fenced=True)], 0.0)
