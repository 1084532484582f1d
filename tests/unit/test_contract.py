"""The public contract: linted, uniform, freshly generated, never broken by a later change."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    FileDescriptor,
    MethodDescriptor,
)

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"
FILES = [
    "callback", "leadership", "singletons", "schedules", "runs", "state", "deferreds", "ids",
    "operations", "stream", "jobs", "job_types", "runners",
]  # fmt: skip
TOOLS = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=TOOLS, capture_output=True, text=True, timeout=60)


def file_descriptor(name: str) -> FileDescriptor:
    module = importlib.import_module(f"sidecar._proto.baton.v1.{name}_pb2")
    descriptor: FileDescriptor = module.DESCRIPTOR
    return descriptor


def all_methods() -> Iterator[MethodDescriptor]:
    for name in FILES:
        for service in file_descriptor(name).services_by_name.values():
            yield from service.methods


def all_messages() -> Iterator[Descriptor]:
    for name in FILES:
        yield from file_descriptor(name).message_types_by_name.values()


def all_enums() -> Iterator[EnumDescriptor]:
    for name in FILES:
        yield from file_descriptor(name).enum_types_by_name.values()


def message(file: str, name: str) -> Descriptor:
    found: Descriptor = file_descriptor(file).message_types_by_name[name]
    return found


def test_every_file_of_the_contract_is_looked_at() -> None:
    assert sorted(path.stem for path in (PROTO / "baton/v1").glob("*.proto")) == sorted(FILES)


def test_lint_is_clean() -> None:
    lint = run("buf", "lint", PROTO)
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_format_is_that_of_buf() -> None:
    formatted = run("buf", "format", "--diff", "--exit-code", PROTO)
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr


def test_generated_code_is_fresh_and_breaks_no_release() -> None:
    check = run(PROTO / "generate", "--check")
    assert check.returncode == 0, check.stdout + check.stderr


def test_every_service_can_be_imported_under_the_sidecars_own_name() -> None:
    names = [importlib.import_module(f"sidecar._proto.baton.v1.{f}_pb2_grpc") for f in FILES]
    served = {name[:-4] for module in names for name in vars(module) if name.endswith("Stub")}
    assert served == {
        "AppCallback", "Leadership", "Singletons", "State", "Schedules", "Runs", "Deferreds", "Ids",
        "Operations", "AppStream", "Jobs", "Runners",
    }  # fmt: skip


def test_the_sidecar_and_the_client_share_one_copy_of_the_generated_code() -> None:
    """The pool keeps one descriptor per .proto file, so one process may import both names."""
    for name in FILES:
        ours = importlib.import_module(f"sidecar._proto.baton.v1.{name}_pb2")
        clients = importlib.import_module(f"baton.v1.{name}_pb2")
        assert ours.DESCRIPTOR is clients.DESCRIPTOR
        assert Path(ours.__file__ or "").samefile(clients.__file__ or "")


def test_every_file_names_the_packages_of_its_generated_code() -> None:
    """`buf breaking` cannot compare them yet: v0.1.0 has no such options."""
    for name in FILES:
        options = descriptor_pb2.FileOptions()
        options.CopyFrom(file_descriptor(name).GetOptions())
        assert options == descriptor_pb2.FileOptions(
            go_package="github.com/baton-sidecar/baton/clients/go/batonv1",
            java_package="dev.baton.v1",
            java_multiple_files=True,
        ), name


def test_every_enum_begins_with_unspecified() -> None:
    zeros = [enum.values_by_number[0].name for enum in all_enums()]
    assert zeros
    assert [zero for zero in zeros if not zero.endswith("_UNSPECIFIED")] == []


def test_every_list_is_paged() -> None:
    lists = [method for method in all_methods() if method.name.startswith("List")]
    assert {method.containing_service.name for method in lists} == {
        "Leadership", "Singletons", "State", "Schedules", "Runs", "Jobs", "Deferreds", "Runners",
    }  # fmt: skip
    for method in lists:
        assert {"page_size", "page_token"} <= set(method.input_type.fields_by_name), method.name
        assert "next_page_token" in method.output_type.fields_by_name, method.name


def test_every_method_has_request_and_response_of_its_own() -> None:
    used = [t.full_name for m in all_methods() for t in (m.input_type, m.output_type)]
    assert len(used) == len(set(used))
    for method in all_methods():
        assert method.input_type.name.endswith(f"{method.name}Request")
        assert method.output_type.name.endswith(f"{method.name}Response")


def test_times_and_durations_are_well_known_types() -> None:
    endings = ("_at", "deadline", "timeout", "ttl", "duration", "interval", "_for", "_after")
    for field in (field for message in all_messages() for field in message.fields):
        if field.name.endswith(endings):
            assert field.message_type is not None, field.full_name
            assert field.message_type.full_name.startswith("google.protobuf."), field.full_name


def test_ids_and_epochs_are_unsigned_and_contents_are_bytes() -> None:
    kinds = dict.fromkeys(("run_id", "epoch"), FieldDescriptor.TYPE_UINT64)
    kinds |= dict.fromkeys(("payload", "result", "value"), FieldDescriptor.TYPE_BYTES)
    for field in (field for message in all_messages() for field in message.fields):
        assert field.type == kinds.get(field.name, field.type), field.full_name


def test_execute_carries_what_the_design_promises() -> None:
    assert list(message("callback", "ExecuteRequest").fields_by_name) == [
        "context", "run_id", "kind", "name", "attempt", "scheduled_at", "deadline",
        "idempotency_key", "payload", "content_type", "state", "state_version", "checkpoints",
        "metadata", "traceparent", "job",
    ]  # fmt: skip
    outcome = message("callback", "ExecuteResponse").oneofs_by_name["outcome"]
    assert [field.name for field in outcome.fields] == ["succeeded", "failed", "skipped", "snoozed"]
    assert message("callback", "Succeeded").fields_by_name["state"].has_presence
    assert message("callback", "Failed").fields_by_name["state"].has_presence


def test_reasons_are_the_closed_lists_of_the_design() -> None:
    values = {enum.name: [v.name for v in enum.values][1:] for enum in all_enums()}
    assert values["SkipReason"] == [
        f"SKIP_REASON_{reason}"
        for reason in (
            "MISFIRE",
            "COALESCED",
            "OVERLAP",
            "PAUSED",
            "OPERATOR",
            "APP_DECLINED",
            "EXPIRED",
        )
    ]
    assert values["LossReason"] == [
        f"LOSS_REASON_{reason}"
        for reason in ("RESIGNED", "SHUTDOWN", "LEASE_LOST", "APP_UNHEALTHY", "STALE", "FENCED")
    ]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the contract with its generated code, to be damaged by a test."""
    shutil.copytree(PROTO, tmp_path / "proto", ignore=shutil.ignore_patterns("released"))
    generated = run(tmp_path / "proto/generate")
    assert generated.returncode == 0, generated.stderr
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_a_fresh_copy_passes_the_check(copied: Path) -> None:
    assert run(copied / "proto/generate", "--check").returncode == 0


