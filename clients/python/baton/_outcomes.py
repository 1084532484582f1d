"""What a handler says by returning or raising, and how it is told to the sidecar.

    returns None, JSON or bytes    succeeded, with that result
    returns Result(result, state)  succeeded; the owned state is replaced in the same transaction
    raises Skip(reason)            the app declines this run: no retry, no error
    raises Retry(message, after)   failed; try again, no earlier than `after`
    raises Fail(message)           failed for good
    raises anything else           failed; may be tried again

The text of an unexpected exception may hold secrets, so only its type is told; the whole of it is
in the app's own log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from baton._values import to_bytes
from baton.v1 import callback_pb2 as pb


@dataclass(frozen=True, slots=True)
class Result:
    """A success with a result, and a new owned state; `state` None leaves it as it is."""

    result: Any = None
    state: Any = None


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
        after: float | timedelta | None = None,
        code: str = "",
        state: Any = None,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.state = message, code, state
        self.after = timedelta(seconds=after) if isinstance(after, (int, float)) else after


class Fail(Exception):
    """This run failed for good."""

    def __init__(self, message: str, *, code: str = "", state: Any = None) -> None:
        super().__init__(message)
        self.message, self.code, self.state = message, code, state


def success(returned: Any) -> pb.ExecuteResponse:
    """The answer for what a handler returned."""
    outcome = returned if isinstance(returned, Result) else Result(returned)
    succeeded = pb.Succeeded(
        result=b"" if outcome.result is None else to_bytes(outcome.result),
        state=None if outcome.state is None else to_bytes(outcome.state),
    )
    return pb.ExecuteResponse(succeeded=succeeded)


def failure(error: BaseException) -> pb.ExecuteResponse:
    """The answer for what a handler raised."""
    if isinstance(error, Skip):
        return pb.ExecuteResponse(skipped=pb.Skipped(reason=_text(error.reason)))
    if not isinstance(error, (Retry, Fail)):
        name = type(error).__name__
        return _failed(pb.Failed(message=f"unhandled {name}", code=name[:255], retryable=True))
    failed = pb.Failed(
        message=_text(error.message),
        code=_text(error.code),
        retryable=isinstance(error, Retry),
        retry_after=error.after if isinstance(error, Retry) else None,
        state=None if error.state is None else to_bytes(error.state),
    )
    return _failed(failed)


def _failed(failed: pb.Failed) -> pb.ExecuteResponse:
    return pb.ExecuteResponse(failed=failed)


def _text(text: object) -> str:
    """What can be sent: a file name, for one, may hold what UTF-8 cannot say."""
    return "" if text is None else str(text).encode(errors="replace").decode()
