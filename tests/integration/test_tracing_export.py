"""Spans on their way to a real OTLP collector, and calls that bring their trace along."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from sidecar._proto.baton.v1 import ids_pb2, ids_pb2_grpc
from sidecar.adapters.grpc_server.ids import IdsService
from sidecar.adapters.otel import OtelTracer, TraceCalls
from sidecar.model.snowflake import Parts, decomposed
from sidecar.tracing import Execution
from tests.lab.stalls import run_delay

EXECUTION = Execution("cron", "cleanup", "default", epoch=1, run_id=7, attempt=1)


@dataclass
class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    address: str = ""
    spans: list[Any] = field(default_factory=list)

    async def received(self, count: int) -> list[Any]:
        """Closing a tracer waits for 2 s at most: what it sent may still be on its way."""
        async with asyncio.timeout(60):
            while len(self.spans) < count:  # noqa: ASYNC110 - any condition will do
                await asyncio.sleep(0.02)
        return self.spans

    async def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()


class Ids:
    async def generate(self, count: int) -> list[int]:
        return list(range(count))

    def decompose(self, id: int) -> Parts:
        return decomposed(id)


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    collector, server = Collector(), grpc.aio.server()
    register: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    register(collector, server)
    collector.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield collector
    await server.stop(None)


async def test_spans_reach_the_collector(collector: Collector) -> None:
    tracer = OtelTracer.to(collector.address, cluster="orders", runner_id="pod-1")
    with tracer.callback_span(EXECUTION):
        pass
    await tracer.close()
    assert [span.name for span in await collector.received(1)] == ["cron.cleanup"]


async def test_a_traced_call_of_our_api_becomes_a_child(collector: Collector) -> None:
    tracer = OtelTracer.to(collector.address, cluster="orders", runner_id="pod-1")
    server = grpc.aio.server(interceptors=(TraceCalls(tracer),))
    ids_pb2_grpc.add_IdsServicer_to_server(IdsService(Ids()), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = ids_pb2_grpc.IdsStub(channel)
        request = ids_pb2.IdsGenerateRequest(count=2)
        with tracer.callback_span(EXECUTION) as span:
            answer = await stub.Generate(request, metadata=span.metadata)
        await stub.Generate(request)  # nobody traces this one
    await server.stop(None)
    await tracer.close()
    assert list(answer.ids) == [0, 1]
    child, parent = await collector.received(2)
    assert child.name == "baton.v1.Ids/Generate"
    assert (child.trace_id, child.parent_span_id) == (parent.trace_id, parent.span_id)


def _unhindered() -> float:
    """A clock that does not count while this process waits for a core."""
    return time.monotonic() - run_delay(os.getpid())


async def test_a_dead_collector_costs_no_time() -> None:
    """Time in which others had the cores is not the collector's."""
    working, closing = [], []
    for _ in range(3):
        tracer = OtelTracer.to("http://127.0.0.1:9", cluster="orders", runner_id="pod-1")
        started = _unhindered()
        for _ in range(5000):
            with tracer.callback_span(EXECUTION):
                pass
        await asyncio.sleep(0)
        working.append(_unhindered() - started)
        started = _unhindered()
        await tracer.close()
        closing.append(_unhindered() - started)
    assert min(working) < 3, working
    assert min(closing) < 2.5, closing
