"""What an answer of the app means for its run."""

from datetime import UTC, datetime

import pytest

from sidecar.model.definitions import Retry
from sidecar.model.run import (
    Answer,
    CallFailed,
    Declined,
    Failed,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    RunState,
    Stopped,
    Succeeded,
    idempotency_key,
)
from sidecar.model.schedule import SkipReason
from sidecar.model.verdict import (
    DELIVERIES_MAX,
    RESULT_BYTES_MAX,
    STATE_BYTES_MAX,
    Verdict,
    app_works,
    cut,
    verdict,
)

TICK = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
FINAL = [
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "OUT_OF_RANGE",
    "DATA_LOSS",
]
RETRYABLE = [
    "UNKNOWN",
    "INTERNAL",
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "ABORTED",
    "RESOURCE_EXHAUSTED",
    "ALREADY_EXISTS",
]


def a_run(**changes: object) -> Run:
    values: dict[str, object] = {
        "ref": RunRef(1, 1, 7),
        "kind": RunKind.SCHEDULE,
        "name": "n",
        "group": "default",
        "scheduled_at": TICK,
        "idempotency_key": "k",
        "limits": Limits(Retry(3, 1.0, 60.0), deliverable_seconds=100.0),
    }
    return Run(**(values | changes))  # type: ignore[arg-type]


def decided(answer: Answer, run: Run | None = None, age_seconds: float = 0.0) -> Verdict:
    return verdict(run or a_run(), answer, age_seconds=age_seconds, chance=0.5)


def test_a_success_keeps_result_and_state() -> None:
    found = decided(Succeeded(b"r", b"s"))
    assert (found.outcome, found.result, found.state) == (Outcome.SUCCEEDED, b"r", b"s")


def test_a_decline_is_a_skip() -> None:
    found = decided(Declined("not today"))
    assert (found.outcome, found.reason) == (Outcome.SKIPPED, SkipReason.APP_DECLINED)
    assert found.cause == "not today"


@pytest.mark.parametrize("reason", [SkipReason.OPERATOR, SkipReason.OVERLAP])
def test_a_stop_is_a_skip(reason: SkipReason) -> None:
    assert decided(Stopped(reason)).reason is reason


def test_a_failure_is_final_unless_it_says_otherwise() -> None:
    assert decided(Failed("no")).outcome is Outcome.FAILED
    again = decided(Failed("no", code="E1", retryable=True, state=b"s"))
    assert (again.run_state, again.wait_seconds, again.used_retry) == (RunState.WAITING, 1.0, True)
    assert (again.error, again.error_code, again.state) == ("no", "E1", b"s")


def test_retry_after_is_a_lower_bound() -> None:
    assert decided(Failed("no", retryable=True, retry_after_seconds=30.0)).wait_seconds == 30.0
    assert decided(Failed("no", retryable=True, retry_after_seconds=0.0)).wait_seconds == 1.0


def test_attempts_count_the_first_one() -> None:
    assert decided(CallFailed("INTERNAL", ""), a_run(failures=1)).outcome is None
    assert decided(CallFailed("INTERNAL", ""), a_run(failures=2)).outcome is Outcome.FAILED


@pytest.mark.parametrize("code", FINAL)
def test_final_codes_use_no_retry(code: str) -> None:
    assert decided(CallFailed(code, "no")).outcome is Outcome.FAILED


@pytest.mark.parametrize("code", RETRYABLE)
def test_every_other_code_is_retried(code: str) -> None:
    found = decided(CallFailed(code, "no"))
    assert (found.outcome, found.used_retry) == (None, True)


def test_an_app_out_of_reach_uses_up_nothing() -> None:
    """However often: the run waits until the app answers."""
    run = a_run(failures=2, deliveries=19, undelivered=10_000)
    found = decided(CallFailed("UNAVAILABLE", "refused", delivered=False), run)
    assert (found.outcome, found.used_retry, found.delivered) == (None, False, False)
    assert found.wait_seconds <= 10.0


def test_a_connection_that_broke_counts_as_a_delivery_but_not_as_a_retry() -> None:
    found = decided(CallFailed("UNAVAILABLE", "reset"), a_run(failures=2))
    assert (found.outcome, found.used_retry, found.delivered) == (None, False, True)


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "NOT_FOUND"])
def test_an_unknown_handler_waits_until_it_is_too_old(code: str) -> None:
    young = decided(CallFailed(code, ""), age_seconds=99.0)
    assert (young.outcome, young.used_retry, young.delivered) == (None, False, False)
    assert decided(CallFailed(code, ""), age_seconds=101.0).outcome is Outcome.FAILED


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL"])
def test_after_twenty_deliveries_it_has_failed(code: str) -> None:
    run = a_run(deliveries=DELIVERIES_MAX, limits=Limits(Retry(attempts=100)))
    found = decided(CallFailed(code, "again"), run)
    assert found.outcome is Outcome.FAILED
    assert "given up after 20 deliveries" in found.error


def test_an_answer_too_large_fails_and_keeps_nothing() -> None:
    for answer in (
        Succeeded(b"x" * (RESULT_BYTES_MAX + 1)),
        Succeeded(b"", b"x" * (STATE_BYTES_MAX + 1)),
    ):
        found = decided(answer)
        assert (found.outcome, found.state, found.result) == (Outcome.FAILED, None, b"")
    found = decided(Failed("no", state=b"x" * (STATE_BYTES_MAX + 1)))
    assert found.state is None
    assert "too large" in found.error


def test_texts_are_cut_and_fit_for_postgres() -> None:
    assert cut("a\0b", 10) == "a�b"
    assert cut("é" * 10, 5) == "éé"
    assert len(decided(Failed("x" * 10_000)).error) == 4096


def test_the_breaker_learns_from_calls_that_failed_only() -> None:
    assert app_works(Failed("no")) is True
    assert app_works(CallFailed("NOT_FOUND", "")) is True
    assert app_works(CallFailed("UNAVAILABLE", "")) is False
    assert app_works(CallFailed("UNKNOWN", "")) is False
    assert app_works(Stopped(SkipReason.OPERATOR)) is None


def test_the_key_of_a_tick_is_the_tick() -> None:
    """G5: the same for every delivery, whoever makes it."""
    assert idempotency_key("c", RunKind.SCHEDULE, "n", 1, TICK) == "c/n/2027-01-02T03:04:05Z"
    fraction = TICK.replace(microsecond=100_000)
    assert (
        idempotency_key("c", RunKind.SCHEDULE, "n", 1, fraction)
        == "c/n/2027-01-02T03:04:05.100000Z"
    )
    assert idempotency_key("c", RunKind.TRIGGER, "n", 5, TICK) == "c/n/run-5"
