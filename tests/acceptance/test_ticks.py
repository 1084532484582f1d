"""Every tick has exactly one outcome, through everything that happens to its leaders (G4, G5).

The oracle is this file: it knows when ticks were due and counts rows; it uses no code of the
product.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from devtools.servers import PostgresServer
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, boottime, wait_until
from tests.lab.replica import Replica, Setup

SECOND = timedelta(seconds=1)
SCHEDULES = [
    {"name": "each", "every": "1s", "catch_up": "all", "catch_up_max": 1000},
    {"name": "newest", "every": "1s", "catch_up": "latest"},
    {"name": "none", "every": "1s", "catch_up": "none"},
    {"name": "minute", "cron": "* * * * *"},
]


@dataclass(frozen=True, slots=True)
class Row:
    first: datetime
    last: datetime
    count: int
    state: str
    outcome: str | None
    reason: str | None
    attempt: int
    started_at: datetime | None


def _rows(url: str, name: str) -> list[Row]:
    query = """SELECT tick, coalesce(tick_last, tick), tick_count, state, outcome, reason, attempt,
               started_at FROM baton.run WHERE kind = 'schedule' AND name = %s ORDER BY tick"""
    with psycopg.connect(url) as connection:
        return [Row(*row) for row in connection.execute(query, (name,))]


def _account(rows: list[Row], step: timedelta = SECOND) -> Counter[str]:
    """Outcomes by tick; fails on a tick without a row, with two rows, or started early."""
    assert rows
    outcomes: Counter[str] = Counter()
    due = rows[0].first
    for row in rows:
        assert row.first == due, f"expected a row for {due}, found {row}"
        assert row.last == row.first + (row.count - 1) * step, row
        assert row.started_at is None or row.started_at >= row.first, f"early: {row}"
        assert row.state == "ended", f"without an outcome: {row}"
        outcomes[row.reason or str(row.outcome)] += row.count
        due = row.last + step
    return outcomes


def _ended_until(url: str, name: str, until: datetime) -> Callable[[], bool]:
    def done() -> bool:
        rows = [row for row in _rows(url, name) if row.first <= until]
        return bool(rows) and rows[-1].last >= until - SECOND and all(r.outcome for r in rows)

    return done


def _settled(url: str, names: list[str]) -> dict[str, list[Row]]:
    """All rows up to a moment by which everything that was due has ended."""
    until = datetime.now(UTC).replace(microsecond=0)
    for name in names:
        wait_until(_ended_until(url, name, until), 30, partial("the ticks of {}".format, name))
    return {name: [r for r in _rows(url, name) if r.last <= until] for name in names}


def _setup(url: str, **config: Any) -> Setup:
    return Setup(url, config={"schedules": SCHEDULES, "election": {"drain": "4s"}, **config})


def _kill(cluster: Cluster, leader: Replica) -> None:
    since = boottime()
    leader.kill()
    cluster.wait_for_takeover(since, leader)
    leader.app.start()
    leader.sidecar.start()


def _freeze(cluster: Cluster, leader: Replica) -> None:
    since = boottime()
    leader.freeze()
    cluster.wait_for_takeover(since, leader)
    leader.thaw()


def _isolate(cluster: Cluster, leader: Replica) -> None:
    since = boottime()
    leader.isolate()
    cluster.wait_for_takeover(since, leader)
    leader.heal()


def _roll(cluster: Cluster, leader: Replica) -> None:
    since = boottime()
    leader.sidecar.terminate()
    cluster.wait_for_takeover(since, leader)
    assert leader.sidecar.wait() == 0
    leader.sidecar.start()


def test_every_tick_through_a_storm_of_faults(tmp_path: Path, database_url: str) -> None:
    """G3 G4 G5: leaders killed, frozen, cut off and rolled, twice each; no tick lost or doubled."""
    with Cluster(tmp_path / "lab", 3, _setup(database_url)) as cluster:
        cluster.wait_for_leader()
        for fault in (_kill, _freeze, _roll, _isolate, _roll, _kill):
            time.sleep(3)
            fault(cluster, cluster.wait_for_leader())
        cluster.wait_for_leader()
        time.sleep(3)
        rows = _settled(database_url, ["each", "newest", "none"])
        assert set(_account(rows["each"])) == {"succeeded"}
        assert set(_account(rows["newest"])) <= {"succeeded", "coalesced"}
        assert set(_account(rows["none"])) <= {"succeeded", "coalesced", "misfire"}
        if minutes := [row for row in _rows(database_url, "minute") if row.outcome]:
            _account(minutes, timedelta(minutes=1))  # the storm may lie between two full minutes
        cluster.check("become", "execute")


def test_sidecars_down_and_catch_up_to_the_tick(tmp_path: Path, database_url: str) -> None:
    """G4: nobody runs for 25 s; then each policy does what it says."""
    with Cluster(tmp_path / "lab", 2, _setup(database_url)) as cluster:
        cluster.wait_for_leader()
        wait_until(lambda: len(_rows(database_url, "each")) > 2, 20, lambda: "first ticks")
        for replica in cluster.replicas:
            replica.kill()
        time.sleep(25)
        last = {name: _rows(database_url, name)[-1].last for name in ("each", "newest", "none")}
        for replica in cluster.replicas:
            replica.app.start()
            replica.sidecar.start()
        cluster.wait_for_leader()
        time.sleep(3)
        rows = _settled(database_url, ["each", "newest", "none"])
        missed = {name: [row for row in rows[name] if row.first > last[name]] for name in rows}
        assert set(_account(rows["each"])) == {"succeeded"}
        newest = missed["newest"][0]
        assert newest.reason == "coalesced"
        assert newest.count >= 24
        assert missed["newest"][1].outcome == "succeeded"
        assert missed["none"][0].reason == "misfire"
        assert missed["none"][0].count >= 14
        _account(rows["newest"])
        _account(rows["none"])


def test_postgres_down_and_every_tick_accounted_for(tmp_path: Path) -> None:
    """G4: the database is away for 15 s and comes back."""
    with (
        PostgresServer() as server,
        Cluster(tmp_path / "lab", 2, _setup(server.url)) as cluster,
    ):
        cluster.wait_for_leader()
        wait_until(lambda: len(_rows(server.url, "each")) > 2, 20, lambda: "first ticks")
        server.stop()
        time.sleep(15)
        server.start()
        cluster.wait_for_leader()
        time.sleep(3)
        rows = _settled(server.url, ["each", "newest"])
        assert set(_account(rows["each"])) == {"succeeded"}
        _account(rows["newest"])
        cluster.check("become", "execute")


def test_redelivered_with_the_same_key_and_a_higher_attempt(
    tmp_path: Path, database_url: str
) -> None:
    """G5: the leader dies in the middle of a run."""
    config = {"schedules": [{"name": "slow", "every": "1h", "start_at": "2020-01-01T00:00:00Z"}]}
    with Cluster(tmp_path / "lab", 2, Setup(database_url, config=config)) as cluster:
        for replica in cluster.replicas:
            replica.tell(execute={"slow": "sleep:30|ok"})
        leader = cluster.wait_for_leader()
        _wait_for_the_schedule(database_url)
        run_id = int(baton("trigger", "slow", "--address", leader.api_address))
        first = cluster.wait_for("execute")[0]
        cluster.takeover(lambda replica: replica.kill())
        second = cluster.wait_for("execute", 2)[1]
        assert first.app != second.app
        assert first.fields["run_id"] == second.fields["run_id"] == run_id
        assert first.fields["idempotency_key"] == second.fields["idempotency_key"]
        assert (first.fields["attempt"], second.fields["attempt"]) == (1, 2)
        with psycopg.connect(database_url) as connection:
            wait_until(
                lambda: connection.execute(
                    "SELECT 1 FROM baton.run WHERE id = %s AND outcome = 'succeeded'", (run_id,)
                ).fetchone(),
                10,
                lambda: "success",
            )


def _wait_for_the_schedule(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(
            lambda: connection.execute("SELECT 1 FROM baton.schedule").fetchone(),
            10,
            "the schedule",
        )


def test_a_frozen_leader_that_wakes_up_commits_nothing(tmp_path: Path, database_url: str) -> None:
    """G3: its run answers after another leader took over: refused; one success in the rows."""
    config = {"schedules": [{"name": "slow", "every": "1h", "start_at": "2020-01-01T00:00:00Z"}]}
    with Cluster(tmp_path / "lab", 2, Setup(database_url, config=config)) as cluster:
        for replica in cluster.replicas:
            replica.tell(execute={"slow": "sleep:3|ok"})
        leader = cluster.wait_for_leader()
        _wait_for_the_schedule(database_url)
        run_id = int(baton("trigger", "slow", "--address", leader.api_address))
        cluster.wait_for("execute")
        since = boottime()
        leader.sidecar.freeze()
        cluster.wait_for_takeover(since, leader)
        cluster.wait_for("execute", 2)
        leader.sidecar.thaw()
        time.sleep(3)
        with psycopg.connect(database_url) as connection:
            row = connection.execute(
                "SELECT outcome, attempt, runner_id, history FROM baton.run WHERE id = %s",
                (run_id,),
            ).fetchone()
        assert row is not None
        assert row[:2] == ("succeeded", 2)
        assert sum(event["outcome"] == "succeeded" for event in row[3]) == 1
        cluster.check("become", "execute")
