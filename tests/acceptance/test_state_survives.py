"""Nothing acknowledged is lost, whatever happens to leaders, Postgres and the wire (G6, G7)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import grpc
import psycopg

from devtools.servers import PostgresServer
from sidecar._proto.baton.v1 import state_pb2, state_pb2_grpc
from tests.acceptance.client_lab import ClientCluster
from tests.lab.cluster import Cluster
from tests.lab.processes import boottime, wait_until
from tests.lab.replica import Replica, Setup

COUNTER = [{"name": "counter", "every": "1s", "catch_up": "all", "overlap": "queue"}]


def _state(replica: Replica, key: str) -> dict[str, Any]:
    with grpc.insecure_channel(replica.api_address) as channel:
        stub: Any = state_pb2_grpc.StateStub(channel)  # type: ignore[arg-type]
        request = state_pb2.StateGetRequest(key=key, consistency=state_pb2.CONSISTENCY_STRONG)
        return dict(json.loads(stub.Get(request, timeout=5).entry.value))


def _successes(url: str) -> tuple[int, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE outcome = 'succeeded'),"
            " count(*) FILTER (WHERE outcome IS NULL)"
            " FROM baton.run WHERE name = 'counter'"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def test_returned_state_and_outcome_are_one(tmp_path: Path) -> None:
    """G5 G6 G7: the count in the state is the number of successes, after every kind of fault."""
    with PostgresServer() as server:
        setup = Setup(server.url, config={"schedules": COUNTER})
        with Cluster(tmp_path / "lab", 3, setup) as cluster:
            for replica in cluster.replicas:
                replica.tell(execute={"counter": "counter"})
            leader = cluster.wait_for_leader()
            time.sleep(3)
            since = boottime()
            leader.freeze()
            cluster.wait_for_takeover(since, leader)
            leader.thaw()
            time.sleep(3)
            second = cluster.wait_for_leader()
            assert second.pool_wire
            lost = second.pool_wire.drop_next_answer(match=b"COMMIT")
            assert lost.wait(15), "no commit went through the wire"
            time.sleep(3)
            server.restart()
            third = cluster.wait_for_leader()
            time.sleep(2)
            third.kill()
            cluster.wait_for_leader(timeout=30)
            time.sleep(2)
            living = next(r for r in cluster.replicas if r.sidecar.running)
            for replica in cluster.replicas:
                replica.tell(execute={"counter": "status:FAILED_PRECONDITION"})
            time.sleep(2)
            wait_until(lambda: _successes(server.url)[1] <= 1, 15, lambda: "quiet")
            count = _state(living, "schedule-state:counter")["count"]
            assert count == _successes(server.url)[0]
            assert count > 10
            cluster.check("become", "execute")


def test_a_singleton_goes_on_from_the_last_acknowledged_count(tmp_path: Path) -> None:
    """G3 G7: killed, frozen, cut off, rolled, its Postgres restarted, an answer of it swallowed: no
    acknowledged count is ever repeated or lost.
    """
    config = {"singletons": [{"name": "counter", "restart_after": "200ms"}]}
    with PostgresServer() as server:
        setup = Setup(server.url, config=config)
        module = "tests.acceptance.counting_app"
        with ClientCluster(tmp_path / "lab", 3, setup, module) as cluster:
            ledger = cluster.ledger

            def counts_on() -> None:
                ledger.wait("acknowledged", len(ledger.lines("acknowledged")) + 10, timeout=30)

            ledger.wait("acknowledged", 10, timeout=40)
            old = cluster.leading()
            old.kill()
            counts_on()
            cluster.revive()
            frozen = cluster.leading()
            frozen.freeze()
            counts_on()
            frozen.thaw()
            cut = cluster.leading(but=frozen)  # which may not know yet that it slept
            cut.isolate()
            counts_on()
            cut.heal()
            wire = cluster.leading(but=cut).pool_wire
            assert wire
            # The answer to a write on behalf of a run says whether it was allowed.
            assert wire.drop_next_answer(match=b"allowed").wait(15), "no write went through"
            counts_on()
            server.restart()
            counts_on()
            cluster.leading().sidecar.terminate()
            counts_on()
        # A frozen app writes down what it was told only when it wakes up: the term gives the order.
        lines = sorted(ledger.lines("acknowledged"), key=lambda line: int(line["epoch"]))
        counts = [line["count"] for line in lines]
        starts = len(ledger.lines("start"))
        assert starts >= 6
        assert counts == sorted(set(counts)), "an acknowledged count came twice, or went back"
        # A write whose acknowledgement was lost with its pod counts too: one per life at most.
        assert counts[-1] - len(counts) <= starts
