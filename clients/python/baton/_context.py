"""What a handler is given: its input, its owned state, durable steps, deferreds and progress.

One Context serves one attempt. Everything it writes carries the attempt's RunRef, so that a later
attempt or a newer term makes it fail with `Fenced` instead of overwriting anything.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from google.protobuf.timestamp_pb2 import Timestamp

from baton._cluster import ClusterContext
from baton._deferreds import Deferred
from baton._outcomes import Fail
from baton._terms import Term
from baton._threads import invoke
from baton._values import from_json, from_stored, to_bytes, to_stored
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2, state_pb2
from baton.v1.runs_pb2_grpc import RunsStub
from baton.v1.state_pb2_grpc import StateStub

if TYPE_CHECKING:
    from baton._sidecar import Sidecar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnedState:
    """The owned state of a singleton or schedule, and the declared version it was made for."""

    raw: bytes
    version: int

    def json(self, default: Any = None) -> Any:
        """The state as JSON; `default` if there is none.

        Fields that an object does not have are taken from a `default` that is one: a sidecar starts
        with `{}` unless the configuration declares an initial state.
        """
        state = from_json(self.raw, default)
        if isinstance(state, dict) and isinstance(default, dict):
            return {**default, **state}
        return state


class Context:
    """One attempt of one run."""

    def __init__(self, request: pb.ExecuteRequest, term: Term, sidecar: Sidecar) -> None:
        self._request, self._term, self._sidecar = request, term, sidecar
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self._cancel_reason = ""
        self._stored = {point.step: point.value for point in request.checkpoints}
        self._begun: set[str] = set()
        self._waiting: set[asyncio.Task[Any]] = set()
        self.cluster = ClusterContext.of(request.context)
        self.name = request.name
        self.kind = request.kind
        self.run_id = request.run_id
        self.attempt = request.attempt
        self.epoch = request.context.epoch
        self.idempotency_key = request.idempotency_key
        self.payload = request.payload
        self.content_type = request.content_type
        self.scheduled_at = _moment(request.scheduled_at)
        self.deadline = _moment(request.deadline) if request.HasField("deadline") else None
        self.metadata = request.metadata
        self.state = OwnedState(request.state, request.state_version)

    def json(self, default: Any = None) -> Any:
        """The payload as JSON; `default` if it is empty."""
        return from_json(self.payload, default)

    @property
    def cancelled(self) -> bool:
        """Whether this attempt must stop; for functions that run in a thread."""
        return self._cancelled.is_set()

    @property
    def cancel_reason(self) -> str:
        """Why this attempt must stop; empty while it need not.

        HANDOVER: the time to drain is over. TRUST_EXPIRED: the sidecar is gone, frozen or cut off.
        CALL_CANCELLED: the run was cancelled, replaced or took too long, or the term is lost. Else
        the reason that came with the loss of leadership, such as LEASE_LOST.
        """
        return self._cancel_reason

    @property
    def draining(self) -> bool:
        """Whether the leader is handing over: begin nothing new."""
        return self._term.draining.is_set()

    async def wait_draining(self) -> None:
        """Returns when the leader begins to hand over."""
        await self._term.draining.wait()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For functions that run in a thread: waits for one of the coroutines offered here.

        If it is cancelled it is still waited for: the function must not end before what it began.
        """
        return asyncio.run_coroutine_threadsafe(self._waited(coroutine), self._loop).result()

    @overload
    async def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
        """Runs `function` once per run, not once per attempt, and remembers what it returned.

        The result is JSON or bytes; a plain function runs in a thread. If the process dies between
        the function's end and the answer of the sidecar, the function runs again.
        """
        if name in self._begun:
            raise Fail(f"step {name!r} was used twice in one attempt", code="StepNameReused")
        self._begun.add(name)
        if name not in self._stored:
            value = to_stored(await invoke(function, *args, **kw))
            request = runs_pb2.RunsCheckpointRequest(run=self.run_ref(), step=name, value=value)
            await self._sidecar.call(self._sidecar.stub(RunsStub).Checkpoint, request)
            self._stored[name] = value
        return from_stored(self._stored[name])

    async def create_deferred(self, name: str, *, ttl: timedelta | None = None) -> Deferred:
        """The deferred of that name of this run: the same one, and token, in every attempt."""
        return await self._sidecar.deferreds.create(name, ttl=ttl, run=self.run_ref())

    async def deferred(self, name: str, *, ttl: timedelta | None = None) -> Any:
        """Waits for the deferred of that name; its value, or `DeferredFailed`."""
        return await (await self.create_deferred(name, ttl=ttl))

    async def heartbeat(self, progress: float | None = None, message: str | None = None) -> None:
        """Reports that this run is alive, how far it is (0 to 1), and what it is doing."""
        request = runs_pb2.RunsHeartbeatRequest(
            run=self.run_ref(), progress=progress, message=message
        )
        await self._sidecar.call(self._sidecar.stub(RunsStub).Heartbeat, request)

    async def put_state(self, value: Any) -> None:
        """Replaces the owned state now, not only when the run ends."""
        request = state_pb2.StatePutRequest(
            key=f"{self.cluster.entity_type}-state:{self.cluster.entity_id}",
            value=to_bytes(value),
            run=self.run_ref(),
            request_id=uuid.uuid4().hex,
        )
        await self._sidecar.call(self._sidecar.stub(StateStub).Put, request)
        self.state = OwnedState(request.value, self.state.version)

    def run_ref(self) -> runs_pb2.RunRef:
        """Names this attempt, for calls that must fail once it is over."""
        return runs_pb2.RunRef(run_id=self.run_id, attempt=self.attempt, epoch=self.epoch)

    def cancel(self, task: asyncio.Task[Any], reason: str) -> None:
        """Ends the attempt that `task` runs; once, or its cleaning up would be cut short too."""
        if not self.cancelled:
            self._cancel_reason = reason
            self._cancelled.set()
            for waited in self._waiting:
                waited.cancel()
            task.cancel(reason)

    async def _waited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(coroutine)
        self._waiting.add(task)
        if self.cancelled:  # it may have been set before this task was there to be cancelled
            task.cancel()
        try:
            return await task
        finally:
            self._waiting.discard(task)


def _moment(timestamp: Timestamp) -> datetime:
    return timestamp.ToDatetime(tzinfo=UTC)
