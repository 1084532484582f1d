"""What a handler says by returning or raising, and how it is told to the sidecar.

    returns None, JSON or bytes    succeeded, with that result
    returns Result(result, state)  succeeded; the owned state is replaced in the same transaction,
                                   and `jobs` are submitted in it
    raises Skip(reason)            the app declines this run: no retry, no error
    raises Retry(message, after)   failed; try again, no earlier than `after`
    raises Fail(message)           failed for good
    raises Snooze(after or until)  a job only: deliver it again later; uses no retry
    raises anything else           failed; may be tried again

Type and message of an unexpected exception go into the record of the run, unless the app hides
errors: then only the type leaves the process, and the rest is in the app's own log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from baton._durations import Span, span
from baton._specs import JobOptions, JobSpec
from baton._values import to_bytes
from baton.v1 import callback_pb2 as pb

MESSAGE_BYTES_MAX = 4096
_CODE_BYTES_MAX = 255


@dataclass(frozen=True, slots=True)
class Result:
    """A success with a result, a new owned state (None leaves it as it is) and follow-up jobs."""

    result: Any = None
    state: Any = None
    jobs: Sequence[JobSpec] = ()


class Skip(Exception):
    """The app declines this run."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(Exception):
    """This attempt failed; another may do better, `after` seconds from now at the earliest."""

    def __init__(
        self,
        message: str = "try again",
        *,
        after: Span | None = None,
        code: str = "",
        state: Any = None,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.state = message, code, state
        self.after = span(after)


class Fail(Exception):
    """This run failed for good."""

    def __init__(self, message: str, *, code: str = "", state: Any = None) -> None:
        super().__init__(message)
        self.message, self.code, self.state = message, code, state


class Snooze(Exception):
    """This job is delivered again later, and frees its place meanwhile; it uses no retry."""

    def __init__(
        self, *, after: Span | None = None, until: datetime | None = None, state: Any = None
    ) -> None:
        if (after is None) == (until is None):
            raise ValueError("Snooze takes either after or until")
        super().__init__(f"until {until}" if until else f"for {after}")
        self.after, self.until, self.state = span(after), until, state


INTENDED = (Skip, Retry, Fail, Snooze)  # what a handler raises on purpose


def success(returned: Any, defaults: Mapping[str, JobOptions]) -> pb.ExecuteResponse:
    """The answer for what a handler returned; `defaults` are those of its follow-up jobs."""
    outcome = returned if isinstance(returned, Result) else Result(returned)
    succeeded = pb.Succeeded(
        result=b"" if outcome.result is None else to_bytes(outcome.result),
        state=_state(outcome.state),
    )
    for job in outcome.jobs:
        succeeded.jobs.append(job.completed(defaults.get(job.name)).message())
    return pb.ExecuteResponse(succeeded=succeeded)


def failure(error: BaseException, *, hide: bool = False) -> pb.ExecuteResponse:
    """The answer for what a handler raised."""
    if isinstance(error, Skip):
        return pb.ExecuteResponse(skipped=pb.Skipped(reason=_text(error.reason)))
    if isinstance(error, Snooze):
        return pb.ExecuteResponse(snoozed=_snoozed(error))
    if not isinstance(error, (Retry, Fail)):
        return _failed(_unexpected(error, hide=hide))
    failed = pb.Failed(
        message=_text(error.message),
        code=_text(error.code, _CODE_BYTES_MAX),
        retryable=isinstance(error, Retry),
        retry_after=error.after if isinstance(error, Retry) else None,
        state=_state(error.state),
    )
    return _failed(failed)


def too_large(size: int, limit: int) -> pb.ExecuteResponse:
    """The answer in place of one that the sidecar would not read."""
    message = f"the answer has {size} bytes, more than the {limit} that the sidecar reads"
    return _failed(pb.Failed(message=message, code="TOO_LARGE"))


def _unexpected(error: BaseException, *, hide: bool) -> pb.Failed:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # an exception that cannot even be printed
        text = ""
    told = f"unhandled {name}" if hide else f"{name}: {text}" if text else name
    return pb.Failed(message=_text(told), code=_text(name, _CODE_BYTES_MAX), retryable=True)


def _snoozed(error: Snooze) -> pb.Snoozed:
    snoozed = pb.Snoozed(state=_state(error.state))
    if error.until is not None:
        snoozed.at.FromDatetime(error.until)
    else:
        snoozed.after.FromTimedelta(error.after or timedelta())
    return snoozed


def _failed(failed: pb.Failed) -> pb.ExecuteResponse:
    return pb.ExecuteResponse(failed=failed)


def _state(state: Any) -> bytes | None:
    return None if state is None else to_bytes(state)


def _text(text: object, limit: int = MESSAGE_BYTES_MAX) -> str:
    """What can be sent: a file name, for one, may hold what UTF-8 cannot say."""
    if text is None:
        return ""
    return str(text).encode(errors="replace")[:limit].decode(errors="ignore")
