"""Spans: named and described as the design says; off means that nothing is even imported."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import grpc
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from sidecar import logs, tracing
from sidecar._proto.baton.v1 import callback_pb2
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.otel import OtelTracer
from sidecar.model.run import Answer, Run, RunKind, RunRef, Succeeded
from sidecar.tracing import NoTracer, Tracer


@dataclass
class Traces:
    tracer: OtelTracer
    exporter: InMemorySpanExporter

    async def spans(self) -> list[ReadableSpan]:
        await asyncio.to_thread(self.tracer._provider.force_flush)
        return list(self.exporter.get_finished_spans())


@pytest.fixture
async def traces() -> AsyncIterator[Traces]:
    exporter = InMemorySpanExporter()
    traces = Traces(OtelTracer("orders", "pod-1", exporter), exporter)
    yield traces
    await traces.tracer.close()


@dataclass
class App:
    """The app's end of the link: answers as told and keeps the metadata it was sent."""

    answer: callback_pb2.ExecuteResponse | BaseException
    sent: dict[str, str] = field(default_factory=dict)
    channel: Any = None

    @property
    def stub(self) -> "App":
        return self

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    async def Execute(
        self, request: object, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> callback_pb2.ExecuteResponse:
        self.sent = dict(metadata)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


OK = callback_pb2.ExecuteResponse()
GONE = grpc.aio.AioRpcError(
    grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "gone", None
)


def _failed(message: str) -> callback_pb2.ExecuteResponse:
    return callback_pb2.ExecuteResponse(failed=callback_pb2.Failed(message=message))


def _run(attempt: int = 1, kind: RunKind = RunKind.SCHEDULE) -> Run:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Run(RunRef(7, attempt, 1000), kind, "cleanup", "default", now, "key")


async def _execute(tracer: Tracer, app: App, run: Run | None = None) -> Answer:
    execute = GrpcExecute(cast(Any, app), tracer, cluster="orders", runner_id="pod-1")
    return await execute.execute(run or _run())


async def test_a_span_says_what_was_called_and_where(traces: Traces) -> None:
    app = App(OK)
    await _execute(traces.tracer, app)
    (span,) = await traces.spans()
    assert span.name == "cron.cleanup"
    assert span.kind is SpanKind.CLIENT
    assert span.attributes == {
        "baton.cluster": "orders",
        "baton.group": "default",
        "baton.runner_id": "pod-1",
        "baton.entity_type": "cron",
        "baton.entity_id": "cleanup",
        "baton.epoch": 1000,
        "baton.run_id": 7,
        "baton.attempt": 1,
        "baton.outcome": "succeeded",
    }
    context = span.context
    assert context is not None
    assert app.sent["traceparent"].startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")
    assert span.resource.attributes["service.instance.id"] == "pod-1"


async def test_attempts_of_a_run_share_a_trace_also_after_a_change_of_leader(
    traces: Traces,
) -> None:
    other = Traces(OtelTracer("orders", "pod-2", exporter := InMemorySpanExporter()), exporter)
    await _execute(traces.tracer, App(GONE))
    await _execute(other.tracer, App(OK), _run(attempt=2))
    first, second = (await traces.spans())[0].context, (await other.spans())[0].context
    await other.tracer.close()
    assert first is not None
    assert second is not None
    assert first.trace_id == second.trace_id == tracing.run_trace_id("orders", 7)
    assert first.span_id != second.span_id


async def test_calls_of_the_app_become_children_and_link_the_runs_they_create(
    traces: Traces,
) -> None:
    method, execution = "baton.v1.Schedules/Trigger", tracing.execution_of(_run())
    with (
        traces.tracer.callback_span(execution) as outer,
        traces.tracer.call_span(method, dict(outer.metadata)),
    ):
        tracing.current_span().link_run(8)
    inner, parent = await traces.spans()
    assert inner.parent is not None
    assert parent.context is not None
    assert inner.parent.span_id == parent.context.span_id
    assert inner.links[0].context.trace_id == tracing.run_trace_id("orders", 8)


@pytest.mark.parametrize("header", ["", "garbage", "00-0-0-00", "00-" + "f" * 2000])
async def test_a_bad_traceparent_is_ignored(traces: Traces, header: str) -> None:
    """G11"""
    with traces.tracer.call_span("baton.v1.State/Get", {"traceparent": header}):
        pass
    assert (await traces.spans())[0].parent is None


async def test_failures_mark_the_span_without_secrets(traces: Traces) -> None:
    """G12"""
    logs.add_secret("tok-12345")
    try:
        await _execute(traces.tracer, App(_failed("no tok-12345 today\n")))
        with pytest.raises(ValueError, match="tok-12345"):
            await _execute(traces.tracer, App(ValueError("bad tok-12345")))
    finally:
        logs.forget_secrets()
    failed, raised = await traces.spans()
    assert failed.status.status_code is raised.status.status_code is StatusCode.ERROR
    assert failed.status.description == "no *** today\\n"
    assert raised.status.description == "ValueError: bad ***"
    assert "tok-12345" not in failed.to_json() + raised.to_json()


async def test_a_cancelled_call_is_no_error(traces: Traces) -> None:
    with pytest.raises(asyncio.CancelledError):
        await _execute(traces.tracer, App(asyncio.CancelledError()))
    (span,) = await traces.spans()
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["baton.outcome"] == "cancelled"


async def test_off_is_silent() -> None:
    app = App(OK)
    assert await _execute(NoTracer(), app) == Succeeded()
    assert "traceparent" not in app.sent
    tracing.current_span().link_run(1)
    with NoTracer().call_span("x", {}) as span:
        span.ended("OK")
    await NoTracer().close()


def test_off_imports_nothing() -> None:
    """Nor do those pay for a cache or for schemas who use none."""
    unwanted = {"opentelemetry", "redis", "jsonschema"}
    code = f"import sys, sidecar.cli.run; sys.exit({unwanted} & set(sys.modules) or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_cache_does_not_bring_it_in() -> None:
    """redis-py would import it wherever it is installed."""
    code = (
        "import sys; from sidecar.adapters.redis_client import redis_client\n"
        "redis_client('redis://127.0.0.1:1', 0.1)\n"
        "sys.exit(not ('redis' in sys.modules and 'opentelemetry' not in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_library_the_error_says_what_to_install() -> None:
    """G11"""
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from sidecar.model.errors import SidecarError\n"
        "try:\n    import sidecar.adapters.otel\n"
        "except SidecarError as error:\n    sys.exit('baton-sidecar[tracing]' not in str(error))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
