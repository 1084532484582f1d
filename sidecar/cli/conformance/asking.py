"""What the checks share: terms, single calls, and answers as text."""

import asyncio
from typing import Any

import grpc

from sidecar._proto.baton.v1 import callback_pb2
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_app import AppLink
from sidecar.cli.conformance.driver import CLUSTER, Driver
from sidecar.election.leadership import DEFAULT_GROUP
from sidecar.model.run import Answer, CallFailed, Failed, Run, RunRef, Succeeded
from sidecar.model.term import Term

UNKNOWN_HANDLER = "conformance-no-such-handler"
UNKNOWN_GROUP = "conformance-no-such-group"
NO_SUCH_HANDLER = "NOT_FOUND"
PROMPT_SECONDS = 5.0
OPEN_SECONDS = 1.0
_QUIET_SECONDS = 1.3
_SETTLE_SECONDS = 0.5
_NAP_SECONDS = 0.05
# Field 15000, a varint: no message of the contract has it.
_UNKNOWN_FIELD = b"\xc0\xa9\x07\x01"


class Problem(Exception):
    """The app violates the contract; the text says what to fix."""


class NotApplicable(Exception):
    """The check cannot be made on this app, or not without more options."""


def zero_epoch() -> Term:
    """The term of a sidecar that has just started and knows no term."""
    return Term(DEFAULT_GROUP, 1, 0)


def open_term(app: Driver) -> Term:
    if app.term is None:
        raise NotApplicable("needs a term, which the app did not open")
    return app.term


def lost_term(app: Driver) -> Term:
    if app.lost is None:
        raise NotApplicable("needs a term that was lost, which the app did not open")
    return app.lost


def subject_name(app: Driver) -> str:
    name = app.subject.singleton or app.subject.handler
    if not name:
        raise NotApplicable("give --singleton NAME, or --handler NAME of one that takes a while")
    return name


async def promptly(app: Driver, run: Run) -> Answer:
    try:
        async with asyncio.timeout(PROMPT_SECONDS):
            return await app.execute(run)
    except TimeoutError:
        raise Problem(
            f"Execute of {run.name!r} was not answered within {PROMPT_SECONDS:g} s"
        ) from None


async def admitted(app: Driver, run: Run) -> Answer:
    """The answer to an Execute of the open term."""
    answer = await promptly(app, run)
    if ended_with(answer, {"UNAVAILABLE"}):
        raise Problem(
            f"Execute of the open term {summary(answer)}; if the app trusts its term only while"
            " Leadership.Watch renews it, let it find this suite: --sidecar ADDRESS"
        )
    return answer


async def expect_no_such_handler(app: Driver, run: Run) -> None:
    answer = await admitted(app, run)
    if not ended_with(answer, {NO_SUCH_HANDLER}):
        raise Problem(f"Execute of an unknown handler {summary(answer)}; answer NOT_FOUND")


async def outcome_of(app: Driver, run: Run) -> str:
    answer = await app.execute(run)
    if isinstance(answer, CallFailed):
        raise Problem(
            f"attempt {run.ref.attempt} of {run.name!r} {summary(answer)}; answer with an outcome,"
            " whatever the handler does"
        )
    return summary(answer)


async def opened(app: Driver, run: Run) -> asyncio.Task[Answer]:
    """An Execute that is open."""
    call = asyncio.create_task(app.execute(run), name="conformance.execute")
    await asyncio.wait({call}, timeout=OPEN_SECONDS)
    if not call.done():
        return call
    if isinstance(answer := call.result(), CallFailed):
        raise Problem(f"Execute of {run.name!r} {summary(answer)}")
    raise NotApplicable(
        f"{run.name!r} ended before it could be cancelled; name a longer one: --singleton"
    )


async def expect_quiet(app: Driver, run: RunRef, what: str) -> None:
    """A stopped attempt makes no more calls, and the app still answers."""
    if await goes_on(app, run, _SETTLE_SECONDS):
        raise Problem(
            f"the handler continued after its call {what};"
            " stop it when the call is cancelled: its writes are refused"
        )
    # Another check covers the answer for an unknown handler.
    await admitted(app, app.new_run(open_term(app), UNKNOWN_HANDLER))


async def goes_on(app: Driver, run: RunRef, settle_seconds: float) -> bool:
    """Whether that attempt makes a call after the time for calls still in flight."""
    await _awake(settle_seconds)
    since = boottime()
    await _awake(_QUIET_SECONDS)
    return app.sidecar.runs.heard_at(run) > since


async def _awake(seconds: float) -> None:
    """Sleep in short steps: if this machine is suspended, the app loses only one of them."""
    for _ in range(round(seconds / _NAP_SECONDS)):
        await asyncio.sleep(_NAP_SECONDS)


def ended_with(answer: Answer, codes: set[str]) -> bool:
    return isinstance(answer, CallFailed) and answer.code in codes


def summary(answer: Answer) -> str:
    match answer:
        case CallFailed(code, message):
            return f"ended with {code}: {message}" if message else f"ended with {code}"
        case Succeeded():
            return "succeeded"
        case Failed(message):
            return f"failed, as an outcome ({message})"
        case _:
            return "was declined by the app"


def context_of(term: Term) -> callback_pb2.ClusterContext:
    return callback_pb2.ClusterContext(
        cluster=CLUSTER, runner_id=CLUSTER, group=term.group, is_leader=True, epoch=term.epoch
    )


def requests_of(term: Term) -> tuple[tuple[str, Any], ...]:
    """One request per method; each has an effect if it is accepted."""
    context = context_of(term)
    return (
        (
            "Execute",
            callback_pb2.ExecuteRequest(context=context, run_id=1, name=UNKNOWN_HANDLER, attempt=1),
        ),
        (
            "OnLoseLeadership",
            callback_pb2.OnLoseLeadershipRequest(context=context, reason="LOSS_REASON_RESIGNED"),
        ),
        ("OnBecomeLeader", callback_pb2.OnBecomeLeaderRequest(context=context)),
    )


def with_unknown_field(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString() + _UNKNOWN_FIELD)


async def code_of(link: AppLink, method: str, request: Any) -> str:
    """The status code of a raw call."""
    call = getattr(link.stub, method)
    try:
        await call(request, timeout=PROMPT_SECONDS, metadata=link.metadata())
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"
