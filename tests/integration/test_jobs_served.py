"""The Jobs service beside a real worker: what is submitted is executed, watched and cancelled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import runs_pb2, schedules_pb2
from sidecar.model.run import Answer, Failed, Run, Succeeded
from tests.integration.jobs_api_lab import Api, Spec, serve
from tests.integration.jobs_lab import JobsLab

ONCE = schedules_pb2.RetryPolicy(attempts=1)


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(database_url, tmp_path) as api:
        yield api


async def test_a_submitted_job_is_executed_and_its_waiter_told(api: Api) -> None:
    """G13: one outcome each; the idempotency key that is shown is the one that the app got."""
    keys: list[str] = []

    async def handler(run: Run) -> Answer:
        keys.append(run.idempotency_key)
        return Succeeded(b"done " + run.payload)

    async with JobsLab(api.lab, api.lab.identity).pod(handler):
        (job_id,) = await api.submit(Spec(name="work", payload=b"1"))
        job = await api.get(job_id, 60)
        assert (job.outcome, job.result) == (runs_pb2.OUTCOME_SUCCEEDED, b"done 1")
        assert (job.attempt, job.runner_id) == (1, "pod")
        assert keys == [job.idempotency_key]


async def test_a_dead_letter_is_replayed(api: Api) -> None:
    broken = True

    async def handler(run: Run) -> Answer:
        return Failed("broken") if broken else Succeeded(b"mended")

    async with JobsLab(api.lab, api.lab.identity).pod(handler):
        (job_id,) = await api.submit(Spec(name="work", retry=ONCE))
        job = await api.get(job_id, 60)
        assert (job.outcome, job.error) == (runs_pb2.OUTCOME_FAILED, "broken")
        broken = False
        request = pb.JobsReplayRequest(filter=pb.JobFilter(error_contains="broken"))
        assert (await api.stub.Replay(request)).replayed == 1
        job = await api.get(job_id, 60)
        assert (job.result, job.attempt) == (b"mended", 2)


async def test_a_running_job_is_cancelled(api: Api) -> None:
    async def handler(run: Run) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("it was cancelled")

    async with JobsLab(api.lab, api.lab.identity).pod(handler) as pod:
        (job_id,) = await api.submit(Spec(name="work"))
        await pod.running()
        done = await api.stub.Cancel(pb.JobsCancelRequest(job_ids=[job_id], note="stop"))
        assert (done.cancelled, done.requested) == (0, 1)
        job = await api.get(job_id, 60)
        assert job.reason == runs_pb2.SKIP_REASON_OPERATOR
        assert job.history[-1].cause == "cancelled: stop"
