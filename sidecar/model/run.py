"""One execution: its states, its answers, and what each answer means for it.

    queued ──► running ──► ended (succeeded | failed | skipped)
      ▲          │ ▲
      │          ▼ │ due again
      │        waiting          for a retry, for an app that can take it, or for the next leader
      │
      └── ended, failed: Retry           queued, waiting ──► ended: cancelled, replaced, retired

At least once delivered, at most once completed: every delivery has a higher attempt, and a verdict
is written only for the attempt that is live.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from sidecar.model.retry import UNDELIVERABLE, RetryPolicy, wait_seconds
from sidecar.model.schedule import SkipReason
from sidecar.model.state_schema import StatePolicy

DELIVERIES_MAX = 20
PAYLOAD_BYTES_MAX = 256 * 1024
RESULT_BYTES_MAX = 256 * 1024
STATE_BYTES_MAX = 1024 * 1024
CHECKPOINTS_MAX = 1000
CHECKPOINT_BYTES_MAX = 1024 * 1024
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


class RunKind(StrEnum):
    SINGLETON = "singleton"
    SCHEDULE = "schedule"
    TRIGGER = "trigger"

    @property
    def entity_type(self) -> Literal["singleton", "schedule"]:
        """What owns state and metadata: a trigger acts for its schedule."""
        return "singleton" if self is RunKind.SINGLETON else "schedule"


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RunRef:
    """One attempt of one run; accepted only while it is the live one."""

    run_id: int
    attempt: int
    epoch: int


# Told of each write on behalf of a run that was refused: its attempt, or its term, is over.
Refused = Callable[[RunRef], None]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    step: str
    value: bytes


@dataclass(frozen=True, slots=True)
class ExecutionMetadata:
    """What is remembered of the executions of one singleton or schedule."""

    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    run_count: int = 0
    last_error: str = ""
    missed_count: int = 0
    average_seconds: float | None = None
    last_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a schedule allows each of its runs."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout_seconds: float = 0.0  # 0: none
    deliverable_seconds: float = 86_400.0  # how long an app may not know the handler


@dataclass(frozen=True, slots=True)
class Delivery:
    """A run handed to this runner: one attempt, everything that the app is told."""

    ref: RunRef
    kind: RunKind
    name: str
    group: str
    scheduled_at: datetime
    idempotency_key: str
    payload: bytes = field(default=b"", repr=False)
    content_type: str = "application/json"
    limits: Limits = field(default_factory=Limits)
    failures: int = 0  # before this attempt
    deliveries: int = 1  # this one included
    undelivered: int = 0  # attempts before this one that never reached a handler
    queued_seconds: float = 0.0  # age of this life when it was handed out
    late_seconds: float = 0.0  # from when it was due to when it was handed out
    metadata: ExecutionMetadata = field(default_factory=ExecutionMetadata)
    overlap: str = "allow"
    ping_url: str = field(default="", repr=False)
    state_version: int = 1
    state_ttl_seconds: float = 0.0
    state_policy: StatePolicy | None = None  # None: what the config says of the singleton
    has_state: bool = True  # False: nothing was stored yet when it was handed out
    missed_total: int = 0  # ticks missed so far: the app was told those it did not know of yet
    problem: str = ""  # its row is damaged: it is not delivered, it has failed

    @property
    def state_key(self) -> str:
        return f"{self.kind.entity_type}-state:{self.name}"


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: bytes = b""
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    code: str = ""
    retryable: bool = False
    retry_after_seconds: float | None = None
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """The app answered `skipped`."""

    reason: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The call ended with a gRPC status; not `delivered`: it surely never reached the app."""

    code: str
    message: str
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class Stopped:
    """We cancelled the call because the run was cancelled or replaced."""

    reason: SkipReason
    note: str = ""


Answer = Succeeded | Failed | Declined | CallFailed | Stopped


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

    @property
    def run_state(self) -> RunState:
        return RunState.WAITING if self.outcome is None else RunState.ENDED


def idempotency_key(cluster: str, kind: RunKind, name: str, run_id: int, tick: datetime) -> str:
    """The same for every attempt of a run, and for no other run; `tick` in UTC."""
    if kind is RunKind.SCHEDULE:
        return f"{cluster}/{name}/{tick.isoformat().removesuffix('+00:00')}Z"
    return f"{cluster}/{name}/run-{run_id}"


def answers_for_app(answer: Answer) -> bool | None:
    """Does it show the circuit breaker an app that works? None: it shows nothing."""
    if isinstance(answer, Stopped):
        return None
    return not isinstance(answer, CallFailed) or answer.code in _FINAL | _UNKNOWN_HANDLER


def verdict(run: Delivery, answer: Answer, *, age_seconds: float, chance: float) -> Verdict:
    """What becomes of the run; `age_seconds` of this life, `chance` in [0, 1) spreads the waits."""
    match answer:
        case Succeeded(result, state):
            return _succeeded(result, state)
        case Declined(reason):
            cause = cut(reason, ERROR_BYTES_MAX)
            return Verdict(Outcome.SKIPPED, SkipReason.APP_DECLINED, cause=cause)
        case Stopped(reason, note):
            return Verdict(Outcome.SKIPPED, reason, cause=note or "cancelled")
        case Failed():
            return _failed(run, answer, chance)
        case CallFailed():
            return _call_failed(run, answer, age_seconds, chance)


def _succeeded(result: bytes, state: bytes | None) -> Verdict:
    for size, limit, what in (
        (len(result), RESULT_BYTES_MAX, "result"),
        (len(state or b""), STATE_BYTES_MAX, "state"),
    ):
        if size > limit:
            error = f"the app returned a {what} of {size} bytes, more than {limit}"
            return Verdict(Outcome.FAILED, error=error, error_code="TOO_LARGE", cause=error)
    return Verdict(Outcome.SUCCEEDED, result=result, state=state, cause="succeeded")


def _failed(run: Delivery, answer: Failed, chance: float) -> Verdict:
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


def _call_failed(run: Delivery, answer: CallFailed, age_seconds: float, chance: float) -> Verdict:
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


def _undeliverable(run: Delivery, ended: Verdict, chance: float, *, delivered: bool) -> Verdict:
    if delivered and run.deliveries >= DELIVERIES_MAX:
        return _given_up(ended)
    wait = wait_seconds(UNDELIVERABLE, run.undelivered + run.deliveries, chance)
    return _waiting(ended, wait, used_retry=False, delivered=delivered)


def _retried(
    run: Delivery, ended: Verdict, chance: float, *, at_least_seconds: float = 0.0
) -> Verdict:
    if run.failures + 1 >= run.limits.retry.attempts:
        return ended
    if run.deliveries >= DELIVERIES_MAX:
        return _given_up(ended)
    wait = max(wait_seconds(run.limits.retry, run.failures + 1, chance), at_least_seconds)
    return _waiting(ended, wait, used_retry=True, delivered=True)


def _given_up(ended: Verdict) -> Verdict:
    cause = f"given up after {DELIVERIES_MAX} deliveries: {ended.error}"
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
