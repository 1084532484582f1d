"""The Execute call against a real gRPC app."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from sidecar import metrics
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc, runs_pb2
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.tokens import Token
from sidecar.config.secret import SecretSource
from sidecar.execution.calls import CallPerRun
from sidecar.model.run import (
    CallFailed,
    Checkpoint,
    Declined,
    ExecutionMetadata,
    Failed,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    Succeeded,
)
from sidecar.model.run_records import Completion
from sidecar.model.term import Term
from sidecar.model.verdict import verdict
from sidecar.tracing import NoTracer
from tests.lab.execution import MemoryCompletions, a_pipeline, an_authority

TICK = datetime(2027, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
RUN = Run(
    ref=RunRef(12, 3, 7),
    kind=RunKind.TRIGGER,
    name="report",
    group="default",
    scheduled_at=TICK,
    idempotency_key="key",
    payload=b"{}",
    metadata=ExecutionMetadata(last_run_at=TICK, run_count=4, missed_count=2, average_seconds=1.5),
    state_version=2,
)
LIMITED = replace(RUN, limits=Limits(timeout_seconds=0.5))


class ToyApp(callback_pb2_grpc.AppCallbackServicer):
    def __init__(self) -> None:
        self.response = callback_pb2.ExecuteResponse()
        self.code: grpc.StatusCode | None = None
        self.requests: list[callback_pb2.ExecuteRequest] = []
        self.metadata: dict[str, str | bytes] = {}
        self.seconds = 0.0
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def Execute(
        self, request: callback_pb2.ExecuteRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> callback_pb2.ExecuteResponse:
        self.requests.append(request)
        self.begun.set()
        self.metadata = dict(context.invocation_metadata() or ())
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.ended.set()
        if self.code:
            await context.abort(self.code, "words of the app")
        return self.response


@pytest.fixture
def address(unused_tcp_port_factory: Callable[[], int]) -> str:
    return f"127.0.0.1:{unused_tcp_port_factory()}"


@asynccontextmanager
async def _serving(address: str) -> AsyncIterator[ToyApp]:
    server, app = grpc.aio.server(), ToyApp()
    callback_pb2_grpc.add_AppCallbackServicer_to_server(app, server)
    server.add_insecure_port(address)
    await server.start()
    yield app
    await server.stop(0)


@pytest.fixture
async def app(address: str) -> AsyncIterator[ToyApp]:
    async with _serving(address) as app:
        yield app


@pytest.fixture
async def link(address: str) -> AsyncIterator[AppLink]:
    link = AppLink(address, Token(SecretSource.of("secret")), cluster="c", runner_id="r")
    yield link
    await link.close()


@pytest.fixture
def execute(link: AppLink) -> GrpcExecute:
    return GrpcExecute(link, NoTracer(), cluster="c", runner_id="r")


async def _answered(
    link: AppLink, run: Run, connect_seconds: float, trusted_seconds: float = 3.0
) -> Completion | None:
    """What the pipeline makes of the run; None: nothing was recorded."""
    execute = GrpcExecute(link, NoTracer(), cluster="c", runner_id="r")
    store = MemoryCompletions()
    pipeline = replace(
        a_pipeline(None, store), app=CallPerRun(execute), connect_seconds=connect_seconds
    )
    authority = an_authority(Term("default", 1, 7), lambda: trusted_seconds)
    async with pipeline.open(authority) as executions:
        assert executions.admit(1).count == (1 if trusted_seconds else 0)
        executions.start([run])
        await executions.finish(20.0)
    return store.completions[0] if store.completions else None


async def test_the_app_is_told_everything(app: ToyApp, execute: GrpcExecute) -> None:
    steps = (Checkpoint("a", b"1"), Checkpoint("b", b"2"))
    assert await execute.execute(replace(RUN, state=b"state", checkpoints=steps)) == Succeeded()
    (request,) = app.requests
    assert app.metadata["baton-token"] == "secret"
    context = request.context
    assert (context.cluster, context.runner_id, context.group, context.epoch) == (
        "c",
        "r",
        "default",
        7,
    )
    assert (context.is_leader, context.entity_type, context.entity_id) == (
        True,
        "schedule",
        "report",
    )
    assert (request.run_id, request.attempt, request.kind) == (12, 3, runs_pb2.RUN_KIND_TRIGGER)
    assert request.scheduled_at.ToDatetime(tzinfo=UTC) == TICK
    assert (request.idempotency_key, request.payload, request.state) == ("key", b"{}", b"state")
    assert request.state_version == 2
    assert [(c.step, c.value) for c in request.checkpoints] == [("a", b"1"), ("b", b"2")]
    assert (request.metadata.run_count, request.metadata.missed_count) == (4, 2)
    assert not request.metadata.HasField("last_success_at")
    assert not request.HasField("deadline")


async def test_every_answer_is_understood(app: ToyApp, execute: GrpcExecute) -> None:
    response = callback_pb2.ExecuteResponse
    retry = callback_pb2.Failed(
        message="m", code="c", retryable=True, retry_after=Duration(seconds=5)
    )
    for sent, understood in (
        (response(), Succeeded()),
        (response(succeeded=callback_pb2.Succeeded(result=b"r")), Succeeded(b"r", None)),
        (response(succeeded=callback_pb2.Succeeded(state=b"")), Succeeded(b"", b"")),
        (response(failed=retry), Failed("m", "c", True, 5.0, None)),
        (response(failed=callback_pb2.Failed(state=b"s")), Failed("", "", False, None, b"s")),
        (response(skipped=callback_pb2.Skipped(reason="no")), Declined("no")),
    ):
        app.response = sent
        assert await execute.execute(RUN) == understood


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND])
async def test_a_status_is_told_with_its_words(
    app: ToyApp, execute: GrpcExecute, code: grpc.StatusCode
) -> None:
    app.code = code
    assert await execute.execute(RUN) == CallFailed(code.name, "words of the app")


async def test_an_app_that_is_not_there_was_not_delivered_to(link: AppLink) -> None:
    completion = await _answered(link, RUN, connect_seconds=0.3)
    assert completion is not None
    assert completion.verdict.error == "UNAVAILABLE: no connection to the app"
    assert not completion.verdict.delivered


async def test_nothing_leaves_once_its_term_is_over(app: ToyApp, link: AppLink) -> None:
    """G1: it ended while the sidecar waited for the connection, or was frozen."""
    assert await _answered(link, RUN, connect_seconds=10.0, trusted_seconds=0.0) is None
    assert not app.requests


async def test_an_app_that_is_not_there_is_no_timeout(link: AppLink) -> None:
    """A limit shorter than the time to connect: undeliverable, which uses up no retry."""
    completion = await _answered(link, LIMITED, connect_seconds=1.0)
    assert completion is not None
    assert completion.verdict.error == "UNAVAILABLE: no connection to the app"
    assert not completion.verdict.used_retry


async def test_the_limit_counts_from_the_connection(link: AppLink, address: str) -> None:
    early = asyncio.create_task(_answered(link, LIMITED, connect_seconds=10.0))
    await asyncio.sleep(2 * LIMITED.limits.timeout_seconds)
    async with _serving(address) as app:
        completion = await early
        assert completion is not None
        assert completion.verdict.outcome is Outcome.SUCCEEDED
        app.seconds = 60.0
        completion = await _answered(link, LIMITED, connect_seconds=10.0)
        assert completion is not None
        assert completion.verdict.error_code == "DEADLINE_EXCEEDED"


async def test_the_deadline_is_the_apps_too(app: ToyApp, execute: GrpcExecute) -> None:
    await execute.execute(RUN)  # connected: the limit is for the call alone
    app.ended.clear()
    app.seconds = 60.0
    limited = replace(RUN, limits=Limits(timeout_seconds=1.0))
    answer = await execute.execute(limited)
    assert isinstance(answer, CallFailed)
    assert answer.code == "DEADLINE_EXCEEDED"
    assert app.requests[1].HasField("deadline")
    await asyncio.wait_for(app.ended.wait(), 10)


async def test_cancelling_us_cancels_the_call(app: ToyApp, execute: GrpcExecute) -> None:
    app.seconds = 30.0
    task = asyncio.create_task(execute.execute(RUN))
    await app.begun.wait()
    assert _in_flight() == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _in_flight() == 0
    await asyncio.wait_for(app.ended.wait(), 10)


def _in_flight() -> float | None:
    """Of schedules and singletons: both are called through here."""
    return metrics.REGISTRY.get_sample_value("baton_runs_in_flight")


async def test_an_answer_over_the_limit_is_final_like_one_just_below(
    app: ToyApp, execute: GrpcExecute
) -> None:
    """It would be as large again, however often it is asked for."""
    limit, verdicts = 4 * 1024 * 1024, []
    for size in (limit - 100, limit + 100):
        app.response = callback_pb2.ExecuteResponse(
            succeeded=callback_pb2.Succeeded(result=b"x" * size)
        )
        answer = await execute.execute(RUN)
        verdicts.append(verdict(RUN, answer, age_seconds=0.0, chance=0.5))
    for each in verdicts:
        assert (each.outcome, each.error_code) == (Outcome.FAILED, "TOO_LARGE")
        assert each.error.startswith("the app returned a")
