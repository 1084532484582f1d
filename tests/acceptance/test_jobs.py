"""Jobs with real sidecars and the Python client: submitted anywhere, executed, rescued."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from sidecar._proto.baton.v1 import job_types_pb2, jobs_pb2, jobs_pb2_grpc, runs_pb2
from tests.acceptance.test_attached_client import Pod, opened
from tests.lab.processes import boottime, wait_until


class Jobs:
    """The Jobs service of one pod."""

    def __init__(self, pod: Pod, channel: grpc.Channel) -> None:
        untyped: Any = channel
        self.stub: Any = jobs_pb2_grpc.JobsStub(untyped)
        self.pod = pod

    def submit(self, to: str = "a", seconds: float = 0, **more: Any) -> int:
        payload = f'{{"to": "{to}", "seconds": {seconds}}}'.encode()
        spec = job_types_pb2.JobSpec(name="send-mail", payload=payload, **more)
        request = jobs_pb2.JobsSubmitRequest(jobs=[spec])
        return int(self.stub.Submit(request, timeout=10).jobs[0].job_id)

    def get(self, job_id: int) -> jobs_pb2.Job:
        found: jobs_pb2.Job = self.stub.Get(jobs_pb2.JobsGetRequest(job_id=job_id), timeout=5).job
        return found

    def ended(self, job_id: int, seconds: float = 60) -> jobs_pb2.Job:
        def over() -> jobs_pb2.Job | None:
            job = self.get(job_id)
            return job if job.state == runs_pb2.RUN_STATE_ENDED else None

        return wait_until(over, seconds, lambda: f"{self.get(job_id)}\n{self.pod.logs()}")


@pytest.fixture
def open_all() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def pods(database_url: str, tmp_path: Path, open_all: ExitStack) -> list[Pod]:
    """Two pods, each with one process that executes jobs."""
    pods = [Pod(tmp_path / name, database_url) for name in ("one", "two")]
    for pod in pods:
        open_all.enter_context(pod.sidecar)
        open_all.enter_context(pod.app())
    return pods


@pytest.fixture
def jobs(pods: list[Pod], open_all: ExitStack) -> Jobs:
    found = Jobs(pods[0], open_all.enter_context(opened(pods[0])))

    def ready() -> bool:
        try:
            found.stub.Stats(jobs_pb2.JobsStatsRequest(), timeout=2)
        except grpc.RpcError:
            return False
        return True

    wait_until(ready, 60, pods[0].logs)
    return found


def test_a_submitted_job_is_executed_once(jobs: Jobs) -> None:
    """G13: through the API and in the user's own transaction; the result can be read."""
    ids = [jobs.submit(f"n{number}") for number in range(20)]
    for number, job_id in enumerate(ids):
        job = jobs.ended(job_id)
        assert job.outcome == runs_pb2.OUTCOME_SUCCEEDED
        assert f'"to":"n{number}"' in job.result.decode().replace(" ", "")
        assert job.attempt == 1


def test_a_job_enqueued_by_sql_is_executed_if_its_transaction_commits(
    jobs: Jobs, pods: list[Pod], database_url: str
) -> None:
    """G13: and not if it rolls back."""
    enqueue = "SELECT baton.enqueue('code', 'send-mail', %s::jsonb)"
    with psycopg.connect(database_url) as connection:
        row = connection.execute(enqueue, ['{"to": "rolled-back"}']).fetchone()
        connection.rollback()
        row = connection.execute(enqueue, ['{"to": "committed"}']).fetchone()
        connection.commit()
    assert row is not None
    assert jobs.ended(int(row[0])).outcome == runs_pb2.OUTCOME_SUCCEEDED
    assert "rolled-back" not in [each["to"] for pod in pods for each in pod.noted("mail")]


def held(jobs: Jobs, pod: Pod, seconds: float) -> set[int]:
    """Submit long jobs until this pod is executing some; returns those."""
    ids: set[int] = set()

    def executing() -> set[int]:
        ids.add(jobs.submit("a", seconds=seconds))
        return {each["run_id"] for each in pod.noted("mail")} & ids

    return wait_until(executing, 60, pod.logs)


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_the_jobs_of_a_dead_pod_are_rescued_in_seconds(
    jobs: Jobs, pods: list[Pod], fault: str
) -> None:
    """G14: by another pod, with a higher attempt and no retry used; late answers are refused."""
    victim = pods[1]
    mine = held(jobs, victim, seconds=30)
    since = boottime()
    getattr(victim.sidecar, fault)()

    def rescued() -> list[dict[str, Any]]:
        again = [each for each in pods[0].noted("mail") if each["attempt"] > 1]
        return again if {each["run_id"] for each in again} >= mine else []

    again = wait_until(rescued, 60, jobs.pod.logs)
    assert all(each["at"] - since < 20 for each in again)
    for job_id in mine:
        job = jobs.get(job_id)
        assert (job.failures, job.rescues) == (0, 1)


def test_a_pod_that_drains_hands_its_jobs_back(jobs: Jobs, pods: list[Pod]) -> None:
    """G18: what it could not finish runs elsewhere, with no retry used."""
    mine = held(jobs, pods[1], seconds=300)
    os.kill(pods[1].sidecar.pid, signal.SIGTERM)
    pods[1].sidecar.wait(60)
    wait_until(
        lambda: {e["run_id"] for e in pods[0].noted("mail") if e["attempt"] > 1} >= mine,
        30,
        jobs.pod.logs,
    )
    assert all(jobs.get(job_id).failures == 0 for job_id in mine)
