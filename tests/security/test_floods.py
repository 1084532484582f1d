"""Floods, slow clients and rubbish on both ports: the leader goes on, within bounds (G11)."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.stalls import Stalls

CALLS = 2_000
SLOW = 300  # more than the HTTP port keeps open
READERS = 40
VALUE = b"x" * 65_536
MEGABYTES_MAX = 120  # more than before: buffers of every call, and what malloc keeps


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("floods")
    config = {"postgres": {"schema": "floods"}, "schedules": [{"name": "witness", "every": "1s"}]}
    with Cluster(directory / "lab", 1, Setup(postgres_url, config=config)) as cluster:
        cluster.wait_for_leader()
        cluster.wait_for("execute", name="witness")
        yield cluster


@pytest.fixture
def replica(cluster: Cluster) -> Iterator[Replica]:
    """Afterwards it leads, ticks, and is about as large as before; its term is the same one, but
    where the machine itself stood still or gave it no core."""
    replica = cluster[0]
    terms, before = len(cluster.events("become")), _megabytes(replica)
    with Stalls(replica.sidecar.pid) as stalls:
        yield replica
    ticks = len(cluster.events("execute", name="witness"))
    wait_until(lambda: len(cluster.events("execute", name="witness")) > ticks, 40, replica.describe)
    wait_until(lambda: replica.http("/readyz")[0] == 200, 20, replica.describe)
    kept = len(cluster.events("become")) == terms
    assert kept or stalls.cost_a_term, "it lost its term"
    assert _megabytes(replica) - before < MEGABYTES_MAX
    broken = [line["exception"][-600:] for line in replica.log() if "exception" in line]
    assert not broken, broken[:2]


def _megabytes(replica: Replica) -> float:
    status = Path(f"/proc/{replica.sidecar.pid}/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


async def test_thousands_of_calls_at_once(replica: Replica) -> None:
    """Each is answered, or refused with a code that says to come back."""
    async with grpc.aio.insecure_channel(replica.api_address) as channel:
        state = state_pb2_grpc.StateStub(channel)
        leadership = leadership_pb2_grpc.LeadershipStub(channel)

        async def call(n: int) -> str:
            try:
                if n % 2:
                    request = leadership_pb2.LeadershipGetRequest()
                    await leadership.Get(request, timeout=60)
                else:
                    put = state_pb2.StatePutRequest(key=f"flood/{n % 50}", value=b"v")
                    await state.Put(put, timeout=60)
            except grpc.aio.AioRpcError as error:
                return error.code().name
            return "OK"

        codes = Counter(await asyncio.gather(*(call(n) for n in range(CALLS))))
    assert codes["OK"] > CALLS / 2, codes
    assert codes.keys() <= {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}, codes


async def test_watchers_that_do_not_read(replica: Replica) -> None:
    """What they do not take is not kept for them: megabytes are written, none pile up."""
    async with grpc.aio.insecure_channel(replica.api_address) as channel:
        state = state_pb2_grpc.StateStub(channel)
        watch = state_pb2.StateWatchRequest(prefix="slow/")
        streams = [state.Watch(watch) for _ in range(READERS)]
        for stream in streams:
            await stream.initial_metadata()
        for n in range(100):
            put = state_pb2.StatePutRequest(key=f"slow/{n % 10}", value=VALUE)
            await state.Put(put, timeout=30)
        for stream in streams:
            stream.cancel()


# Each line of a schema doubles the work of applying it.
_REFERENCES = {n: {"$ref": f"#/$defs/d{n + 1}"} for n in range(40)}
DOUBLING: dict[str, dict[str, Any]] = {
    "anyOf": {f"d{n}": {"anyOf": [each] * 2} for n, each in _REFERENCES.items()},
    "dependentSchemas": {
        f"d{n}": {"dependentSchemas": {"a": each, "b": each}} for n, each in _REFERENCES.items()
    },
}


@pytest.mark.parametrize("keyword", DOUBLING)
def test_schemas_that_take_work_to_be_applied(replica: Replica, keyword: str) -> None:
    """It is refused; meanwhile pings and probes do not wait."""
    schema = {
        "unevaluatedProperties": False,
        "$defs": DOUBLING[keyword] | {"d40": False},
        "$ref": "#/$defs/d0",
    }
    policy = state_pb2.StatePolicy(
        schema=json.dumps(schema).encode(), initial=json.dumps({"a": 1, "b": 2}).encode()
    )
    schedule = schedules_pb2.Schedule(name="dear", cron="@daily", state=policy)
    request = schedules_pb2.SchedulesCreateRequest(schedule=schedule)
    with grpc.insecure_channel(replica.api_address) as channel:
        stub: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
        call = stub.Create.future(request, timeout=120)
        while not call.done():
            assert replica.http("/livez")[0] == 200
            time.sleep(0.1)
        assert call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "too much work" in call.details()


@contextmanager
def _connections(port: int, count: int, opening: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as open_:
        made = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            open_.enter_context(connection)
            connection.sendall(opening)
            made.append(connection)
        yield made


def test_connections_that_say_half_a_word_keep_no_probe_out(replica: Replica) -> None:
    """Slowloris: more of them than the port keeps, one more letter now and then."""
    slow = _connections(replica.http_port, SLOW, b"GET /livez HTTP/1.1\r\nx: ")
    with slow as connections:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            for connection in connections[-50:]:
                try:
                    connection.sendall(b"y")
                except OSError:
                    continue
            for path in ("/livez", "/readyz", "/startupz"):
                assert replica.http(path)[0] == 200
            time.sleep(0.2)


def test_clients_that_ask_and_do_not_read(replica: Replica) -> None:
    ask = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n" * 20
    with _connections(replica.http_port, SLOW, ask):
        for _ in range(5):
            assert replica.http("/livez")[0] == 200


NO_GRPC = (b"", b"PRI * HTTP/2.0\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02", b"\xff" * 99)


def test_connections_to_the_api_that_never_speak_grpc(replica: Replica) -> None:
    """Silence, half a preface, HTTP/1, TLS, rubbish: two hundred of each, and one that asks."""
    port = int(replica.api_address.rpartition(":")[2])
    for opening in NO_GRPC:
        with (
            _connections(port, 200, opening),
            grpc.insecure_channel(replica.api_address) as channel,
        ):
            stub: Any = leadership_pb2_grpc.LeadershipStub(channel)  # type: ignore[arg-type]
            assert stub.Get(leadership_pb2.LeadershipGetRequest(), timeout=20).leader.group


# What is sent to the port of the probes, and how the answer begins; nothing: it hangs up.
BAD_REQUESTS: dict[str, tuple[bytes, bytes]] = {
    "rubbish": (b"\x00\x01\x02\r\n\r\n", b"HTTP/1.1 400"),
    "no-version": (b"GET /livez\r\n\r\n", b"HTTP/1.1 200"),  # so HTTP/0.9 asked
    "unknown-method": (b"STEAL /livez HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 400"),
    "post": (b"POST /readyz HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 405"),
    "delete": (b"DELETE /metrics HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 405"),
    "unknown-path": (b"GET /admin HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 404"),
    "climbing-path": (b"GET /../../etc/passwd HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 404"),
    "encoded-path": (b"GET /%2e%2e/%00 HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 404"),
    "path-of-bytes": (b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 40"),
    "header-without-end": (b"GET /livez HTTP/1.1\r\nx: " + b"y" * 40_000, b""),
    "too-many-headers": (b"GET /livez HTTP/1.1\r\n" + b"x: y\r\n" * 10_000, b""),
    "huge-body": (b"GET /livez HTTP/1.1\r\ncontent-length: 99999\r\n\r\n" + b"x" * 99_999, b""),
    "huge-body-to-come": (b"GET /livez HTTP/1.1\r\ncontent-length: 99999\r\n\r\n", b""),
    "negative-length": (b"GET /livez HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"HTTP/1.1 400"),
    "two-lengths": (
        b"GET /livez HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", b"HTTP/1.1 400",
    ),
    "length-and-chunks": (
        b"GET /livez HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 400",
    ),
    "broken-chunk": (
        b"GET /livez HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 400",
    ),
    "odd-accept": (
        b"GET /metrics HTTP/1.0\r\naccept: " + b"," * 5_000 + b";q=x\r\n\r\n", b"HTTP/1.1 200",
    ),
    "odd-version": (
        b"GET /metrics HTTP/1.0\r\naccept: application/openmetrics-text;version=a.b.c\r\n\r\n",
        b"HTTP/1.1 200",
    ),
    "http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HTTP/1.1 400"),
    "websocket": (
        b"GET /health HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: close, upgrade\r\n"
        b"sec-websocket-key: x\r\n\r\n",
        b"HTTP/1.1 200",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_gets_its_answer_or_none(cluster: Cluster, name: str) -> None:
    """G11: never a 500, never a word about the inside; the probes go on."""
    replica = cluster[0]
    request, wanted = BAD_REQUESTS[name]
    with socket.create_connection(("127.0.0.1", replica.http_port), timeout=15) as connection:
        answer = _answer(connection, request)
    assert answer.startswith(wanted), answer[:200]
    assert wanted or not answer, answer[:200]
    assert b"Traceback" not in answer
    assert replica.http("/livez")[0] == 200


def _answer(connection: socket.socket, request: bytes) -> bytes:
    """What comes back; a connection that is torn down is no answer."""
    try:
        connection.sendall(request)
        return connection.recv(65536)
    except ConnectionError:
        return b""
