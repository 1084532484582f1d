"""The service that the sidecar calls: proto/baton/v1/callback.proto in Python."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import grpc.aio

from baton._cluster import ClusterContext, HookScope, enter_scope
from baton._context import Context
from baton._handlers import Handlers, Registered
from baton._leading import Leading
from baton._link import Link
from baton._terms import Term, trust_end
from baton._tokens import TokenFile
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2
from baton.v1.callback_pb2_grpc import AppCallbackServicer

log = logging.getLogger("baton")
Call = grpc.aio.ServicerContext[Any, Any]
_NOT_ALLOWED = "baton-token is missing or wrong"


class Callbacks(AppCallbackServicer):
    """Hands the sidecar's calls to hooks and handlers."""

    def __init__(
        self, link: Link, leading: Leading, handlers: Handlers, token: TokenFile | None
    ) -> None:
        self._link, self._leading = link, leading
        self._handlers, self._token = handlers, token

    async def end(self, seconds: float) -> None:
        """Ends every term because the app stops."""
        await self._leading.end_all(seconds)

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
        if not await self._leading.lose(context, loss_reason(request), epoch=context.epoch):
            await call.abort(grpc.StatusCode.INTERNAL, "hook failed")
        return pb.OnLoseLeadershipResponse()

    async def Execute(self, request: pb.ExecuteRequest, call: Call) -> pb.ExecuteResponse:
        if not self._authenticate(call):
            await call.abort(grpc.StatusCode.UNAUTHENTICATED, _NOT_ALLOWED)
        term = None
        if request.kind != runs_pb2.RUN_KIND_JOB:
            context = request.context
            term = self._leading.term(context.group or "default", context.epoch)
            if term is None:
                await call.abort(grpc.StatusCode.UNAVAILABLE, f"not in term {context.epoch}")
        handler = self._handlers.find(request.kind, request.name)
        if handler is None:
            await call.abort(grpc.StatusCode.NOT_FOUND, f"no handler for {request.name!r}")
        if trace := _metadata(call).get("traceparent"):
            request.traceparent = trace
        return await self._executed(Context(request, self._link, term), term, handler, call)

    async def _executed(
        self, attempt: Context, term: Term | None, handler: Registered, call: Call
    ) -> pb.ExecuteResponse:
        work = self._handlers.run(handler, attempt, lambda *_: None)
        task = asyncio.create_task(work, name=attempt.name)
        attempt.task = task
        if term is not None:
            self._leading.enter(term, attempt)
            task.add_done_callback(lambda _: self._leading.leave(term, attempt))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:  # by the sidecar, or by a broken connection
            attempt.cancel("HANDOVER" if attempt.draining else "CALL_CANCELLED")
            raise
        if task.cancelled():
            await call.abort(grpc.StatusCode.UNAVAILABLE, f"term {attempt.epoch} is over")
        return task.result() or pb.ExecuteResponse()

    async def _entered(self, message: pb.ClusterContext, call: Call) -> ClusterContext:
        """Checks the token, then opens the scope for everything below this call."""
        if not self._authenticate(call):
            await call.abort(grpc.StatusCode.UNAUTHENTICATED, _NOT_ALLOWED)
        context = ClusterContext.of(message)
        trace = _metadata(call).get("traceparent", "")
        enter_scope(HookScope(context, self._link.sidecar, trace))
        return context

    def _authenticate(self, call: Call) -> bool:
        return self._token is None or self._token.accepts(_metadata(call).get("baton-token"))


def _metadata(call: Call) -> dict[str, str]:
    return {key: str(value) for key, value in call.invocation_metadata() or ()}


def loss_reason(request: pb.OnLoseLeadershipRequest) -> str:
    """The reason's name; a newer sidecar may know more of them."""
    if request.reason not in pb.LossReason.values():
        return f"REASON_{request.reason}"
    return pb.LossReason.Name(request.reason).removeprefix("LOSS_REASON_")
