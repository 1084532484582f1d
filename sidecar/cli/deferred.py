"""`baton deferred complete | fail | get TOKEN`: end or show a deferred.

The token is a secret: `-` reads it from standard input, which keeps it out of the process list and
of the shell's history.
"""

import argparse
import sys
from typing import Any

from sidecar._proto.baton.v1 import deferreds_pb2 as pb
from sidecar._proto.baton.v1 import deferreds_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.logs import visible

_LINE_BYTES_MAX = 4096


def main(options: argparse.Namespace) -> int:
    token = _typed() if options.token == "-" else options.token  # noqa: S105 - a dash

    async def ask(sidecar: Connection) -> int:
        stub = deferreds_pb2_grpc.DeferredsStub(sidecar.channel)
        method, request = _asked(stub, options, _text(token))
        answer = await method(request, timeout=CALL_SECONDS, metadata=sidecar.metadata)
        print(_described(answer.deferred))
        return 0

    return call(options, ask)


def _asked(stub: Any, options: argparse.Namespace, token: str) -> tuple[Any, Any]:
    match options.action:
        case "complete":
            value = (options.value or "").encode(errors="surrogateescape")
            return stub.Complete, pb.DeferredsCompleteRequest(token=token, value=value)
        case "fail":
            error = _text(options.error or "")
            return stub.Fail, pb.DeferredsFailRequest(token=token, error=error)
        case _:
            return stub.Get, pb.DeferredsGetRequest(token=token)


def _described(deferred: pb.Deferred) -> str:
    state = pb.DeferredState.Name(deferred.state).removeprefix("DEFERRED_STATE_").lower()
    ending = deferred.error or deferred.value.decode(errors="backslashreplace")
    return visible(f"{deferred.name}: {state}" + (f": {ending}" if ending else ""))


def _typed() -> str:
    """The first line of standard input as bytes; empty if it is closed."""
    line = sys.stdin.buffer.readline(_LINE_BYTES_MAX) if sys.stdin else b""
    return line.decode(errors="surrogateescape").strip()


def _text(argument: str) -> str:
    """The bytes of an argument, which may not be UTF-8."""
    return argument.encode(errors="surrogateescape").decode(errors="replace")
