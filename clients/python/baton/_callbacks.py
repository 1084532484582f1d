"""The service that the sidecar calls: proto/baton/v1/callback.proto in Python.

Nothing of the user's errors but their type leaves the process; the rest goes to the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from baton._cluster import ClusterContext, Scope, enter_scope
from baton._context import Context
from baton._leading import Leading
from baton._outcomes import Fail, Retry, Skip, failure, success
from baton._sidecar import Sidecar
from baton._terms import trust_end
from baton._threads import invoke
from baton._tokens import TokenFile
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2
from baton.v1.callback_pb2_grpc import AppCallbackServicer

log = logging.getLogger("baton")
Handler = Callable[[Context], Any]
Call = grpc.aio.ServicerContext[Any, Any]


@dataclass
class Handlers:
    """What the app can execute, by name."""

    schedules: dict[str, Handler] = field(default_factory=dict)
    singletons: dict[str, Handler] = field(default_factory=dict)

    def find(self, request: pb.ExecuteRequest) -> Handler | None:
        """The handler for a run; None: this app does not know it."""
        is_singleton = request.kind == runs_pb2.RUN_KIND_SINGLETON
        return (self.singletons if is_singleton else self.schedules).get(request.name)


class Callbacks(AppCallbackServicer):
    """Hands the sidecar's calls to hooks and handlers."""

    def __init__(
        self, sidecar: Sidecar, leading: Leading, handlers: Handlers, token: TokenFile | None
    ) -> None:
        self._sidecar, self._leading = sidecar, leading
        self._handlers, self._token = handlers, token

    async def OnBecomeLeader(
        self, request: pb.OnBecomeLeaderRequest, call: Call
    ) -> pb.OnBecomeLeaderResponse:
        trusted_until = trust_end(request, read_at=self._leading.terms.clock())
        context = await self._entered(request.context, call)
        if self._leading.stopping:
            await call.abort(grpc.StatusCode.UNAVAILABLE, "the app is stopping")
        try:
            await self._leading.become(context, trusted_until)
        except Exception as error:
            log.exception("the hook for becoming leader of %s failed", context.group)
            await call.abort(grpc.StatusCode.INTERNAL, f"hook failed: {type(error).__name__}")
        return pb.OnBecomeLeaderResponse()

    async def OnLoseLeadership(
        self, request: pb.OnLoseLeadershipRequest, call: Call
    ) -> pb.OnLoseLeadershipResponse:
        context = await self._entered(request.context, call)
        if not await self._leading.lose(context, _reason(request), epoch=context.epoch):
            await call.abort(grpc.StatusCode.INTERNAL, "hook failed")
        return pb.OnLoseLeadershipResponse()

    async def Execute(self, request: pb.ExecuteRequest, call: Call) -> pb.ExecuteResponse:
        context = await self._entered(request.context, call)
        term = self._leading.term(context.group, context.epoch)
        if term is None:
            await call.abort(grpc.StatusCode.UNAVAILABLE, f"not in term {context.epoch}")
        handler = self._handlers.find(request)
        if handler is None:
            await call.abort(grpc.StatusCode.NOT_FOUND, f"no handler for {request.name!r}")
        attempt = Context(request, term, self._sidecar)
        task = self._leading.start(term, attempt, _answer(handler, attempt))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:  # by the sidecar, or by a broken connection
            attempt.cancel(task, "HANDOVER" if attempt.draining else "CALL_CANCELLED")
            raise
        if not task.cancelled():
            return task.result()
        if attempt.cancelled:
            await call.abort(grpc.StatusCode.UNAVAILABLE, f"term {context.epoch} is over")
        return failure(asyncio.CancelledError())  # the handler cancelled itself

    async def _entered(self, message: pb.ClusterContext, call: Call) -> ClusterContext:
        """Checks the token, then opens the scope for everything below this call."""
        metadata = dict(call.invocation_metadata() or ())
        if self._token is not None and not self._token.accepts(metadata.get("baton-token")):
            await call.abort(grpc.StatusCode.UNAUTHENTICATED, "baton-token is missing or wrong")
        context = ClusterContext.of(message)
        enter_scope(Scope(context, self._sidecar, str(metadata.get("traceparent", ""))))
        return context


def _reason(request: pb.OnLoseLeadershipRequest) -> str:
    """The reason's name; a newer sidecar may know more of them."""
    if request.reason not in pb.LossReason.values():
        return f"REASON_{request.reason}"
    return pb.LossReason.Name(request.reason).removeprefix("LOSS_REASON_")


async def _answer(handler: Handler, attempt: Context) -> pb.ExecuteResponse:
    try:
        return success(await invoke(handler, attempt))
    except Exception as error:
        if not isinstance(error, (Skip, Retry, Fail)):
            log.exception("run %d of %s failed", attempt.run_id, attempt.name)
        try:
            return failure(error)
        except Exception as unsendable:  # its state is nothing that JSON can say
            log.exception("run %d of %s failed", attempt.run_id, attempt.name)
            return failure(unsendable)
