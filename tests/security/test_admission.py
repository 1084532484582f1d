"""Hostile HTTP/2 peers cost neither the term nor the memory of a leader (G11).

Each attack runs over the TCP address and over the socket file, with and without the token; at a
tenth of its size, or at its full size when marked `slow`. Afterwards and meanwhile: the term is
kept, memory stays within bounds and falls back, probes answer, ticks are on time.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar._proto.baton.v1 import leadership_pb2, leadership_pb2_grpc
from tests.lab.cluster import Cluster
from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Setup
from tests.lab.stalls import STALL_SECONDS_MAX, Stalls
from tests.security import http2
from tests.security.http2 import Attack
from tests.security.witness import Witness, gap_seconds, megabytes

MEGABYTES_MAX = 150
BACK_MEGABYTES_MAX = 60  # above the start, once it is over
PROBE_SECONDS_MAX = 1.0
LATE_SECONDS_MAX = 1.0
TOKEN = "the-token-of-this-test"
FULL = pytest.mark.slow

Supply = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Flood:
    supply: Callable[[str], Supply]
    connections: int = 4
    frames_max: int | None = None
    reads: bool = True


def _calls(method: str) -> Callable[[str], Supply]:
    return lambda token: lambda: http2.calls(http2.request(method, token))


# The first number is that of connections; streams are a thousand on each.
SMALL = {
    "health-watch": Flood(_calls(http2.HEALTH_WATCH), 2, 1000),
    "leadership-watch": Flood(_calls(http2.LEADERSHIP_WATCH), 1, 1000),
    "ping": Flood(lambda _: http2.pings, 1),
    "hpack-bomb": Flood(lambda token: lambda: http2.hpack_bomb(token), 1),
    "continuation": Flood(lambda _: http2.continuations, 1),
    "rapid-reset": Flood(lambda token: lambda: http2.resets(token), 1),
    "unread-answers": Flood(_calls("/baton.v1.Leadership/Get"), 1, reads=False),
}
LARGE = {
    "health-watch-20000": Flood(_calls(http2.HEALTH_WATCH), 20, 1000),
    "leadership-watch-10000": Flood(_calls(http2.LEADERSHIP_WATCH), 10, 1000),
    "ping-4": Flood(lambda _: http2.pings),
    "ping-4-unread": Flood(lambda _: http2.pings, reads=False),
    "hpack-bomb-4": Flood(lambda token: lambda: http2.hpack_bomb(token)),
    "continuation-4": Flood(lambda _: http2.continuations),
    "empty-continuation-4": Flood(lambda _: http2.empty_continuations),
    "settings-4": Flood(lambda _: http2.settings),
    "settings-4-unread": Flood(lambda _: http2.settings, reads=False),
    "priority-4": Flood(lambda _: http2.priorities),
    "window-update-4": Flood(lambda _: http2.window_updates),
    "unknown-4": Flood(lambda _: http2.unknown_frames),
    "empty-data-4": Flood(lambda _: http2.empty_data),
    "rapid-reset-4": Flood(lambda token: lambda: http2.resets(token)),
    "unread-answers-4": Flood(_calls("/baton.v1.Leadership/Get"), reads=False),
}


@pytest.fixture(scope="module", params=["tcp", "unix"])
def cluster(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_url: str,
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp(request.param)
    token_file = directory / "token"
    token_file.write_text(TOKEN)
    api = {"token_file": str(token_file)}
    # A path of at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="baton-test-") as sockets:
        if request.param == "unix":
            api["address"] = f"unix://{sockets}/api.sock"
        config = {
            "api": api,
            "postgres": {"schema": f"admission_{request.param}"},
            "schedules": [{"name": "witness", "every": "1s"}],
        }
        with Cluster(directory / "lab", 1, Setup(postgres_url, config=config)) as cluster:
            cluster.wait_for_leader()
            cluster.wait_for("execute", name="witness")
            yield cluster


def _address(cluster: Cluster) -> str:
    return str(cluster[0].config()["api"]["address"])


@pytest.mark.parametrize("token", ["", TOKEN], ids=["no-token", "token"])
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=FULL) for name in LARGE)])
def test_a_flood_costs_neither_the_term_nor_the_memory(
    cluster: Cluster, name: str, token: str
) -> None:
    """G11: the term is kept, memory is bounded and falls back, probes answer, ticks are on time."""
    flood, seconds = (SMALL[name], 2.0) if name in SMALL else (LARGE[name], 8.0)
    replica = cluster[0]
    terms, before, began = len(cluster.events("become")), megabytes(replica), boottime()
    attack = Attack(
        _address(cluster),
        flood.supply(token),
        connections=flood.connections,
        frames_max=flood.frames_max,
        reads=flood.reads,
    )
    with Stalls() as stalls, Witness(replica) as witness:
        with attack:
            time.sleep(seconds)
        ticks = len(cluster.events("execute", name="witness"))
        cluster.wait_for("execute", ticks + 2, name="witness")
    assert attack.sent_bytes > 10_000
    assert witness.megabytes - before < MEGABYTES_MAX
    wait_until(lambda: megabytes(replica) - before < BACK_MEGABYTES_MAX, 30, replica.describe)
    kept = len(cluster.events("become")) == terms
    assert kept or stalls.seconds > STALL_SECONDS_MAX, f"it lost its term; {stalls.seconds:.2f} s"
    assert not witness.failed or stalls.seconds > STALL_SECONDS_MAX, witness.failed[:3]
    assert witness.slowest < PROBE_SECONDS_MAX + stalls.seconds
    assert gap_seconds(cluster, began) - 1 < LATE_SECONDS_MAX + stalls.seconds
    broken = [line["exception"][-600:] for line in replica.log() if "exception" in line]
    assert not broken, broken[:2]


def test_a_stream_too_many_is_told_when_to_come_back(cluster: Cluster) -> None:
    """Without a token sixteen may watch; one more gets RESOURCE_EXHAUSTED and a delay."""
    with grpc.insecure_channel(_address(cluster)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        streams = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(16)]
        for stream in streams:
            next(stream)
        late = stub.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        with pytest.raises(grpc.RpcError):
            next(late)
        assert late.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        sent = dict(late.trailing_metadata())["grpc-status-details-bin"]
        status = status_pb2.Status.FromString(sent)
        retry = error_details_pb2.RetryInfo()
        assert any(detail.Unpack(retry) for detail in status.details)
        assert retry.retry_delay.seconds == 1
        for stream in streams:
            stream.cancel()


def test_one_connection_cannot_take_all_streams(cluster: Cluster) -> None:
    """Of Leadership.Watch with the token 500 are open on a connection; more are refused."""
    metadata = (("baton-token", TOKEN),)
    request = leadership_pb2.LeadershipWatchRequest()
    with grpc.insecure_channel(_address(cluster)) as channel:
        stub: Any = leadership_pb2_grpc.LeadershipStub(channel)  # type: ignore[arg-type]
        streams = [stub.Watch(request, timeout=120, metadata=metadata) for _ in range(600)]
        try:
            answers = Counter(_first(stream) for stream in streams)
        finally:
            for stream in streams:
                stream.cancel()
    assert answers == {"OK": 500, "RESOURCE_EXHAUSTED": 100}


def _first(stream: Any) -> str:
    try:
        next(stream)
    except grpc.RpcError:
        return str(stream.code().name)
    return "OK"


def test_what_it_listens_on_inside_has_no_name(cluster: Cluster) -> None:
    """Nobody goes around the limits: the socket of gRPC is in no directory."""
    pid = cluster[0].sidecar.pid
    names = [
        line.split()[-1]
        for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()
        if line.endswith("/api.sock") and "baton-" in line and "baton-test-" not in line
    ]
    assert not [name for name in names if Path(name).exists()]
