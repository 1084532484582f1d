"""Nobody is let in, and nothing leaks (G12); bad calls get clear errors and change nothing (G11)."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from devtools.servers import free_port
from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    deferreds_pb2_grpc,
    ids_pb2,
    ids_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    singletons_pb2,
    singletons_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from sidecar.adapters.grpc_server.paging import token_of
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Replica, Setup

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
# Of the two parts of a duration or a time the nanoseconds must not pull the other way.
HALF = Duration(seconds=1, nanos=-500_000_000)
MIXED = schedules_pb2.Schedule(name="mixed", every=HALF)
BEFORE = Timestamp(seconds=1_700_000_000, nanos=-1)
SECRET = "token-that-must-not-leak-4711"


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Replica]:
    """One pod for all bad calls: none of them may harm it."""
    directory = tmp_path_factory.mktemp("access")
    schema = {"postgres": {"schema": "access"}, "singletons": [{"name": "one"}]}
    with Cluster(directory / "lab", 1, Setup(postgres_url, config=schema)) as cluster:
        cluster.wait_for_leader()
        yield cluster[0]
        assert cluster[0].sidecar.running
        assert cluster.wait_for_leader() is cluster[0]


@pytest.fixture
def channel(replica: Replica) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(replica.api_address) as channel:
        yield channel


def _wait_ready(replica: Replica) -> None:
    wait_until(
        lambda: replica.http("/readyz")[0] == 200, 20, lambda: f"ready: {replica.describe()}"
    )


def _accepted(stub: Any, request: Any, metadata: tuple[tuple[str, str], ...]) -> bool:
    try:
        stub.Get(request, timeout=5, metadata=metadata)
    except grpc.RpcError:
        return False
    return True


def _error(call: Any) -> tuple[str, str, list[str]]:
    """Code, message, and the fields at fault."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    fields: list[str] = []
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                bad = error_details_pb2.BadRequest()
                if detail.Unpack(bad):
                    fields += [violation.field for violation in bad.field_violations]
    return error.code().name, error.details(), fields


Schedule = schedules_pb2.Schedule
BIG = b"x" * (1024 * 1024 + 1)

