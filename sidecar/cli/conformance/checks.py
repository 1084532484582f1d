"""The checks of the callback contract, in the order in which a sidecar makes its calls.

Each check returns what it confirmed, or raises Problem with what is wrong and how to fix it, or
NotApplicable with the reason. `docs/conformance.md` describes them by name.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from sidecar._proto.baton.v1 import callback_pb2, runs_pb2
from sidecar.adapters.clock import boottime
from sidecar.cli.conformance.asking import (
    NO_SUCH_HANDLER,
    OPEN_SECONDS,
    PROMPT_SECONDS,
    UNKNOWN_GROUP,
    UNKNOWN_HANDLER,
    NotApplicable,
    Problem,
    code_of,
    context_of,
    ended_with,
    expect_no_such_handler,
    expect_quiet,
    goes_on,
    lost_term,
    open_term,
    opened,
    outcome_of,
    promptly,
    requests_of,
    subject_name,
    summary,
    with_unknown_field,
    zero_epoch,
)
from sidecar.cli.conformance.driver import Driver, again
from sidecar.config import SecretSource
from sidecar.model.errors import SidecarError
from sidecar.model.run import (
    CHECKPOINT_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    CallFailed,
)
from sidecar.model.term import LossReason, Term
from sidecar.model.verdict import STATE_BYTES_MAX

CALLS_AT_ONCE = 64  # `app.max_concurrent`
_HANDLER_SECONDS = 60.0
_IN_FLIGHT_SECONDS = 0.2
_UNDER_WAY_SECONDS = 0.2
_UNKNOWN_REASON = cast(callback_pb2.LossReason, 99)
_UNKNOWN_KIND = cast(runs_pb2.RunKind, 99)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    make: Callable[[Driver], Awaitable[str]]


# ── before any term ─────────────────────────────────────────────────────────────────────────────


async def connection(app: Driver) -> str:
    try:
        await app.connect()
    except TimeoutError:
        if app.attached:
            raise Problem(
                "no process attached: start the app with BATON_API_ADDRESS set to --sidecar"
            ) from None
        raise Problem(
            "no app listens there: start the app, and pass its address as --app"
        ) from None
    return "a process of the app attached" if app.attached else "the app accepts connections"


async def health(app: Driver) -> str:
    try:
        await app.link.check(PROMPT_SECONDS)
    except SidecarError as error:
        raise Problem(
            f"{error}; answer SERVING for the empty service name, or leave grpc.health.v1 out"
        ) from None
    return "a ping is answered" if app.attached else "grpc.health.v1 says SERVING, or is left out"


async def first_contact(app: Driver) -> str:
    """A sidecar that has just started sends it: the app's term, if any, is over."""
    try:
        await app.lose(zero_epoch(), LossReason.SHUTDOWN)
    except SidecarError as error:
        text = str(error)
        if text.startswith("UNIMPLEMENTED"):
            raise Problem("serve baton.v1.AppCallback with all of its three methods") from None
        if text.startswith("UNAUTHENTICATED"):
            raise Problem("the app requires its token: pass --token-file") from None
        raise Problem(
            f"OnLoseLeadership with epoch 0: {text}; answer OK, it is sent by every new sidecar"
        ) from None
    there = "" if app.attached else "AppCallback is there; "
    return f"{there}OnLoseLeadership with epoch 0 is answered"


async def before_any_term(app: Driver) -> str:
    answer = await promptly(app, app.new_run(app.new_term(), UNKNOWN_HANDLER))
    if not ended_with(answer, {NO_SUCH_HANDLER, "UNAVAILABLE"}):
        raise Problem(
            f"Execute outside of any term {summary(answer)}; answer UNAVAILABLE, or NOT_FOUND"
        )
    return "Execute outside of any term is refused"


# ── in a term ───────────────────────────────────────────────────────────────────────────────────


async def become(app: Driver) -> str:
    started_at = boottime()
    try:
        await app.become(app.new_term())
    except SidecarError as error:
        raise Problem(
            f"OnBecomeLeader: {error}; answer OK within 10 s, or the app never leads"
        ) from None
    return f"OnBecomeLeader is answered, after {boottime() - started_at:.2f} s"


async def unknown_handler(app: Driver) -> str:
    await expect_no_such_handler(app, app.new_run(open_term(app), UNKNOWN_HANDLER))
    return "an unknown handler is NOT_FOUND"


async def handler(app: Driver) -> str:
    if not app.subject.handler:
        raise NotApplicable("pass --handler NAME of a schedule to execute")
    run = app.new_run(open_term(app), app.subject.handler, seconds=_HANDLER_SECONDS)
    first = await outcome_of(app, run)
    second = await outcome_of(app, again(run))
    return f"{run.name} {first}; delivered again with its idempotency key it {second}"


