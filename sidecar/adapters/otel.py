"""OpenTelemetry behind the ports of `sidecar/tracing.py`; imported only if an endpoint is set.

Guarantees: a thread sends spans in batches from a queue of 2,048: a slow or dead collector loses
spans and delays nothing; the global OpenTelemetry state of the process is unchanged; error texts
are redacted. Closing takes 2 s at most.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import grpc.aio

from sidecar import tracing
from sidecar.logs import redacted, visible
from sidecar.model.errors import SidecarError

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise SidecarError(
        "tracing.endpoint needs OpenTelemetry: install baton-sidecar[tracing]"
    ) from None

_SECONDS_MAX = 2.0
_ERROR_CHARACTERS_MAX = 500
_wanted_trace: ContextVar[int] = ContextVar("wanted_trace", default=0)
_propagator = TraceContextTextMapPropagator()


class OtelTracer:
    """Sends spans to an OTLP/gRPC collector such as `http://collector:4317`."""

    def __init__(self, cluster: str, runner_id: str, exporter: SpanExporter) -> None:
        self._cluster = cluster
        self._common = {tracing.CLUSTER: cluster, tracing.RUNNER_ID: runner_id}
        resource = {
            "service.name": "baton",
            "service.namespace": cluster,
            "service.instance.id": runner_id,
        }
        self._provider = TracerProvider(
            resource=Resource.create(resource),
            id_generator=_RunTraces(),
            shutdown_on_exit=False,  # it would wait for a dead collector
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, export_timeout_millis=_SECONDS_MAX * 1000)
        )
        self._tracer = self._provider.get_tracer("baton")

    @classmethod
    def to(cls, endpoint: str, *, cluster: str, runner_id: str) -> "OtelTracer":
        # A collector that is down must not write a line per batch.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        exporter = OTLPSpanExporter(
            endpoint=endpoint, insecure=endpoint.startswith("http://"), timeout=_SECONDS_MAX
        )
        return cls(cluster, runner_id, exporter)

    @contextmanager
    def callback_span(self, execution: tracing.Execution) -> Iterator[tracing.Span]:
        token = _wanted_trace.set(tracing.run_trace_id(self._cluster, execution.run_id))
        try:
            span = self._tracer.start_span(
                execution.span_name,
                context=Context(),  # the root of its trace
                kind=SpanKind.CLIENT,
                attributes={**self._common, **execution.attributes},
            )
        finally:
            _wanted_trace.reset(token)
        with _ending(span), tracing.entered(_Span(span, self._cluster)) as current:
            yield current

    @contextmanager
    def call_span(self, method: str, metadata: Mapping[str, str]) -> Iterator[tracing.Span]:
        span = self._tracer.start_span(
            method,
            context=_propagator.extract(metadata, Context()),
            kind=SpanKind.SERVER,
            attributes=self._common,
        )
        with _ending(span), tracing.entered(_Span(span, self._cluster)) as current:
            yield current

    async def close(self) -> None:
        """Send the remaining spans, for 2 s at most."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def send() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

        # A daemon, not the loop's executor: the process must be able to end before it.
        threading.Thread(target=send, name="otel.close", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_MAX):
                await done.wait()


class _Span:
    def __init__(self, span: trace.Span, cluster: str) -> None:
        self._span = span
        self._cluster = cluster

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, trace.set_span_in_context(self._span, Context()))
        return tuple(carrier.items())

    def ended(self, outcome: str, error: str = "") -> None:
        self._span.set_attribute(tracing.OUTCOME, outcome)
        if error:
            self._span.set_status(Status(StatusCode.ERROR, _safe(error)))

    def link_run(self, run_id: int) -> None:
        context = SpanContext(
            tracing.run_trace_id(self._cluster, run_id),
            tracing.run_span_id(self._cluster, run_id),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        self._span.add_link(context, {tracing.RUN_ID: run_id})


@contextmanager
def _ending(span: trace.Span) -> Iterator[None]:
    """Ends the span; an exception marks it as failed and propagates."""
    try:
        yield
    except asyncio.CancelledError:
        span.set_attribute(tracing.OUTCOME, "cancelled")
        raise
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        span.set_status(Status(StatusCode.ERROR, _safe(text)))
        raise
    finally:
        span.end()


def _safe(text: str) -> str:
    return visible(redacted(text))[:_ERROR_CHARACTERS_MAX]


class _RunTraces(RandomIdGenerator):
    """Random ids, except the trace id of a run, which all its attempts share."""

    def generate_trace_id(self) -> int:
        return _wanted_trace.get() or int(super().generate_trace_id())


class TraceCalls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """A span for each unary call of our API, as a child of the `traceparent` that came with it."""

    def __init__(self, tracer: tracing.Tracer) -> None:
        self._tracer = tracer

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None:
            return handler  # a stream lasts for hours: its span would be useless
        metadata = {key: value for key, value in details.invocation_metadata if key in _HEADERS}
        if not metadata:
            return handler  # the caller does not trace this call

        async def traced(request: Any, context: Any) -> Any:
            with self._tracer.call_span(details.method.lstrip("/"), metadata):
                return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            traced, handler.request_deserializer, handler.response_serializer
        )


_HEADERS = (tracing.TRACEPARENT, "tracestate")
