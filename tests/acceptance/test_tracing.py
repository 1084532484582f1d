"""Where a call comes from, end to end: spans in a collector, context in the app, fields in the log.

A sidecar, an app on the Python client, and a small OTLP collector of our own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from sidecar._proto.baton.v1 import schedules_pb2, schedules_pb2_grpc
from tests.acceptance.client_lab import patiently
from tests.conftest import NewCluster
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Setup

SCHEDULE = {
    "name": "report",
    "at": "2000-01-01T00:00:00Z",
    "skip_if_older_than": "1s",
    "retry": {"attempts": 3, "initial": "100ms", "max": "1s"},
}


CALLER_TRACE, CALLER_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    address: str = ""
    spans: list[Any] = field(default_factory=list)

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Any]:
        return [span for span in list(self.spans) if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector, server = Collector(), grpc.server(futures.ThreadPoolExecutor(2))
    register: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    register(collector, server)
    collector.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collector
    server.stop(None).wait()


def _attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def _trigger(address: str) -> None:
    """As a caller who traces would."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]  # not async
        stub.Trigger(
            schedules_pb2.SchedulesTriggerRequest(name="report"),
            timeout=10,
            metadata=(("traceparent", f"00-{CALLER_TRACE}-{CALLER_SPAN}-01"),),
        )


def test_a_run_is_one_trace_from_trigger_to_the_last_call_of_its_handler(
    tmp_path: Path, database_url: str, collector: Collector
) -> None:
    """Two attempts in one trace; what the handler asks of the sidecar is its child."""
    config = {
        "schedules": [SCHEDULE],
        "tracing": {"endpoint": collector.address},
        "log": {"level": "debug"},
    }
    notes = tmp_path / "notes.jsonl"
    cluster = Cluster(tmp_path / "lab", 1, Setup(database_url, config=config))
    replica = cluster[0]
    replica.app.command = [
        sys.executable, "-m", "tests.acceptance.tracing_app", "--address", replica.app_address,
        "--sidecar", replica.api_address, "--notes", notes,
    ]  # fmt: skip
    with cluster:
        wait_until(lambda: '"leading"' in replica.sidecar.output, 20, replica.describe)
        wait_until(lambda: replica.http("/readyz")[0] == 200, 20, replica.describe)
        wait_until(lambda: '"config_applied"' in replica.sidecar.output, 20, replica.describe)
        _trigger(replica.api_address)
        heartbeat = "baton.v1.Runs/Heartbeat"
        wait_until(
            lambda: collector.named(heartbeat) and len(collector.named("cron.report")) >= 2,
            30,
            lambda: f"{[span.name for span in collector.spans]}\n{replica.describe()}",
        )
        first, second = sorted(collector.named("cron.report"), key=lambda s: s.start_time_unix_nano)
        log = replica.log()
    about = _attributes(second)
    (context,) = [json.loads(line) for line in notes.read_text().splitlines()]
    assert first.trace_id == second.trace_id
    assert (_attributes(first)["baton.attempt"], about["baton.attempt"]) == (1, 2)
    assert first.status.code == 2  # error
    for name in ("baton.v1.Runs/Checkpoint", "baton.v1.Ids/Generate", heartbeat):
        (child,) = collector.named(name)
        assert (child.trace_id, child.parent_span_id) == (second.trace_id, second.span_id)
    for key in ("cluster", "runner_id", "group", "epoch", "entity_id"):
        assert about[f"baton.{key}"] == context[key], key
    assert (about["baton.entity_type"], context["entity_type"]) == ("cron", "schedule")
    (trigger,) = collector.named("baton.v1.Schedules/Trigger")
    assert (trigger.trace_id.hex(), trigger.parent_span_id.hex()) == (CALLER_TRACE, CALLER_SPAN)
    assert [link.trace_id for link in trigger.links] == [second.trace_id]
    (failed,) = [line for line in log if line["event"] == "execute_failed"]
    (ended,) = [line for line in log if line["event"] == "execute_answered"]
    for line, attempt in ((failed, 1), (ended, 2)):
        assert line["attempt"] == attempt
        assert line["run_id"] == about["baton.run_id"]
        assert line["runner"] == context["runner_id"]
        for key in ("cluster", "group", "epoch", "entity_type", "entity_id"):
            assert line[key] == context[key], key


def test_every_callback_carries_its_context_as_metadata(new_cluster: NewCluster) -> None:
    """OnBecomeLeader, OnLoseLeadership, Execute; with tracing off nothing of it is there."""
    config = {
        "singletons": [{"name": "coordinator"}],
        "schedules": [{"name": "quick", "every": "1s"}],
    }
    cluster = new_cluster(1, config=config)
    cluster.wait_for("execute", 1, name="coordinator")
    cluster.wait_for("execute", 1, name="quick")
    patiently(lambda: baton("resign", "--address", cluster[0].api_address, "default"))
    cluster.wait_for("lose", 2)  # the first one was the greeting
    for kind in ("become", "lose", "execute"):
        for event in cluster.events(kind):
            sent = event.fields["metadata"]
            assert sent["baton-cluster"] == event.fields["cluster"] == "lab"
            assert sent["baton-runner-id"] == event.fields["runner_id"]
            assert sent["baton-group"] == event.group == "default"
            assert sent["baton-epoch"] == str(event.epoch)
            assert sent["baton-is-leader"] == str(event.is_leader).lower()
            assert sent.get("baton-entity-id") == event.fields.get("name")
            assert sent.get("baton-entity-type") == event.fields.get("entity_type")
            assert "traceparent" not in sent
