"""A sidecar needs no more rights than docs/security.md gives it (G12).

`make least` runs the integration and acceptance suites with such a role; this is the short proof.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration

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
    state_pb2,
    state_pb2_grpc,
)
from tests.conftest import NewDatabase
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup
from tests.security.roles import least_url

CONFIG = {
    "postgres": {"migrate": "never"},
    "singletons": [{"name": "one"}],
    "schedules": [{"name": "steps", "cron": "0 0 29 2 *"}, {"name": "tick", "every": "1s"}],
}


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    return least_url(new_database())


def test_all_of_it_works_with_the_documented_grants(tmp_path: Path, url: str) -> None:
    """G12: every service, the work of a leader, a crash and a hand-over; nothing was denied."""
    with Cluster(tmp_path / "lab", 2, Setup(url, config=CONFIG, profile="fast")) as cluster:
        for replica in cluster.replicas:
            replica.tell(execute={"steps": "steps:3"})
        leader = cluster.wait_for_leader()
        cluster.wait_for("execute", 2, name="tick")
        _use_everything(leader)
        cluster.takeover(lambda replica: replica.freeze(), timeout=30)
        for replica in cluster.replicas:  # whoever led by then
            replica.thaw()
        cluster.wait_for("execute", 4, name="tick", timeout=30)
        for replica in cluster.replicas:
            assert "permission denied" not in replica.sidecar.output, replica.sidecar.output
            assert "must be owner" not in replica.sidecar.output


def _use_everything(replica: Replica) -> None:
    with grpc.insecure_channel(replica.api_address) as channel:
        state: Any = state_pb2_grpc.StateStub(channel)  # type: ignore[arg-type]
        ttl = Duration(seconds=60)
        put = state_pb2.StatePutRequest(key="k", value=b"v", request_id="r", ttl=ttl)
        assert state.Put(put, timeout=10).entry.version
        assert state.Get(state_pb2.StateGetRequest(key="k"), timeout=10).entry.value == b"v"
        assert state.Delete(state_pb2.StateDeleteRequest(key="k"), timeout=10).deleted
        state.Clear(state_pb2.StateClearRequest(prefix="k"), timeout=10)
        deferreds: Any = deferreds_pb2_grpc.DeferredsStub(channel)  # type: ignore[arg-type]
        create = deferreds_pb2.DeferredsCreateRequest(name="d")
        token = deferreds.Create(create, timeout=10).token
        complete = deferreds_pb2.DeferredsCompleteRequest(token=token, value=b"v")
        deferreds.Complete(complete, timeout=10)
        ids: Any = ids_pb2_grpc.IdsStub(channel)  # type: ignore[arg-type]
        assert ids.Generate(ids_pb2.IdsGenerateRequest(count=2), timeout=10).ids
        _run_and_schedule(channel)
        leadership: Any = leadership_pb2_grpc.LeadershipStub(channel)  # type: ignore[arg-type]
        ask = leadership_pb2.LeadershipGetRequest()
        wait_until(lambda: leadership.Get(ask, timeout=10).leader.leader_runner_id, 20)


def _run_and_schedule(channel: grpc.Channel) -> None:
    schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
    runs: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
    made = schedules_pb2.Schedule(name="made", cron="@daily")
    schedules.Create(schedules_pb2.SchedulesCreateRequest(schedule=made), timeout=10)
    schedules.Pause(schedules_pb2.SchedulesPauseRequest(name="made"), timeout=10)
    schedules.Resume(schedules_pb2.SchedulesResumeRequest(name="made"), timeout=10)
    schedules.Delete(schedules_pb2.SchedulesDeleteRequest(name="made"), timeout=10)
    trigger = schedules_pb2.SchedulesTriggerRequest(name="steps")
    get = runs_pb2.RunsGetRequest(run_id=schedules.Trigger(trigger, timeout=10).run_id)
    run = wait_until(lambda: _ended(runs.Get(get, timeout=10).run), 20, "the end of the run")
    assert run.outcome == runs_pb2.OUTCOME_SUCCEEDED, run


def _ended(run: runs_pb2.Run) -> runs_pb2.Run | None:
    return run if run.state == runs_pb2.RUN_STATE_ENDED else None


FORBIDDEN = (
    "CREATE TABLE baton.mine ()",
    "CREATE SCHEMA mine",
    "CREATE TABLE public.mine ()",
    "DROP TABLE baton.run",
    "ALTER TABLE baton.run DISABLE TRIGGER ALL",
    "TRUNCATE baton.run",
    "UPDATE baton.meta SET schema_version = 999",
    "DELETE FROM baton.deferred_key",
    "CREATE ROLE mine",
    "ALTER SYSTEM SET fsync = off",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT rolpassword FROM pg_authid",
)


def test_and_nothing_else(url: str) -> None:
    """G12: what a stolen password of the run time cannot do."""
    with psycopg.connect(url, autocommit=True) as stolen:
        for statement in FORBIDDEN:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stolen.execute(statement.encode())


def test_without_the_grants_it_says_what_is_missing(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    """G11: not ready, and the log has Postgres' own words."""
    owner = new_database()
    url = least_url(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(b"REVOKE ALL ON ALL TABLES IN SCHEMA baton FROM baton_runtime")
    with Cluster(tmp_path / "lab", 1, Setup(url, config=CONFIG)) as cluster:
        replica = cluster[0]

        def told() -> bool:
            lines = [line for line in replica.log() if line["event"] == "postgres_refused"]
            return any("permission denied for table" in line["problem"] for line in lines)

        wait_until(told, 20, replica.describe)
        status, body = replica.http("/readyz")
        assert status == 503
        assert "permission denied for table" in body