async def cancellation(app: Driver) -> str:
    run = app.new_run(open_term(app), subject_name(app))
    call = await opened(app, run)
    call.cancel()
    await asyncio.wait({call})
    await expect_quiet(app, run.ref, "was cancelled")
    return "a handler whose call is cancelled stops"


async def deadline(app: Driver) -> str:
    run = app.new_run(open_term(app), subject_name(app), seconds=OPEN_SECONDS)
    began = asyncio.get_running_loop().time()
    answer = await app.execute(run)
    passed = asyncio.get_running_loop().time() - began > OPEN_SECONDS * 0.9
    # Servers such as tonic answer CANCELLED when their own timer of the deadline fires first.
    if isinstance(answer, CallFailed) and (
        answer.code == "DEADLINE_EXCEEDED" or (answer.code == "CANCELLED" and passed)
    ):
        await expect_quiet(app, run.ref, "reached its deadline")
        return "a handler whose deadline has passed stops"
    if isinstance(answer, CallFailed):
        raise Problem(f"Execute with a deadline {summary(answer)}")
    raise NotApplicable("the handler ended before its deadline; name a longer one: --singleton")


async def token(app: Driver) -> str:
    _only_called(app)
    if not app.token.is_set:
        raise NotApplicable("no --token-file: an app without a token trusts its loopback")
    term = open_term(app)
    for what, other in (("a wrong", SecretSource.of("not-the-token")), ("no", SecretSource())):
        async with app.link_with(other) as link:
            for method, request in requests_of(term):
                if (code := await code_of(link, method, request)) != "UNAUTHENTICATED":
                    raise Problem(
                        f"{method} with {what} token ended with {code};"
                        " compare the metadata `baton-token` and answer UNAUTHENTICATED"
                    )
    await expect_no_such_handler(app, app.new_run(term, UNKNOWN_HANDLER))
    return "calls with a wrong token, or none, are refused and change nothing"


async def unknown_fields(app: Driver) -> str:
    """A newer sidecar may send fields and enum values that this app does not know yet."""
    _only_called(app)
    term = open_term(app)
    context = context_of(Term(UNKNOWN_GROUP, 2, term.epoch))
    lose = callback_pb2.OnLoseLeadershipRequest(context=context, reason=_UNKNOWN_REASON)
    code = await code_of(app.link, "OnLoseLeadership", with_unknown_field(lose))
    if code != "OK":
        raise Problem(
            f"OnLoseLeadership with an unknown field and reason ended with {code}; ignore them"
        )
    execute = callback_pb2.ExecuteRequest(
        context=context_of(term), run_id=1, name=UNKNOWN_HANDLER, attempt=1, kind=_UNKNOWN_KIND
    )
    code = await code_of(app.link, "Execute", with_unknown_field(execute))
    if code != NO_SUCH_HANDLER:
        raise Problem(
            f"Execute with an unknown field and kind ended with {code}; choose by `name`,"
            " and answer NOT_FOUND to what you do not know"
        )
    return "unknown fields and enum values are ignored"


async def message_size(app: Driver) -> str:
    """Payload, state and checkpoints at their limits; the message stays below gRPC's 4 MiB."""
    _only_called(app)
    term = open_term(app)
    request = callback_pb2.ExecuteRequest(
        context=context_of(term),
        run_id=1,
        name=UNKNOWN_HANDLER,
        attempt=2,
        kind="RUN_KIND_SCHEDULE",
    )
    request.payload = b"x" * PAYLOAD_BYTES_MAX
    request.state = b"x" * STATE_BYTES_MAX
    request.checkpoints.add(step="large", value=b"x" * CHECKPOINT_BYTES_MAX)
    code = await code_of(app.link, "Execute", request)
    if code != NO_SUCH_HANDLER:
        raise Problem(
            f"an Execute of {request.ByteSize()} bytes ended with {code};"
            " accept messages of up to 4 MiB"
        )
    return "the largest payload (256 KiB), state and checkpoints (1 MiB each) are accepted"


async def concurrency(app: Driver) -> str:
    """As many calls as a sidecar opens at most, and one more that cannot wait."""
    term, name = open_term(app), app.subject.handler or UNKNOWN_HANDLER
    runs = [app.new_run(term, name, seconds=_HANDLER_SECONDS) for _ in range(CALLS_AT_ONCE)]
    calls = asyncio.gather(*(app.execute(run) for run in runs))
    await asyncio.sleep(_UNDER_WAY_SECONDS)
    try:
        async with asyncio.timeout(PROMPT_SECONDS):
            await app.lose(Term(UNKNOWN_GROUP, 2, term.epoch))
    except (TimeoutError, SidecarError) as error:
        calls.cancel()
        raise Problem(
            f"with {CALLS_AT_ONCE} Executes open, OnLoseLeadership of another group:"
            f" {_explained(error)}; give the server more workers"
        ) from None
    allowed = {NO_SUCH_HANDLER} if name == UNKNOWN_HANDLER else set[str]()
    for answer in await calls:
        if isinstance(answer, CallFailed) and answer.code not in allowed:
            raise Problem(f"one of {CALLS_AT_ONCE} Executes at once {summary(answer)}")
    return f"{CALLS_AT_ONCE} Executes at once are answered, and the app stays responsive"