# ruff: noqa: E501 - a table reads best with a call per line
BAD_CALLS: list[tuple[str, Any, str, str, str]] = [
    # service, request, method, code, the field or a part of the message
    ("Leadership", leadership_pb2.LeadershipGetRequest(group="nope"), "Get", "NOT_FOUND", "nope"),
    ("Leadership", leadership_pb2.LeadershipResignRequest(group="nope"), "Resign", "NOT_FOUND", "nope"),
    ("Leadership", leadership_pb2.LeadershipListRequest(page_size=-1), "List", "INVALID_ARGUMENT", "page_size"),
    ("Leadership", leadership_pb2.LeadershipListRequest(page_size=5000), "List", "INVALID_ARGUMENT", "page_size"),
    ("Singletons", singletons_pb2.SingletonsGetRequest(name="nope"), "Get", "NOT_FOUND", "nope"),
    ("Singletons", singletons_pb2.SingletonsGetRequest(), "Get", "INVALID_ARGUMENT", "name"),
    # Repeated in the answer, it would be more than gRPC carries.
    ("Leadership", leadership_pb2.LeadershipGetRequest(group="\U0001f600" * 5000), "Get", "NOT_FOUND", "group"),
    ("Leadership", leadership_pb2.LeadershipResignRequest(group="%" * 5000), "Resign", "NOT_FOUND", "group"),
    ("Singletons", singletons_pb2.SingletonsGetRequest(name="\u00e9" * 5000), "Get", "NOT_FOUND", "name"),
    ("State", state_pb2.StateGetRequest(), "Get", "INVALID_ARGUMENT", "key"),
    ("State", state_pb2.StateGetRequest(key="a" * 256), "Get", "INVALID_ARGUMENT", "key"),
    ("State", state_pb2.StateGetRequest(key="missing"), "Get", "NOT_FOUND", "missing"),
    ("State", state_pb2.StateGetRequest(key="a\x00b"), "Get", "INVALID_ARGUMENT", "key"),
    ("State", state_pb2.StatePutRequest(key="k", value=BIG), "Put", "INVALID_ARGUMENT", "value"),
    ("State", state_pb2.StatePutRequest(value=b"v"), "Put", "INVALID_ARGUMENT", "key"),
    ("State", state_pb2.StatePutRequest(key="singleton-state:one", value=b"v"), "Put", "FAILED_PRECONDITION", "run"),
    ("State", state_pb2.StatePutRequest(key="k", value=b"v", expected_version=7), "Put", "ABORTED", "version"),
    ("State", state_pb2.StateDeleteRequest(key="singleton-state:one"), "Delete", "FAILED_PRECONDITION", "run"),
    ("State", state_pb2.StateListRequest(page_size=-5), "List", "INVALID_ARGUMENT", "page_size"),
    ("State", state_pb2.StateListRequest(page_token="rubbish\x01"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Runs", runs_pb2.RunsGetRequest(), "Get", "INVALID_ARGUMENT", "run_id"),
    ("Runs", runs_pb2.RunsGetRequest(run_id=2**63), "Get", "INVALID_ARGUMENT", "run_id"),
    ("Runs", runs_pb2.RunsGetRequest(run_id=99999999), "Get", "NOT_FOUND", "99999999"),
    ("Runs", runs_pb2.RunsCancelRequest(run_id=99999999), "Cancel", "NOT_FOUND", "99999999"),
    ("Runs", runs_pb2.RunsRetryRequest(run_id=99999999), "Retry", "NOT_FOUND", "99999999"),
    ("Runs", runs_pb2.RunsListRequest(page_token="!"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Runs", runs_pb2.RunsCheckpointRequest(step="s", value=b"v"), "Checkpoint", "INVALID_ARGUMENT", "run"),
    ("Runs", runs_pb2.RunsHeartbeatRequest(progress=0.5), "Heartbeat", "INVALID_ARGUMENT", "run"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=MIXED), "Create", "INVALID_ARGUMENT", "schedule.every"),
    ("Schedules", schedules_pb2.SchedulesBackfillRequest(name="x", from_at=BEFORE), "Backfill", "INVALID_ARGUMENT", "from_at"),
    ("State", state_pb2.StatePutRequest(key="k", ttl=HALF), "Put", "INVALID_ARGUMENT", "ttl"),
    ("Deferreds", deferreds_pb2.DeferredsCreateRequest(name="n", ttl=HALF), "Create", "INVALID_ARGUMENT", "ttl"),
    ("Deferreds", deferreds_pb2.DeferredsGetRequest(token="bdt_short"), "Get", "INVALID_ARGUMENT", "token"),
    # Tokens that no list gave out: names, and the token of another list.
    ("Schedules", schedules_pb2.SchedulesListRequest(page_token="each"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Leadership", leadership_pb2.LeadershipListRequest(page_token="default"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Singletons", singletons_pb2.SingletonsListRequest(page_token="one"), "List", "INVALID_ARGUMENT", "page_token"),
    ("State", state_pb2.StateListRequest(page_token="a2V5"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Runs", runs_pb2.RunsListRequest(page_token="12345"), "List", "INVALID_ARGUMENT", "page_token"),
    ("Runs", runs_pb2.RunsListRequest(page_token=token_of("7", "schedules", "False")), "List", "INVALID_ARGUMENT", "page_token"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(), "Create", "INVALID_ARGUMENT", "schedule"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="x")), "Create", "INVALID_ARGUMENT", "exactly one of"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="", cron="@daily")), "Create", "INVALID_ARGUMENT", "name"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="a b", cron="@daily")), "Create", "INVALID_ARGUMENT", "name"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="x", cron="0 0 30 2 *")), "Create", "INVALID_ARGUMENT", "cron"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="x", cron="61 * * * *")), "Create", "INVALID_ARGUMENT", "cron"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="x", cron="@daily", timezone="Mars/Base")), "Create", "INVALID_ARGUMENT", "timezone"),
    ("Schedules", schedules_pb2.SchedulesCreateRequest(schedule=Schedule(name="x", cron="@daily", group="nope")), "Create", "INVALID_ARGUMENT", "group"),
    ("Schedules", schedules_pb2.SchedulesGetRequest(name="nope"), "Get", "NOT_FOUND", "nope"),
    ("Schedules", schedules_pb2.SchedulesDeleteRequest(name="nope"), "Delete", "NOT_FOUND", "nope"),
    ("Schedules", schedules_pb2.SchedulesPauseRequest(name="nope"), "Pause", "NOT_FOUND", "nope"),
    ("Schedules", schedules_pb2.SchedulesTriggerRequest(name="nope"), "Trigger", "NOT_FOUND", "nope"),
    ("Schedules", schedules_pb2.SchedulesTriggerRequest(), "Trigger", "INVALID_ARGUMENT", "name"),
    ("Schedules", schedules_pb2.SchedulesPreviewRequest(), "Preview", "INVALID_ARGUMENT", "schedule"),
    ("Deferreds", deferreds_pb2.DeferredsCreateRequest(), "Create", "INVALID_ARGUMENT", "name"),
    ("Deferreds", deferreds_pb2.DeferredsGetRequest(token="rubbish"), "Get", "INVALID_ARGUMENT", "token"),
    ("Deferreds", deferreds_pb2.DeferredsCompleteRequest(token=""), "Complete", "INVALID_ARGUMENT", "token"),
    ("Deferreds", deferreds_pb2.DeferredsCompleteRequest(token="bdt_" + "A" * 43), "Complete", "NOT_FOUND", "deferred"),
    ("Ids", ids_pb2.IdsGenerateRequest(count=1_000_000), "Generate", "INVALID_ARGUMENT", "count"),
]  # fmt: skip
STUBS: dict[str, Any] = {
    "Leadership": leadership_pb2_grpc.LeadershipStub,
    "Singletons": singletons_pb2_grpc.SingletonsStub,
    "State": state_pb2_grpc.StateStub,
    "Runs": runs_pb2_grpc.RunsStub,
    "Schedules": schedules_pb2_grpc.SchedulesStub,
    "Deferreds": deferreds_pb2_grpc.DeferredsStub,
    "Ids": ids_pb2_grpc.IdsStub,
}


