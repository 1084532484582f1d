"""What becomes of a run after an attempt: an outcome, or when it is due again.

The app's answer, the run's limits and a random number go in; one `Verdict` comes out. No I/O.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from sidecar.model.job import FOLLOW_UPS_MAX, JobSpec
from sidecar.model.retry import UNDELIVERABLE, wait_seconds
from sidecar.model.run import (
    Answer,
    CallFailed,
    Declined,
    Failed,
    Outcome,
    Run,
    RunKind,
    RunState,
    Snoozed,
    Stopped,
    Succeeded,
)
from sidecar.model.schedule import SkipReason

DELIVERIES_MAX = 20
RESULT_BYTES_MAX = 256 * 1024
STATE_BYTES_MAX = 1024 * 1024
ERROR_BYTES_MAX = 4096
CODE_BYTES_MAX = 255

_UNKNOWN_HANDLER = frozenset({"UNIMPLEMENTED", "NOT_FOUND"})
_FINAL = frozenset(
    {
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "OUT_OF_RANGE",
        "DATA_LOSS",
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is written for an attempt that is over: an outcome, or when it is due again."""

    outcome: Outcome | None = None  # None: it waits
    reason: SkipReason | None = None
    wait_seconds: float = 0.0
    used_retry: bool = False
    delivered: bool = True  # counts towards DELIVERIES_MAX
    result: bytes = field(default=b"", repr=False)
    state: bytes | None = field(default=None, repr=False)
    error: str = ""
    error_code: str = ""
    cause: str = ""
    due_at: datetime | None = None  # of a run that waits, instead of `wait_seconds`
    jobs: tuple[JobSpec, ...] = ()  # submitted with the outcome

    @property
    def run_state(self) -> RunState:
        return RunState.WAITING if self.outcome is None else RunState.ENDED


def app_works(answer: Answer) -> bool | None:
    """What the answer tells the circuit breaker about the app; None: nothing."""
    if isinstance(answer, Stopped):
        return None
    return not isinstance(answer, CallFailed) or answer.code in _FINAL | _UNKNOWN_HANDLER


def verdict(run: Run, answer: Answer, *, age_seconds: float, chance: float) -> Verdict:
    """What becomes of the run; `age_seconds` since it was queued, `chance` in [0, 1) is jitter.

    A singleton's run never waits for another attempt: the next one is a run of its own.
    """
    decided = _verdict(run, answer, age_seconds, chance)
    if run.kind is RunKind.SINGLETON and decided.outcome is None:
        return replace(decided, outcome=Outcome.FAILED, wait_seconds=0.0)
    return decided


def _verdict(run: Run, answer: Answer, age_seconds: float, chance: float) -> Verdict:
    match answer:
        case Succeeded():
            return _succeeded(answer)
        case Snoozed():
            return _snoozed(run, answer)
        case Declined(reason):
            cause = cut(reason, ERROR_BYTES_MAX)
            return Verdict(Outcome.SKIPPED, SkipReason.APP_DECLINED, cause=cause)
        case Stopped(reason, note):
            return Verdict(Outcome.SKIPPED, reason, cause=note or "cancelled")
        case Failed():
            return _failed(run, answer, chance)
        case CallFailed():
            return _call_failed(run, answer, age_seconds, chance)


def _succeeded(answer: Succeeded) -> Verdict:
    for size, limit, what in (
        (len(answer.result), RESULT_BYTES_MAX, "a result of {} bytes"),
        (len(answer.state or b""), STATE_BYTES_MAX, "a state of {} bytes"),
        (len(answer.jobs), FOLLOW_UPS_MAX, "{} jobs"),
    ):
        if size > limit:
            return _too_large(f"the app returned {what.format(size)}, more than {limit}")
    return Verdict(
        Outcome.SUCCEEDED,
        result=answer.result,
        state=answer.state,
        cause="succeeded",
        jobs=answer.jobs,
    )


def _too_large(error: str) -> Verdict:
    return Verdict(Outcome.FAILED, error=error, error_code="TOO_LARGE", cause=error)


