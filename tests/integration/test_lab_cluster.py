"""The lab's cluster: real toy apps and real wires; the test itself plays the sidecars' part."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration

from devtools.servers import PostgresServer
from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc
from sidecar.config import load
from tests.lab import netns
from tests.lab.cluster import Cluster
from tests.lab.netns import Namespace
from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Replica, Setup


@pytest.fixture
def cluster(tmp_path: Path, database_url: str, redis_url: str) -> Iterator[Cluster]:
    setup = Setup(database_url, redis_url, profile="fast", groups=("default", "other"))
    cluster = Cluster(tmp_path / "lab", 2, setup).start(sidecars=False)
    yield cluster
    cluster.stop()


def _call(replica: Replica, method: str, request: object) -> None:
    with grpc.insecure_channel(replica.app_address) as channel:
        stub = callback_pb2_grpc.AppCallbackStub(channel)  # type: ignore[arg-type]
        getattr(stub, method)(request, timeout=20, wait_for_ready=True)


def _become(replica: Replica, epoch: int, seconds: int = 3) -> None:
    context = callback_pb2.ClusterContext(group="default", epoch=epoch, is_leader=True)
    request = callback_pb2.OnBecomeLeaderRequest(
        context=context, trusted_for=Duration(seconds=seconds)
    )
    _call(replica, "OnBecomeLeader", request)


def _lose(replica: Replica, epoch: int) -> None:
    context = callback_pb2.ClusterContext(group="default", epoch=epoch)
    request = callback_pb2.OnLoseLeadershipRequest(context=context, reason="LOSS_REASON_RESIGNED")
    _call(replica, "OnLoseLeadership", request)


@pytest.mark.parametrize("profile", ["default", "fast"])
def test_its_configuration_is_a_valid_one(tmp_path: Path, profile: str) -> None:
    config = {"singletons": [{"name": "one"}], "election": {"drain": "5s"}}
    setup = Setup("postgresql://u:p@127.0.0.1:5432/x", profile=profile, config=config)
    replica = Replica("r0", tmp_path / "r0", setup, None)
    replica.start(sidecar=False)
    try:
        settings = load(replica.config_file, {})
    finally:
        replica.stop()
    assert settings.cluster == "lab"
    assert [singleton.name for singleton in settings.singletons] == ["one"]


def test_a_hand_over_is_seen(cluster: Cluster) -> None:
    first, second = cluster.replicas
    assert cluster.leader() is None
    _become(first, 1)
    assert cluster.wait_for_leader() is first
    assert cluster.leader("other") is None

    def hand_over(leader: Replica) -> None:
        _lose(leader, 1)
        _become(second, 2)

    takeover = cluster.takeover(hand_over)
    assert takeover.replica is second
    assert 0 < takeover.seconds < 5
    assert takeover.epoch == 2
    cluster.check("become", "lose")


def test_two_leaders_are_caught(cluster: Cluster) -> None:
    """G1 broken on purpose, through real processes."""
    for epoch, replica in enumerate(cluster.replicas, start=1):
        _become(replica, epoch, seconds=20)
    with pytest.raises(AssertionError, match="two leaders"):
        cluster.check()


def test_trust_runs_out_by_itself(cluster: Cluster) -> None:
    _become(cluster[0], 1, seconds=4)
    assert cluster.leader() is cluster[0]
    wait_until(lambda: cluster.leader() is None, 15)


def test_a_dead_pod_and_its_return(cluster: Cluster) -> None:
    replica = cluster[0]
    _become(replica, 1)
    replica.kill()
    assert not replica.app.running
    replica.app.start()
    cluster.wait_for("start", count=2, app=replica.name)
    _lose(replica, 0)
    cluster.check("start", "become", "lose")


def test_a_failed_wait_tells_what_the_processes_said(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match=r"a takeover of default\n--- r0 app \(running\)"):
        cluster.wait_for_takeover(boottime(), cluster[0], timeout=0.2)


def test_wires_can_be_cut_one_by_one(cluster: Cluster) -> None:
    replica = cluster[0]
    config = replica.config()["postgres"]
    assert replica.session_wire is not None
    with (
        psycopg.connect(config["url"], autocommit=True) as pool,
        psycopg.connect(config["direct_url"], autocommit=True) as session,
    ):
        assert replica.session_wire.cut() == 1
        pool.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
        replica.isolate()
        pool.pgconn.send_query(b"SELECT 1")
        time.sleep(0.2)
        pool.pgconn.consume_input()
        assert pool.pgconn.is_busy()
        replica.heal()

        def answered() -> bool:  # get_result would block with the GIL, and the proxy with it
            pool.pgconn.consume_input()
            return not pool.pgconn.is_busy()

        wait_until(answered, 5, "the answer that was held back")
        while pool.pgconn.get_result() is not None:
            pass


@pytest.mark.skipif(bool(netns.why_not()), reason=netns.why_not() or "never")
def test_a_replica_in_a_namespace_reaches_postgres_until_cut(tmp_path: Path) -> None:
    with Namespace() as namespace:
        listen = {"listen_addresses": f"127.0.0.1,{namespace.outer_address}"}
        with PostgresServer(settings=listen) as server:
            netns.admit(server)
            cluster = Cluster(tmp_path / "lab", 1, Setup(server.url), [namespace])
            cluster.start(sidecars=False)
            replica = cluster[0]
            url = replica.config()["postgres"]["direct_url"]
            ask = "import psycopg, sys; psycopg.connect(sys.argv[1], connect_timeout=2).close()"
            command = namespace.command([sys.executable, "-c", ask, url])

            def asked() -> int:
                return subprocess.run(command, capture_output=True, check=False).returncode

            try:
                wait_until(lambda: asked() == 0, 10, "an answer from inside")
                replica.isolate()
                assert asked() != 0
                replica.heal()
                assert asked() == 0
            finally:
                cluster.stop()