def test_code_that_was_edited_added_or_lost_is_stale(copied: Path) -> None:
    home = copied / "clients/python/baton/v1"
    edit(home / "ids_pb2_grpc.pyi", "class IdsStub:", "class IdsStubs:")
    (home / "left_pb2.py").write_text("")
    (home / "runs_pb2.pyi").unlink()
    check = run(copied / "proto/generate", "--check")
    assert check.returncode == 1
    assert "-class IdsStubs:\n+class IdsStub:\n" in check.stdout
    assert "generated from nothing: clients/python/baton/v1/left_pb2.py\n" in check.stdout
    assert "missing: clients/python/baton/v1/runs_pb2.pyi\n" in check.stdout


def test_a_second_copy_in_place_of_the_link_is_stale(copied: Path) -> None:
    link = copied / "sidecar/_proto/baton/v1"
    link.unlink()
    shutil.copytree(copied / "clients/python/baton/v1", link)
    check = run(copied / "proto/generate", "--check")
    assert check.returncode == 1
    assert "not a link to ../../../clients/python/baton/v1: sidecar/_proto/baton/v1\n" in (
        check.stdout
    )


def test_a_removed_field_breaks_the_newest_release(copied: Path) -> None:
    """Versions are compared as numbers: v0.10.0 has the field, v0.9.0 never had it."""
    proto = copied / "proto"
    (proto / "released").mkdir()
    ids = proto / "baton/v1/ids.proto"
    build = ("buf", "build", proto, "-o")
    assert run(*build, proto / "released/v0.10.0.binpb").returncode == 0
    edit(ids, "  // Its number within that millisecond.\n  uint32 sequence = 3;\n", "")
    assert run(*build, proto / "released/v0.9.0.binpb").returncode == 0
    assert run(proto / "generate").returncode == 0
    check = run(proto / "generate", "--check")
    assert check.returncode == 1
    assert 'field "3" with name "sequence"' in check.stdout
    assert "stale" not in check.stderr


def test_an_added_field_breaks_no_release(copied: Path) -> None:
    proto = copied / "proto"
    (proto / "released").mkdir()
    assert run("buf", "build", proto, "-o", proto / "released/v0.1.0.binpb").returncode == 0
    sequence = "  uint32 sequence = 3;\n"
    edit(proto / "baton/v1/ids.proto", sequence, f"{sequence}  // New.\n  uint32 new = 4;\n")
    assert run(proto / "generate").returncode == 0
    check = run(proto / "generate", "--check")
    assert check.returncode == 0, check.stdout + check.stderr