def _snoozed(run: Run, answer: Snoozed) -> Verdict:
    if run.kind is not RunKind.JOB:
        error = "the app answered `snoozed`, which only a job may"
        return Verdict(Outcome.FAILED, error=error, error_code="INVALID_ANSWER", cause=error)
    if len(answer.state or b"") > STATE_BYTES_MAX:
        size = len(answer.state or b"")
        return _too_large(f"the app returned a state of {size} bytes, more than {STATE_BYTES_MAX}")
    return Verdict(
        wait_seconds=max(0.0, answer.after_seconds),
        due_at=answer.at,
        delivered=False,  # any number of times
        state=answer.state,
        cause="snoozed",
    )


def _failed(run: Run, answer: Failed, chance: float) -> Verdict:
    state, message = answer.state, answer.message
    if state is not None and len(state) > STATE_BYTES_MAX:
        message = f"{message} (its state of {len(state)} bytes is too large)"
        state = None
    error = cut(message, ERROR_BYTES_MAX) or "failed"
    ended = Verdict(
        Outcome.FAILED,
        error=error,
        error_code=cut(answer.code, CODE_BYTES_MAX),
        state=state,
        used_retry=True,
        cause=error,
    )
    if not answer.retryable:
        return ended
    return _retried(run, ended, chance, at_least_seconds=answer.retry_after_seconds or 0.0)


def _call_failed(run: Run, answer: CallFailed, age_seconds: float, chance: float) -> Verdict:
    error = cut(f"{answer.code}: {answer.message}", ERROR_BYTES_MAX)
    ended = Verdict(
        Outcome.FAILED, error=error, error_code=answer.code, cause=error, used_retry=True
    )
    if answer.code in _FINAL:
        return ended
    if answer.code == "UNAVAILABLE":
        return _undeliverable(run, ended, chance, delivered=answer.delivered)
    if answer.code in _UNKNOWN_HANDLER:
        if age_seconds > run.limits.deliverable_seconds:
            return ended
        return _undeliverable(run, ended, chance, delivered=False)
    return _retried(run, ended, chance)


def _undeliverable(run: Run, ended: Verdict, chance: float, *, delivered: bool) -> Verdict:
    if delivered and run.deliveries >= run.limits.deliveries_max:
        return _given_up(run, ended)
    wait = wait_seconds(UNDELIVERABLE, run.undelivered + run.deliveries, chance)
    return _waiting(ended, wait, used_retry=False, delivered=delivered)


def _retried(run: Run, ended: Verdict, chance: float, *, at_least_seconds: float = 0.0) -> Verdict:
    if run.failures + 1 >= run.limits.retry.attempts:
        return ended
    if run.deliveries >= run.limits.deliveries_max:
        return _given_up(run, ended)
    wait = max(wait_seconds(run.limits.retry, run.failures + 1, chance), at_least_seconds)
    return _waiting(ended, wait, used_retry=True, delivered=True)


def _given_up(run: Run, ended: Verdict) -> Verdict:
    cause = f"given up after {run.limits.deliveries_max} deliveries: {ended.error}"
    return Verdict(
        Outcome.FAILED,
        error=cut(cause, ERROR_BYTES_MAX),
        error_code=ended.error_code,
        state=ended.state,
        cause=cause,
    )


def _waiting(ended: Verdict, wait: float, *, used_retry: bool, delivered: bool) -> Verdict:
    return Verdict(
        wait_seconds=wait,
        used_retry=used_retry,
        delivered=delivered,
        error=ended.error,
        error_code=ended.error_code,
        state=ended.state,
        cause=ended.cause,
    )


def cut(text: str, bytes_max: int) -> str:
    """The text, valid for Postgres (no NUL), at most `bytes_max` long in UTF-8."""
    clean = text.replace("\0", "�")
    raw = clean.encode("utf-8", "replace")
    return raw[:bytes_max].decode("utf-8", "ignore")
