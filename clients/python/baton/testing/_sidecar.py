"""The fake itself: it serves the API, and calls the app as a sidecar would."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, Unpack

import grpc
import grpc.aio

from baton._durations import Span, span
from baton._specs import JobSpec, SubmitOptions
from baton._values import to_bytes
from baton.testing._apps import CALLBACK_SECONDS, App, CalledApp
from baton.testing._attach import AttachedProcess, FakeAppStream
from baton.testing._common import Call, Terms, eventually, now
from baton.testing._deferreds import FakeDeferreds, FakeIds
from baton.testing._delivery import Delivery
from baton.testing._job_book import JobBook
from baton.testing._job_runner import JobRunner
from baton.testing._jobs import FakeJobs
from baton.testing._leadership import FakeLeadership
from baton.testing._runs import FakeRuns, RunBook, RunRecord
from baton.testing._schedules import FakeSchedules
from baton.testing._state import FakeState, Store
from baton.v1 import callback_pb2 as pb
from baton.v1 import deferreds_pb2, jobs_pb2, runs_pb2, stream_pb2
from baton.v1.deferreds_pb2_grpc import add_DeferredsServicer_to_server
from baton.v1.ids_pb2_grpc import add_IdsServicer_to_server
from baton.v1.jobs_pb2_grpc import add_JobsServicer_to_server
from baton.v1.leadership_pb2_grpc import add_LeadershipServicer_to_server
from baton.v1.runs_pb2_grpc import add_RunsServicer_to_server
from baton.v1.schedules_pb2_grpc import add_SchedulesServicer_to_server
from baton.v1.state_pb2_grpc import add_StateServicer_to_server
from baton.v1.stream_pb2_grpc import add_AppStreamServicer_to_server

if TYPE_CHECKING:
    from baton._app import Baton


class FakeSidecar:
    """A sidecar in memory; `async with` starts it, `call_app_at` tells it where the app is."""

    def __init__(
        self,
        groups: Sequence[str] = ("default",),
        *,
        address: str = "127.0.0.1:0",
        app_token: str = "",
        api_token: str = "",
        drain_seconds: float = 1.0,
    ) -> None:
        self.address = address
        self._app_token, self._api_token = app_token, api_token
        self._drain_seconds = drain_seconds
        self._terms = Terms(groups)
        self._book = RunBook(self._terms)
        self._store = Store()
        self._deferreds = FakeDeferreds(self._book)
        self._leadership = FakeLeadership(self._terms, self._hand_over)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: grpc.aio.Server | None = None
        self._channel: grpc.aio.Channel | None = None
        self._called: CalledApp | None = None
        self._jobs = JobBook(self._book)
        self._runner = JobRunner(self._jobs, self._store, self._worker, self._spawn)
        self._processes: list[AttachedProcess] = []
        self._delivery = Delivery(self._app, self._terms, self._book, self._store)

    @classmethod
    @asynccontextmanager
    async def beside(
        cls, app: Baton, *, attach: bool = True, **options: Any
    ) -> AsyncIterator[Self]:
        """The fake and the app, which attaches to it or serves; options as for the class."""
        async with cls(**options) as sidecar:
            if attach:
                async with app.attached(sidecar.address, drain_seconds=0):
                    await sidecar.wait_attached()
                    yield sidecar
            else:
                async with app.serving("127.0.0.1:0", sidecar.address) as address:
                    sidecar.call_app_at(address)
                    yield sidecar

    async def __aenter__(self) -> Self:
        interceptors = [_TokenCheck(self._api_token)] if self._api_token else []
        self._server = server = grpc.aio.server(interceptors=interceptors)
        add_LeadershipServicer_to_server(self._leadership, server)
        add_RunsServicer_to_server(FakeRuns(self._book), server)
        add_StateServicer_to_server(FakeState(self._store, self._book), server)
        add_DeferredsServicer_to_server(self._deferreds, server)
        add_SchedulesServicer_to_server(FakeSchedules(self._book, self._deliver_if_led), server)
        add_IdsServicer_to_server(FakeIds(), server)
        stream = FakeAppStream(self._terms, self._book, self._join, self._leave)
        add_AppStreamServicer_to_server(stream, server)
        add_JobsServicer_to_server(FakeJobs(self._jobs, self._runner.pump), server)
        port = server.add_insecure_port(self.address)
        await server.start()
        self.address = f"{self.address.rpartition(':')[0]}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close(None)
        if self._server is not None:
            await self._server.stop(None)

    def call_app_at(self, address: str) -> None:
        """Where the app listens."""
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),  # an app may be told of before it listens
            ("grpc.max_reconnect_backoff_ms", 500),
        ]
        self._channel = grpc.aio.insecure_channel(address, options=options)
        self._called = CalledApp(self._channel, self._app_token)

    async def wait_attached(self, processes: int = 1, *, seconds: float = 20.0) -> None:
        """Returns when so many processes of the app are attached."""
        await eventually(lambda: len(self._processes) >= processes, seconds)

    def attached(self) -> list[stream_pb2.Hello]:
        """The `hello` of each process that is attached now, the one that leads first."""
        return [process.hello for process in self._processes]

    def detach(self) -> None:
        """Ends every stream, as a sidecar does that restarts; the app attaches again."""
        for process in self._processes:
            process.close()

    async def lead(self, group: str = "default", *, trusted_seconds: float = 3.0) -> int:
        """Begins a term and tells the app; its epoch. An error of the app is raised."""
        term = self._terms.begin(group, trusted_seconds)
        leader = self._terms.leader(group)
        request = pb.OnBecomeLeaderRequest(
            context=self._delivery.context(group, term.epoch, is_leader=True),
            trusted_for=leader.trusted_for,
            trusted_until_boottime=leader.trusted_until_boottime,
        )
        await self._terms.ring()
        try:
            await self._app().become(request)
        except grpc.aio.AioRpcError:
            await self.lose(group, pb.LOSS_REASON_APP_UNHEALTHY)
            raise
        return term.epoch

    async def lose(
        self, group: str = "default", reason: pb.LossReason = pb.LOSS_REASON_LEASE_LOST
    ) -> None:
        """Ends the term as it does when the lease is lost: cancels its runs, tells the app."""
        term = self._terms.groups[group]
        term.leads = term.draining = False
        await self._delivery.cancel(group)
        request = pb.OnLoseLeadershipRequest(
            context=self._delivery.context(group, term.epoch, is_leader=False),
            reason=reason,
            deadline=now() + timedelta(seconds=CALLBACK_SECONDS),
        )
        await self._app().lose(request)
        await self._terms.ring()

    async def drain(self, group: str = "default") -> None:
        """Says that the hand-over has begun; `lose` ends it."""
        self._terms.groups[group].draining = True
        await self._terms.ring()

    def freeze(self) -> None:
        """Ends renewals and health checks, as if this process had stopped: trust runs out."""
        self._terms.renewing = False

    def thaw(self) -> None:
        """Ends `freeze`."""
        self._terms.renewing = True
        self._spawn(self._terms.ring())

    async def execute(
        self,
        name: str,
        payload: Any = b"",
        *,
        group: str = "default",
        kind: runs_pb2.RunKind = runs_pb2.RUN_KIND_SCHEDULE,
        attempts: int = 1,
        timeout: float | None = None,
    ) -> runs_pb2.Run:
        """A new run, delivered at once and again at once after failures; as it is then."""
        record = self._book.add(name, group, kind, to_bytes(payload))
        record.timeout = timeout
        return await self.resume(record.run.run_id, attempts=attempts)

    async def resume(self, run_id: int, *, attempts: int = 1) -> runs_pb2.Run:
        """Delivers a run that has not ended, as a new leader does, with its checkpoints."""
        return await self._delivery.deliver(self._book.records[run_id], attempts)

    def state(self, key: str) -> bytes | None:
        """The value of an entry, such as `schedule-state:report`."""
        entry = self._store.get(key)
        return entry.value if entry else None

    def set_state(self, key: str, value: Any) -> None:
        """Writes an entry past all rules, as a test's starting point."""
        self._store.put(key, to_bytes(value))

    def runs(self) -> list[runs_pb2.Run]:
        """All runs as they are now, oldest first."""
        records = self._book.records.values()
        return [record.run for record in records if record.run.kind != runs_pb2.RUN_KIND_JOB]

    def submit(self, name: str, payload: Any = None, **options: Unpack[SubmitOptions]) -> int:
        """Submits a job, as another pod would; its id."""
        spec = JobSpec(name, payload, **options).message()
        (submitted,) = self._jobs.submit([spec], "")
        self._runner.pump()
        return submitted.job_id

    def job(self, job_id: int) -> jobs_pb2.Job:
        """One job as it is now."""
        return self._jobs.jobs[job_id].shown(body=True)

    def jobs(self) -> list[jobs_pb2.Job]:
        """All jobs as they are now, oldest first."""
        return [record.shown(body=True) for record in self._jobs.jobs.values()]

    async def settle(self) -> None:
        """Returns when no job runs, and none that is due can be started."""
        await self._runner.settle()

    async def advance(self, by: Span) -> None:
        """Moves the clock of the jobs on, once none runs; returns when what is due has ended."""
        await self.settle()
        self._jobs.clock.advance(span(by) or timedelta())
        await self.settle()

    def deferreds(self) -> list[deferreds_pb2.Deferred]:
        """All deferreds as they are now, oldest first, each with its token."""
        return self._deferreds.all()

    def _app(self) -> App:
        """The process that leads, or the app that is called."""
        if self._processes:
            return self._processes[0]
        if self._called is None:
            raise RuntimeError("no app: none has attached, and call_app_at was not called")
        return self._called

    def _worker(self, job: str) -> App | None:
        """Who executes a job: the process with the handler that has the least to do."""
        able = [process for process in self._processes if process.can_execute(job)]
        if able:
            return min(able, key=lambda process: process.running)
        return None if self._processes else self._called

    def _join(self, process: AttachedProcess) -> None:
        self._processes.append(process)
        self._runner.pump()

    def _leave(self, process: AttachedProcess) -> None:
        """Forgets a process; with the one that leads its terms end, as when an app dies."""
        was_primary = self._processes[:1] == [process]
        with contextlib.suppress(ValueError):
            self._processes.remove(process)
        if was_primary:
            for term in self._terms.groups.values():
                term.leads = term.draining = False

    def _hand_over(self, group: str) -> None:
        if not self._terms.groups[group].draining:
            self._terms.groups[group].draining = True
            self._spawn(self._handed_over(group))

    async def _handed_over(self, group: str) -> None:
        await self._terms.ring()
        await self._delivery.settle(group, self._drain_seconds)
        await self.lose(group, pb.LOSS_REASON_RESIGNED)

    def _deliver_if_led(self, record: RunRecord) -> None:
        if self._terms.groups[record.run.group].leads:
            self._spawn(self._delivery.deliver(record, attempts=1))

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses every call without the token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        handler = await continuation(details)
        if ("baton-token", self._token) in [(m[0], m[1]) for m in details.invocation_metadata]:
            return handler

        async def refuse(_: Any, call: Call) -> None:
            await call.abort(grpc.StatusCode.UNAUTHENTICATED, "baton-token is missing or wrong")

        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(refuse)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(refuse)
        return grpc.unary_unary_rpc_method_handler(refuse)