# ── after a term ────────────────────────────────────────────────────────────────────────────────


async def lose(app: Driver) -> str:
    """As a sidecar ends a term: cancel the open calls, then call OnLoseLeadership."""
    term, run = open_term(app), None
    if app.subject.singleton:
        run = app.new_run(term, app.subject.singleton)
        (await opened(app, run)).cancel()
    try:
        async with asyncio.timeout(PROMPT_SECONDS):
            await app.lose(term)
    except (TimeoutError, SidecarError) as error:
        raise Problem(
            f"OnLoseLeadership: {_explained(error)};"
            " stop, then answer OK: the next leader waits for the answer"
        ) from None
    if run is not None and await goes_on(app, run.ref, _IN_FLIGHT_SECONDS):
        raise Problem(
            "the app continued a run after it had answered OnLoseLeadership;"
            " answer only when everything of the term has stopped"
        )
    return "OnLoseLeadership is answered, and all work of the term has stopped"


async def lose_again(app: Driver) -> str:
    lost = lost_term(app)
    for what, term in (
        ("for a term lost before", lost),
        ("for a term never known", app.new_term()),
        ("for a group never known", Term(UNKNOWN_GROUP, 2, lost.epoch)),
        ("with epoch 0", zero_epoch()),
    ):
        try:
            await app.lose(term)
        except SidecarError as error:
            raise Problem(
                f"OnLoseLeadership {what}: {error}; answer OK however often it comes"
            ) from None
    return "OnLoseLeadership may be repeated, and may name an unknown term or group"


async def stale_term(app: Driver) -> str:
    """Messages of a term that is over, delayed by a slow connection."""
    lost = lost_term(app)
    try:
        await app.link.become_leader(lost, boottime() + 3.0, PROMPT_SECONDS)
    except SidecarError as error:
        raise Problem(f"OnBecomeLeader of a lost term: {error}; answer OK and do nothing") from None
    name = app.subject.handler or app.subject.singleton
    run = app.new_run(lost, name or UNKNOWN_HANDLER, seconds=PROMPT_SECONDS)
    answer = await app.execute(run)
    allowed = {"UNAVAILABLE"} if name else {"UNAVAILABLE", NO_SUCH_HANDLER}
    if not ended_with(answer, allowed):
        raise Problem(
            f"Execute of a lost term {summary(answer)}; remember the highest epoch lost per group,"
            " and answer UNAVAILABLE to what is not above it"
        )
    return "a late OnBecomeLeader of a lost term opens nothing"


async def next_term(app: Driver) -> str:
    for ending in (None, 0):
        try:
            await app.become(app.new_term())
        except SidecarError as error:
            raise Problem(f"OnBecomeLeader of a later term: {error}; lead again") from None
        term = open_term(app)
        await expect_no_such_handler(app, app.new_run(term, UNKNOWN_HANDLER))
        try:
            await app.lose(term if ending is None else zero_epoch())
        except SidecarError as error:
            raise Problem(f"OnLoseLeadership of a later term: {error}; answer OK") from None
    return "the app leads again in later terms, also after epoch 0"


async def trust(app: Driver) -> str:
    if app.attached:
        raise NotApplicable("the sidecar renews the trust in the stream")
    if not app.sidecar.election.watched:
        raise NotApplicable(
            "the app did not watch Leadership; fine as long as it acts only inside Execute"
        )
    return "the app renews its trust by Leadership.Watch"


def _only_called(app: Driver) -> None:
    if app.attached:
        raise NotApplicable("checked with an app that serves AppCallback only")


def _explained(error: Exception) -> str:
    return str(error) or f"no answer within {PROMPT_SECONDS:g} s"


CHECKS = (
    Check("connection", connection),
    Check("health", health),
    Check("first-contact", first_contact),
    Check("before-any-term", before_any_term),
    Check("become", become),
    Check("unknown-handler", unknown_handler),
    Check("handler", handler),
    Check("cancellation", cancellation),
    Check("deadline", deadline),
    Check("token", token),
    Check("unknown-fields", unknown_fields),
    Check("message-size", message_size),
    Check("concurrency", concurrency),
    Check("lose", lose),
    Check("lose-again", lose_again),
    Check("stale-term", stale_term),
    Check("next-term", next_term),
    Check("trust", trust),
)
