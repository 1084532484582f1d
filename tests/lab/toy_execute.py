"""What the toy app's Execute can be told to do.

    ok[:RESULT]      succeed                     fail              fail, retryable
    fail:final       fail for good               status:CODE       end with a gRPC status
    decline          skip                        hang              stay open until cancelled
    sleep:SECONDS    succeed later               counter           count in the owned state
    steps:N          store N checkpoints, except those stored already; the result says which
    heartbeat:SECONDS    stay open and report life that often
    count:SECONDS        stay open and count in the owned state that often (needs --load)

Several joined by `|` are for the first, second … attempt; the last one serves all further ones.
Nothing said: a singleton hangs, anything else succeeds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc

from sidecar._proto.baton.v1 import callback_pb2, runs_pb2, runs_pb2_grpc
from tests.lab.toy_load import Load

_CALL_SECONDS = 5.0

Request = callback_pb2.ExecuteRequest
Response = callback_pb2.ExecuteResponse


@dataclass(frozen=True, slots=True)
class Means:
    """What a handler can call; without --sidecar and --load there is nothing."""

    runs: runs_pb2_grpc.RunsStub | None = None
    load: Load | None = None


class Refused(Exception):
    """The call is to end with this status."""

    def __init__(self, code: grpc.StatusCode) -> None:
        super().__init__(code.name)
        self.code = code


async def execute(behaviour: str, request: Request, means: Means) -> Response:
    singleton = request.kind == runs_pb2.RUN_KIND_SINGLETON
    choices = (behaviour or ("hang" if singleton else "ok")).split("|")
    chosen = choices[min(request.attempt, len(choices)) - 1]
    word, _, argument = chosen.partition(":")
    return await _BEHAVIOURS[word](argument, request, means)


async def _ok(argument: str, request: Request, means: Means) -> Response:
    return Response(succeeded=callback_pb2.Succeeded(result=argument.encode()))


async def _fail(argument: str, request: Request, means: Means) -> Response:
    retryable = argument != "final"
    return Response(failed=callback_pb2.Failed(message="as told", code="told", retryable=retryable))


async def _status(argument: str, request: Request, means: Means) -> Response:
    raise Refused(grpc.StatusCode[argument])


async def _decline(argument: str, request: Request, means: Means) -> Response:
    return Response(skipped=callback_pb2.Skipped(reason="as told"))


async def _hang(argument: str, request: Request, means: Means) -> Response:
    await asyncio.Event().wait()
    return Response()


async def _sleep(argument: str, request: Request, means: Means) -> Response:
    await asyncio.sleep(float(argument))
    return Response()


async def _counter(argument: str, request: Request, means: Means) -> Response:
    state = json.loads(request.state or b"{}")
    state["count"] = state.get("count", 0) + 1
    result = str(state["count"]).encode()
    return Response(
        succeeded=callback_pb2.Succeeded(result=result, state=json.dumps(state).encode())
    )


async def _steps(argument: str, request: Request, means: Means) -> Response:
    runs = means.runs
    assert runs is not None, "steps need --sidecar"
    stored = {checkpoint.step for checkpoint in request.checkpoints}
    todo = [f"step-{n}" for n in range(int(argument)) if f"step-{n}" not in stored]
    for step in todo:
        checkpoint = runs_pb2.RunsCheckpointRequest(run=_ref(request), step=step, value=b"done")
        await runs.Checkpoint(checkpoint, timeout=_CALL_SECONDS)
    return Response(succeeded=callback_pb2.Succeeded(result=",".join(todo).encode()))


async def _heartbeat(argument: str, request: Request, means: Means) -> Response:
    runs = means.runs
    assert runs is not None, "heartbeat needs --sidecar"
    while True:
        life = runs_pb2.RunsHeartbeatRequest(run=_ref(request), message="alive")
        await runs.Heartbeat(life, timeout=_CALL_SECONDS)
        await asyncio.sleep(float(argument))


async def _count(argument: str, request: Request, means: Means) -> Response:
    assert means.load is not None, "count needs --load"
    start = json.loads(request.state or b"{}").get("count", 0)
    await means.load.count(request.name, start, _ref(request), float(argument))
    raise Refused(grpc.StatusCode.ABORTED)


def _ref(request: Request) -> runs_pb2.RunRef:
    return runs_pb2.RunRef(
        run_id=request.run_id, attempt=request.attempt, epoch=request.context.epoch
    )


_BEHAVIOURS: dict[str, Callable[[str, Request, Means], Awaitable[Response]]] = {
    "ok": _ok,
    "fail": _fail,
    "status": _status,
    "decline": _decline,
    "hang": _hang,
    "sleep": _sleep,
    "counter": _counter,
    "steps": _steps,
    "heartbeat": _heartbeat,
    "count": _count,
}