@pytest.mark.parametrize(
    ("service", "request_", "method", "code", "named"),
    BAD_CALLS,
    ids=[f"{n}-{call[0]}.{call[2]}" for n, call in enumerate(BAD_CALLS)],
)
def test_a_bad_call_gets_a_clear_error(
    channel: grpc.Channel, service: str, request_: Any, method: str, code: str, named: str
) -> None:
    """G11: the right code, the field named, nothing changed."""
    stub = STUBS[service](channel)
    got, message, fields = _error(lambda: getattr(stub, method)(request_, timeout=10))
    assert got == code, message
    assert named in message or any(named in field for field in fields), (message, fields)
    if code == "INVALID_ARGUMENT":
        assert fields


def test_a_message_over_four_mebibytes_is_refused(channel: grpc.Channel) -> None:
    """G11."""
    request = state_pb2.StatePutRequest(key="k", value=b"x" * (5 * 1024 * 1024))
    code, _, _ = _error(lambda: STUBS["State"](channel).Put(request, timeout=10))
    assert code == "RESOURCE_EXHAUSTED"


def test_an_unknown_method_is_unimplemented(channel: grpc.Channel) -> None:
    """G11."""
    call = channel.unary_unary("/baton.v1.State/Steal", None, None)
    assert _error(lambda: call(b"", timeout=10))[0] == "UNIMPLEMENTED"


