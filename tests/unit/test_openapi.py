"""The OpenAPI document: complete, and its schemas accept what the API sends and takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    ids_pb2,
    leadership_pb2,
    operations_pb2,
    runners_pb2,
    runs_pb2,
    schedules_pb2,
    singletons_pb2,
    state_pb2,
)
from sidecar.adapters.http.methods import Method, methods_of
from sidecar.adapters.http.openapi import document

MODULES = (
    deferreds_pb2, ids_pb2, leadership_pb2, operations_pb2, runners_pb2, runs_pb2, schedules_pb2,
    singletons_pb2, state_pb2,
)  # fmt: skip
SERVICES = [
    service.full_name
    for module in MODULES
    for service in module.DESCRIPTOR.services_by_name.values()
]
METHODS = list(methods_of(SERVICES))
DOCUMENT = document(METHODS, "1.0.0")
_READING = (
    "Get",
    "List",
    "Watch",
    "Has",
    "Size",
    "Preview",
    "Decompose",
    "Await",
    "History",
    "Stats",
)


def _validator(name: str) -> Draft202012Validator:
    resource = Resource.from_contents(
        DOCUMENT | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    )
    registry: Registry[Any] = Registry().with_resource("urn:api", resource)
    schema = {"$ref": f"urn:api#/components/schemas/{name}"}
    return Draft202012Validator(schema, registry=registry)


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        found = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return found.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(value) for value in node))
    return set()


def test_every_method_is_there_once() -> None:
    assert set(DOCUMENT["paths"]) == {method.path for method in METHODS}
    ids = [path["post"]["operationId"] for path in DOCUMENT["paths"].values()]
    assert len(ids) == len(set(ids)) == len(METHODS) >= 38


def test_the_structure_is_that_of_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    for path, item in DOCUMENT["paths"].items():
        operation = item["post"]
        assert path.startswith("/")
        assert {tag["name"] for tag in DOCUMENT["tags"]} >= set(operation["tags"])
        assert {"200", "default"} == operation["responses"].keys()
        for answer in operation["responses"].values():
            assert answer["description"]
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


def test_every_schema_is_sound_and_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert {one.rpartition("/")[2] for one in _references(DOCUMENT)} == set(schemas)


def test_what_the_api_sends_fits_the_document() -> None:
    run = runs_pb2.Run(
        run_id=2**63, name="mail", kind=runs_pb2.RUN_KIND_SCHEDULE, result=b"\xff\x00",
        progress=0.5, state=runs_pb2.RUN_STATE_ENDED, attempt=3,
        history=[runs_pb2.RunEvent(cause="leader changed")],
    )  # fmt: skip
    run.scheduled_at.FromJsonString("2027-01-01T00:00:00.123Z")
    schedule = schedules_pb2.Schedule(name="mail", cron="0 2 * * *", enabled=True)
    schedule.timeout.FromJsonString("1.500s")
    for message in (run, schedule):
        _validator(message.DESCRIPTOR.full_name).validate(MessageToDict(message))
    wrong = MessageToDict(run) | {"attempt": "many"}
    assert list(_validator("baton.v1.Run").iter_errors(wrong))
    assert list(_validator("baton.v1.Run").iter_errors({"run_id": "1"}))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.path)
def test_a_method_that_reads_says_so(method: Method) -> None:
    """A dashboard that may only read is given these and no others."""
    assert method.reads == method.name.startswith(_READING)
    assert DOCUMENT["paths"][method.path]["post"]["x-reads-only"] == method.reads


def test_methods_with_a_client_stream_are_left_out() -> None:
    reflection = "grpc.reflection.v1alpha.ServerReflection"
    from grpc_reflection.v1alpha import reflection_pb2  # noqa: F401 - registers the service

    assert descriptor_pool.Default().FindServiceByName(reflection).methods
    assert list(methods_of([reflection])) == []
