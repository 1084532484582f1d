"""What a handler is given: its input, its owned state, durable steps, deferreds and progress.

One Context serves one attempt. Everything it writes carries the attempt's RunRef, so that a later
attempt or a newer term makes it fail with `Fenced` instead of overwriting anything.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from google.protobuf.timestamp_pb2 import Timestamp

from baton._cluster import ClusterContext
from baton._deferreds import Deferred
from baton._link import Link
from baton._outcomes import Fail
from baton._specs import priority_name
from baton._terms import Term
from baton._threads import invoke
from baton._values import from_json, from_stored, to_bytes, to_stored
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2, state_pb2
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
    """One attempt of one run.

    Most handlers read little of it, so that everything is taken from the request when it is read.
    """

    __slots__ = (
        "_begun",
        "_cancel_reason",
        "_cluster",
        "_link",
        "_request",
        "_state",
        "_stored",
        "_waiting",
        "attempt",
        "run_id",
        "task",
        "term",
        "timer",
    )

    def __init__(self, request: pb.ExecuteRequest, link: Link, term: Term | None) -> None:
        self._request, self._link, self.term = request, link, term
        self._cancel_reason = ""
        self._stored: dict[str, bytes] | None = None
        self._begun: set[str] | None = None
        self._waiting: set[asyncio.Task[Any]] | None = None
        self._cluster: ClusterContext | None = None
        self._state: OwnedState | None = None
        self.task: asyncio.Task[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None  # cancels the attempt at its deadline
        self.run_id = request.run_id
        self.attempt = request.attempt

    @property
    def cluster(self) -> ClusterContext:
        """Where the run comes from."""
        if self._cluster is None:
            link = self._link
            self._cluster = ClusterContext.of(
                self._request.context, cluster=link.cluster, runner_id=link.runner_id
            )
        return self._cluster

    @property
    def name(self) -> str:
        """The schedule, singleton or job."""
        return self._request.name

    @property
    def kind(self) -> runs_pb2.RunKind:
        """What made the run."""
        return self._request.kind

    @property
    def epoch(self) -> int:
        """The fencing token: of the term, or of the pod that holds the job."""
        return self._request.context.epoch

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this run, and for no other run."""
        return self._request.idempotency_key

    @property
    def payload(self) -> bytes:
        """The input."""
        return self._request.payload

    @property
    def content_type(self) -> str:
        """The content type of the payload."""
        return self._request.content_type

    @property
    def scheduled_at(self) -> datetime:
        """When the run was due."""
        return _moment(self._request.scheduled_at)

    @property
    def deadline(self) -> datetime | None:
        """When this attempt is cancelled; None: it may take as long as it needs."""
        return _moment(self._request.deadline) if self._request.HasField("deadline") else None

    @property
    def metadata(self) -> runs_pb2.ExecutionMetadata:
        """Statistics of earlier runs of this schedule or singleton."""
        return self._request.metadata

    @property
    def state(self) -> OwnedState:
        """The owned state: as last committed, or as `put_state` left it."""
        if self._state is None:
            self._state = OwnedState(self._request.state, self._request.state_version)
        return self._state

    @property
    def sidecar(self) -> Sidecar:
        """The sidecar that this run came from."""
        return self._link.sidecar

    @property
    def traceparent(self) -> str:
        """The W3C trace context of this run; empty: none."""
        return self._request.traceparent

    @property
    def queue(self) -> str:
        """Of a job: its queue."""
        return self._request.job.queue

    @property
    def key(self) -> str:
        """Of a job: its key; jobs of one name and key run one at a time and share their state."""
        return self._request.job.key

    @property
    def labels(self) -> dict[str, str]:
        """Of a job: the labels that it was submitted with."""
        return dict(self._request.job.labels)

    @property
    def batch(self) -> str:
        """Of a job: its batch; empty: none."""
        return self._request.job.batch

    @property
    def priority(self) -> str:
        """Of a job: critical, high, normal or low."""
        return priority_name(self._request.job.priority)

    @property
    def submitted_at(self) -> datetime:
        """Of a job: when it was submitted."""
        return _moment(self._request.job.submitted_at)

    @property
    def rescues(self) -> int:
        """Of a job: how often it was taken back from a pod that died or lost its lease."""
        return self._request.job.rescues

    def json(self, default: Any = None) -> Any:
        """The payload as JSON; `default` if it is empty."""
        return from_json(self.payload, default)

    @property
    def cancelled(self) -> bool:
        """Whether this attempt must stop; for functions that run in a thread."""
        return self._cancel_reason != ""

    @property
    def cancel_reason(self) -> str:
        """Why this attempt must stop; empty while it need not.

        HANDOVER: the time to drain is over. TRUST_EXPIRED: the sidecar is gone, frozen or cut off.
        CALL_CANCELLED: the run was cancelled, replaced or took too long, the term is lost, or the
        connection broke. Else the reason of the loss of leadership, such as LEASE_LOST.
        """
        return self._cancel_reason

    @property
    def draining(self) -> bool:
        """Whether the leader is handing over, or the process of a job leaves: begin nothing new."""
        return self._drain_event.is_set()

    async def wait_draining(self) -> None:
        """Returns when the leader begins to hand over, or the process of a job leaves."""
        await self._drain_event.wait()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For functions that run in a thread: waits for one of the coroutines offered here.

        If it is cancelled it is still waited for: the function must not end before what it began.
        """
        return asyncio.run_coroutine_threadsafe(self._waited(coroutine), self._link.loop).result()

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
        if self._stored is None or self._begun is None:
            self._stored = {point.step: point.value for point in self._request.checkpoints}
            self._begun = set()
        if name in self._begun:
            raise Fail(f"step {name!r} was used twice in one attempt", code="StepNameReused")
        self._begun.add(name)
        if name not in self._stored:
            value = to_stored(await invoke(function, *args, **kw))
            await self._link.checkpoint(self.run_ref(), name, value)
            self._stored[name] = value
        return from_stored(self._stored[name])

    async def create_deferred(self, name: str, *, ttl: timedelta | None = None) -> Deferred:
        """The deferred of that name of this run: the same one, and token, in every attempt."""
        return await self.sidecar.deferreds.create(name, ttl=ttl, run=self.run_ref())

    async def deferred(self, name: str, *, ttl: timedelta | None = None) -> Any:
        """Waits for the deferred of that name; its value, or `DeferredFailed`."""
        return await (await self.create_deferred(name, ttl=ttl))

    async def heartbeat(self, progress: float | None = None, message: str | None = None) -> None:
        """Reports that this run is alive, how far it is (0 to 1), and what it is doing."""
        await self._link.heartbeat(self.run_ref(), progress, message)

    async def put_state(self, value: Any) -> None:
        """Replaces the owned state now, not only when the run ends."""
        request = state_pb2.StatePutRequest(
            key=self._state_key(),
            value=to_bytes(value),
            run=self.run_ref(),
            request_id=uuid.uuid4().hex,
        )
        await self.sidecar.call(self.sidecar.stub(StateStub).Put, request)
        self._state = OwnedState(request.value, self.state.version)

    def run_ref(self) -> runs_pb2.RunRef:
        """Names this attempt, for calls that must fail once it is over."""
        return runs_pb2.RunRef(run_id=self.run_id, attempt=self.attempt, epoch=self.epoch)

    def cancel(self, reason: str) -> None:
        """Ends this attempt; once, or its cleaning up would be cut short too."""
        if not self.cancelled:
            self._cancel_reason = reason
            self._link.cancelled(self)
            for waited in self._waiting or ():
                waited.cancel()
            if self.task is not None:
                self.task.cancel(reason)

    @property
    def _drain_event(self) -> asyncio.Event:
        return self.term.draining if self.term else self._link.draining

    def _state_key(self) -> str:
        cluster = self.cluster
        is_job = cluster.entity_type == "job"
        owner = f"{self.name}/{self.key}" if is_job else cluster.entity_id
        return f"{cluster.entity_type}-state:{owner}"

    async def _waited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(coroutine)
        if self._waiting is None:
            self._waiting = set()
        self._waiting.add(task)
        if self.cancelled:  # it may have been set before this task was there to be cancelled
            task.cancel()
        try:
            return await task
        finally:
            self._waiting.discard(task)


def _moment(timestamp: Timestamp) -> datetime:
    return timestamp.ToDatetime(tzinfo=UTC)