def test_rubbish_in_place_of_a_message_is_refused(channel: grpc.Channel) -> None:
    """G11."""
    call = channel.unary_unary("/baton.v1.State/Get", None, None)
    assert _error(lambda: call(b"\xff\xff\xff", timeout=10))[0] == "INVALID_ARGUMENT"


def test_the_health_of_the_api_can_be_watched(channel: grpc.Channel) -> None:
    """G11: as every service of gRPC's own."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    for service, status in (
        ("", "SERVING"),
        ("baton.v1.State", "SERVING"),
        ("?", "SERVICE_UNKNOWN"),
    ):
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.ServingStatus.Value(status)
        watch.cancel()
    rubbish: Any = channel.unary_stream("/grpc.health.v1.Health/Watch", None, None)
    assert _error(lambda: next(rubbish(b"\xff\xff", timeout=10)))[0] == "INVALID_ARGUMENT"


def test_reflection_tells_what_is_served(channel: grpc.Channel) -> None:
    """G11: and of rubbish, that it is."""
    ask: Any = channel.stream_stream(REFLECTION, None, None)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = ask(iter([request.SerializeToString()]), timeout=10)
    assert b"baton.v1.State" in answer
    assert _error(lambda: next(ask(iter([b"\xff"]), timeout=10)))[0] == "INVALID_ARGUMENT"


def test_tokens_both_ways_and_rotated(tmp_path: Path, database_url: str) -> None:
    """G12: without or with a wrong token UNAUTHENTICATED; a changed file counts within a second.

    The file is read beside the event loop: a volume that hangs must not stop it.
    """
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    config = {"api": {"token_file": str(token)}, "app": {"token_file": str(token)}}
    with Cluster(tmp_path / "lab", 1, Setup(database_url, config=config)) as cluster:
        replica = cluster[0]
        _wait_ready(replica)
        request = leadership_pb2.LeadershipGetRequest()
        with grpc.insecure_channel(replica.api_address) as channel:
            stub: Any = leadership_pb2_grpc.LeadershipStub(channel)  # type: ignore[arg-type]
            for metadata in ((), (("baton-token", "wrong"),), (("baton-token", ""),)):
                call = lambda m=metadata: stub.Get(request, timeout=5, metadata=m)  # noqa: E731
                assert _error(call)[0] == "UNAUTHENTICATED"
            right = (("baton-token", SECRET),)
            stub.Get(request, timeout=5, metadata=right)
            token.write_text("another-secret-token")
            wait_until(lambda: not _accepted(stub, request, right), 5, "the old token is refused")
            assert (
                _error(lambda: stub.Get(request, timeout=5, metadata=right))[0] == "UNAUTHENTICATED"
            )
            stub.Get(request, timeout=5, metadata=(("baton-token", "another-secret-token"),))
        log = replica.sidecar.output
        assert SECRET not in log
        assert "another-secret-token" not in log


def test_a_socket_file_is_for_owner_and_group(tmp_path: Path, database_url: str) -> None:
    """G12: mode 0660; a file left by a killed process is replaced."""
    socket = Path("/tmp") / f"baton-{tmp_path.name[-8:]}-{id(tmp_path) % 10000}.sock"
    setup = Setup(database_url, config={"api": {"address": f"unix://{socket}"}})
    try:
        with Cluster(tmp_path / "lab", 1, setup) as cluster:
            replica = cluster[0]
            for _ in range(2):
                _wait_ready(replica)
                assert stat.S_IMODE(socket.stat().st_mode) == 0o660
                replica.sidecar.kill()
                replica.sidecar.start()
    finally:
        socket.unlink(missing_ok=True)


def test_the_socket_file_of_a_living_sidecar_is_left_to_it(
    tmp_path: Path, database_url: str
) -> None:
    """G11: the second one says so and ends; the first one is called as before."""
    with TemporaryDirectory(prefix="baton-") as short:
        socket = Path(short) / "api.sock"
        setup = Setup(database_url, config={"api": {"address": f"unix://{socket}"}})
        cluster = Cluster(tmp_path / "lab", 2, setup).start(sidecars=False)
        try:
            first, second = (replica.sidecar for replica in cluster.replicas)
            first.start()
            wait_until(socket.exists, 20, first.log.read_text)
            assert second.start().wait() == 1
            assert f"cannot listen on unix://{socket}: is another sidecar" in second.output
            assert "GROUP" in baton("status", "--address", f"unix://{socket}")
        finally:
            cluster.stop()


def test_what_is_no_socket_is_neither_replaced_nor_removed(
    tmp_path: Path, database_url: str
) -> None:
    """G11."""
    with TemporaryDirectory(prefix="baton-") as short:
        file = Path(short) / "notes"
        file.write_text("precious")
        for path, problem in (
            (file, "the file there is not a socket"),
            (Path(short), "the file there is not a socket"),
            (file.with_name("none") / "api.sock", f"there is no directory {short}/none"),
        ):
            config = tmp_path / "baton.yaml"
            url = f"postgres: {{url: {database_url!r}}}"
            http = f"http: {{address: '127.0.0.1:{free_port()}'}}"
            config.write_text(f"cluster: x\napi: {{address: 'unix://{path}'}}\n{url}\n{http}\n")
            command = [sys.executable, "-m", "sidecar", "run", "--config", str(config)]
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=120, check=False
            )
            assert ended.returncode == 1
            assert ended.stderr.endswith(
                f"baton: api.address: cannot listen on unix://{path}: {problem}\n"
            )
        assert file.read_text() == "precious"


def test_no_secret_in_log_health_metrics_or_process_list(tmp_path: Path, database_url: str) -> None:
    """G12: the database's password appears nowhere."""
    password = database_url.split(":")[2].split("@")[0]
    with Cluster(tmp_path / "lab", 1, Setup(database_url)) as cluster:
        cluster.wait_for_leader()
        replica = cluster[0]
        assert replica.session_wire
        replica.session_wire.refuse()
        replica.session_wire.cut()
        wait_until(
            lambda: any(line["event"] == "lock_session_refused" for line in replica.log()),
            20,
            lambda: "a refused connection",
        )
        processes = subprocess.run(
            ["ps", "-o", "args=", "-p", str(replica.sidecar.pid)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for text in (
            replica.sidecar.output,
            replica.http("/health")[1],
            replica.http("/metrics")[1],
            processes,
        ):
            assert password not in text


def test_a_command_tells_a_lost_postgres_from_a_lost_sidecar(
    tmp_path: Path, database_url: str
) -> None:
    """G11: whoever looks during an outage is not sent after the wrong process."""
    with Cluster(tmp_path / "lab", 1, Setup(database_url)) as cluster:
        cluster.wait_for_leader()
        for wire in cluster[0].wires:
            wire.refuse()
            wire.cut()
        command = [sys.executable, "-m", "sidecar", "runs", "--address", cluster[0].api_address]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith("baton: UNAVAILABLE: ")


def test_a_remote_api_address_is_refused_at_start(tmp_path: Path) -> None:
    """G12: unless it is explicitly allowed."""
    file = tmp_path / "baton.yaml"
    file.write_text(
        "cluster: x\npostgres: {url: postgresql://u@h/d}\napi: {address: 0.0.0.0:9401}\n"
    )
    command = [sys.executable, "-m", "sidecar", "run", "--config", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert f"{file}:3: api.address:" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_taken_port_is_one_clear_line(tmp_path: Path, replica: Replica) -> None:
    """G11: the second sidecar on the same port says so and ends with 1."""
    command = [*replica.sidecar.command]
    ended = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("baton: ")
    assert "Traceback" not in ended.stderr
