"""A cluster with something to see on every page: failures, steps, a takeover, hostile text."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import psycopg

from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica

HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    "\u202egnp.exe\x07\n\"'&amp;"
)
CONFIG: dict[str, Any] = {
    "web": {"dashboard": "operate"},
    "groups": ["default", "reports"],
    "singletons": [{"name": "order-coordinator"}],
    "schedules": [
        {"name": "invoice-export", "every": "2s", "group": "default"},
        {"name": "nightly-cleanup", "cron": "0 2 * * *", "timezone": "Europe/Berlin"},
        {"name": "report-digest", "every": "5s", "group": "reports"},
        {"name": "stock-sync", "every": "3s", "retry": {"attempts": 1}},
        {"name": "checkout-settlement", "cron": "*/20 * * * *"},
    ],
}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(replica: Replica, method: str, token: str = "", **body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(
        f"http://{replica.web_address}/baton.v1.{method}", json.dumps(body).encode(), headers
    )
    with _DIRECT.open(request, timeout=30) as response:
        return json.load(response)


def prepare(cluster: Cluster, database_url: str) -> Replica:
    """Something of everything has happened; the leader of `default`."""
    for replica in cluster.replicas:
        replica.tell(
            execute={
                "order-coordinator": "hang",
                "stock-sync": "fail:the warehouse answered 503",
                "checkout-settlement": "steps:5",
            }
        )
    leader = cluster.wait_for_leader()
    settled = call(leader, "Schedules/Trigger", name="checkout-settlement")["runId"]
    for number in range(12):
        value = "eyJ0b3RhbCI6IDQyfQ=="
        call(leader, "State/Put", key=f"order/{number:04}", value=value)
    call(leader, "State/Put", key=HOSTILE[:200].replace("\x07", "").replace("\n", ""), value="AP8=")
    call(leader, "Schedules/Pause", name="nightly-cleanup", note="until the migration is over")
    wait_until(
        lambda: call(leader, "Runs/Get", runId=settled)["run"]["state"] == "RUN_STATE_ENDED",
        60,
        lambda: "the end of the run with steps",
    )
    wait_until(
        lambda: call(leader, "Runs/List", outcome="OUTCOME_FAILED").get("runs"),
        60,
        lambda: "a failed run",
    )
    plant_hostile_run(database_url)
    return leader


def plant_hostile_run(database_url: str) -> None:
    """As if an app, or whoever writes to the tables, wanted to harm whoever looks."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        text = HOSTILE.replace("\x00", "")
        connection.execute(
            "INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, outcome, due_at,"
            " started_at, finished_at, error, runner_id, progress_message, history)"
            " SELECT g.cluster_id, g.id, 'trigger', %(text)s, now(), 'ended', 'failed', now(),"
            " now(), now(), repeat(%(text)s, 200), %(text)s, %(text)s,"
            " baton.run_event('[]', 'running', NULL, 1, 1, %(text)s, %(text)s)"
            " FROM baton.leader_group AS g WHERE g.name = 'default' LIMIT 1",
            {"text": text},
        )
