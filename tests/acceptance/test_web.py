"""JSON over HTTP on a real sidecar: every service answers, beside a leader that goes on leading."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.lab.processes import wait_until
from tests.lab.replica import Replica

if TYPE_CHECKING:
    from tests.conftest import NewCluster

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(replica: Replica, method: str, **body: Any) -> tuple[int, Any]:
    """Status and content of one call; `method` is Service/Method."""
    request = urllib.request.Request(
        f"http://{replica.web_address}/baton.v1.{method}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with _DIRECT.open(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_services_answer_over_http(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, web=True, profile="steady")
    leader = cluster.wait_for_leader()
    status, answer = call(leader, "Leadership/Get")
    assert (status, answer["leader"]["isLeader"]) == (200, True)
    schedule = {"name": "hourly", "every": "3600s"}
    assert call(leader, "Schedules/Create", schedule=schedule)[0] == 200
    assert call(leader, "Schedules/Create", schedule=schedule)[1]["code"] == "already_exists"
    _, triggered = call(leader, "Schedules/Trigger", name="hourly")

    def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = call(leader, "Runs/Get", runId=triggered["runId"])[1]["run"]
        return found if found["state"] == "RUN_STATE_ENDED" else None

    assert wait_until(ended, 60, lambda: "the end of the run")["outcome"] == "OUTCOME_SUCCEEDED"
    _, stored = call(leader, "State/Put", key="greeting", value="aGVsbG8=")
    assert call(leader, "State/Get", key="greeting")[1]["entry"] == stored["entry"]
    assert len(call(leader, "Ids/Generate", count=3)[1]["ids"]) == 3
    cluster.check()


def test_a_port_in_use_costs_a_pod_its_web_and_nothing_else(new_cluster: NewCluster) -> None:
    """Two pods of one machine share the default port: the second one leads all the same."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = new_cluster(1, config={"web": {"address": address}})
        leader = cluster.wait_for_leader()
        (event,) = (line for line in leader.log() if line["event"] == "web_not_served")
    assert event["problem"] == (
        f"web.address: {address} is in use by another process; choose another port"
    )
