"""Every span and span attribute, declared once. Off unless `tracing.endpoint` is set.

There is a span per callback, `singleton.<name>` or `cron.<name>`. All attempts of a run share one
trace, also after a change of leader: the trace id is derived from cluster and run id. The app gets
the `traceparent` of a span in metadata; calls that carry it become child spans, and a call that
creates a run (Trigger, Backfill) links to that run's trace.

The SDK lives in `adapters/otel.py`, which `app.py` imports only when an endpoint is set.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from sidecar.model.run import Answer, CallFailed, Failed, Run, RunKind

EntityType = Literal["singleton", "cron"]

TRACEPARENT: Final = "traceparent"
CLUSTER: Final = "baton.cluster"
GROUP: Final = "baton.group"
RUNNER_ID: Final = "baton.runner_id"
ENTITY_TYPE: Final = "baton.entity_type"
ENTITY_ID: Final = "baton.entity_id"
EPOCH: Final = "baton.epoch"
RUN_ID: Final = "baton.run_id"
ATTEMPT: Final = "baton.attempt"
OUTCOME: Final = "baton.outcome"


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt of a run, as a span describes it."""

    entity_type: EntityType
    entity_id: str
    group: str
    epoch: int
    run_id: int
    attempt: int

    @property
    def span_name(self) -> str:
        return f"{self.entity_type}.{self.entity_id}"

    @property
    def attributes(self) -> dict[str, str | int]:
        return {
            GROUP: self.group,
            ENTITY_TYPE: self.entity_type,
            ENTITY_ID: self.entity_id,
            EPOCH: self.epoch,
            RUN_ID: self.run_id,
            ATTEMPT: self.attempt,
        }


class Span(Protocol):
    """A span in progress."""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that makes spans of the app children of this one."""
        ...

    def ended(self, outcome: str, error: str = "") -> None:
        """How it ended: `succeeded`, `failed`, `declined`, `cancelled` or a gRPC code."""
        ...

    def link_run(self, run_id: int) -> None:
        """This call created that run."""
        ...


class Tracer(Protocol):
    """Creates spans. An exception inside a span marks it as failed and propagates."""

    def callback_span(self, execution: Execution) -> AbstractContextManager[Span]: ...

    def call_span(
        self, method: str, metadata: Mapping[str, str]
    ) -> AbstractContextManager[Span]: ...

    async def close(self) -> None: ...


class NoSpan:
    """Nothing is traced."""

    metadata: tuple[tuple[str, str], ...] = ()

    def ended(self, outcome: str, error: str = "") -> None: ...
    def link_run(self, run_id: int) -> None: ...


_NO_SPAN: Final = NoSpan()
_current: ContextVar[Span] = ContextVar("baton_span", default=_NO_SPAN)


def current_span() -> Span:
    """The span of this task; NoSpan if there is none."""
    return _current.get()


@contextmanager
def entered(span: Span) -> Iterator[Span]:
    """Make `span` the current one."""
    token = _current.set(span)
    try:
        yield span
    finally:
        _current.reset(token)


class NoTracer:
    """Tracing is off: no cost, no imports."""

    def callback_span(self, execution: Execution) -> AbstractContextManager[Span]:
        return nullcontext(_current.get())

    def call_span(self, method: str, metadata: Mapping[str, str]) -> AbstractContextManager[Span]:
        return nullcontext(_current.get())

    async def close(self) -> None: ...


def execution_of(run: Run) -> Execution:
    return Execution(
        entity_type="singleton" if run.kind is RunKind.SINGLETON else "cron",
        entity_id=run.name,
        group=run.group,
        epoch=run.ref.epoch,
        run_id=run.ref.run_id,
        attempt=run.ref.attempt,
    )


def end_span(span: Span, answer: Answer) -> None:
    """End the span with the app's answer."""
    match answer:
        case CallFailed():
            span.ended(answer.code, answer.message or answer.code)
        case Failed():
            span.ended("failed", answer.message or "failed")
        case _:
            span.ended(type(answer).__name__.lower())


def run_trace_id(cluster: str, run_id: int) -> int:
    """The 128-bit trace id of all attempts of a run; never 0, which W3C forbids."""
    digest = hashlib.sha256(f"{cluster}/{run_id}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1


def run_span_id(cluster: str, run_id: int) -> int:
    """Represents the whole run in links; no span has this id."""
    digest = hashlib.sha256(f"{cluster}/{run_id}".encode()).digest()
    return int.from_bytes(digest[16:24], "big") or 1
