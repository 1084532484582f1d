"""The Jobs service of one cluster over gRPC, on a real Postgres. What workers do is done by SQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2

from sidecar._proto.baton.v1 import job_types_pb2, jobs_pb2_grpc
from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar.adapters.grpc_server.jobs import JobsService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.postgres.job_catalogue import PostgresJobCatalogue
from sidecar.adapters.postgres.job_submissions import PostgresJobSubmissions
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource
from sidecar.jobs.catalogue import Jobs
from sidecar.jobs.submissions import Submissions
from sidecar.jobs.wakeup import Wakeup
from sidecar.jobs.watches import Watches
from tests.integration.runs_lab import Lab, Row, laboratory

Code = grpc.StatusCode
Spec = job_types_pb2.JobSpec
Unique = job_types_pb2.JobUnique


@dataclass
class Api:
    lab: Lab
    address: str
    stub: Any
    wakeup: Wakeup
    store: PostgresJobCatalogue

    async def submit(self, *jobs: Spec, **fields: Any) -> list[int]:
        """The ids of the jobs."""
        request = pb.JobsSubmitRequest(jobs=jobs or [Spec(name="mail")], **fields)
        return [job.job_id for job in (await self.stub.Submit(request)).jobs]

    async def get(self, job_id: int, wait_seconds: float = 0) -> pb.Job:
        request = pb.JobsGetRequest(job_id=job_id, wait=seconds(wait_seconds))
        job: pb.Job = (await self.stub.Get(request)).job
        return job

    async def sql(self, text: str, **parameters: Any) -> list[Row]:
        return await self.lab.sql(text, **parameters)

    # ── what a worker does ──────────────────────────────────────────────────────────────────────

    async def start(self, job_id: int) -> None:
        await self.sql(
            "INSERT INTO baton.worker (id, cluster_id, runner_id) SELECT 7, id, 'pod-7'"
            " FROM baton.cluster WHERE name = 'test' ON CONFLICT DO NOTHING"
        )
        await self.sql(
            "UPDATE baton.job SET state = 'running', worker_id = 7, attempt = attempt + 1,"
            " started_at = now() WHERE id = %(id)s",
            id=job_id,
        )

    async def wait_for_retry(self, job_id: int) -> None:
        await self.start(job_id)
        await self.sql(
            "UPDATE baton.job SET state = 'ready', worker_id = NULL, failures = 1, error = 'boom',"
            " due_at = now() + interval '1 hour', history = baton.run_event('[]', 'waiting', NULL,"
            " 1, 7, 'pod-7', 'boom') WHERE id = %(id)s",
            id=job_id,
        )

    async def succeed(self, job_id: int, result: bytes = b"") -> None:
        await self.sql(
            "WITH gone AS (DELETE FROM baton.job WHERE id = %(id)s RETURNING *), counted AS ("
            " INSERT INTO baton.job_batch_count (cluster_id, batch, succeeded)"
            " SELECT cluster_id, batch, 1 FROM gone WHERE batch IS NOT NULL)"
            " INSERT INTO baton.job_ended (id, due_at, cluster_id, attempt, failures, rescues,"
            " priority, outcome, name, queue, key, batch, result) SELECT id, due_at, cluster_id, 1,"
            " failures, rescues, priority, 'succeeded', name, queue, key, batch, %(result)s"
            " FROM gone",
            id=job_id,
            result=result,
        )

    async def bury(self, job_id: int, error: str = "boom") -> None:
        """Make it a dead letter."""
        await self.sql(
            "WITH gone AS (DELETE FROM baton.job WHERE id = %(id)s RETURNING *), counted AS ("
            " INSERT INTO baton.job_batch_count (cluster_id, batch, failed)"
            " SELECT cluster_id, batch, 1 FROM gone WHERE batch IS NOT NULL)"
            " INSERT INTO baton.job_dead (id, due_at, cluster_id, attempt, attempts_free, failures,"
            " checkpoint_count, checkpoint_bytes, rescues, priority, name, queue, key, batch,"
            " runner_id, error, history, payload, content_type, labels) SELECT id, due_at,"
            " cluster_id, 3, 0, 3, 0, 0, 5, priority, name, queue, key, batch, 'pod-7', %(error)s,"
            " baton.run_event('[]', 'ended', 'failed', 3, 7, 'pod-7', %(error)s), payload,"
            " content_type, labels FROM gone JOIN baton.job_body USING (id)",
            id=job_id,
            error=error,
        )


@asynccontextmanager
async def serve(url: str, directory: Path, cluster: str = "test") -> AsyncIterator[Api]:
    async with laboratory(url, cluster=cluster) as lab:
        wakeup = Wakeup(lab.hints)
        store = PostgresJobCatalogue(lab.database, lab.who)
        watches = Watches(store)
        submissions = Submissions(PostgresJobSubmissions(lab.database, lab.who), wakeup)
        address = f"unix:{directory}/{cluster}.sock"
        server = ApiServer(address, Token(SecretSource()))
        service = JobsService(Jobs(store, submissions, watches, wakeup))
        server.add(jobs_pb2_grpc.add_JobsServicer_to_server, service, "baton.v1.Jobs")
        await server.start()
        polls = asyncio.create_task(watches.run())
        async with grpc.aio.insecure_channel(address) as channel:
            yield Api(lab, address, jobs_pb2_grpc.JobsStub(channel), wakeup, store)
        await server.stop(0)
        polls.cancel()
        await asyncio.wait({polls})
        assert polls.cancelled()  # it polled until the end


async def refused(call: Awaitable[Any]) -> tuple[Code, str]:
    """The status of a call that must fail, and the field that it names."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code(), _field(error)
    raise AssertionError("the call was accepted")


def _field(error: grpc.aio.AioRpcError) -> str:
    metadata: Any = error.trailing_metadata() or ()
    for key, value in metadata:
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                if detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
                    bad = error_details_pb2.BadRequest.FromString(detail.value)
                    return str(bad.field_violations[0].field)
    return ""


def seconds(value: float) -> Duration:
    whole, part = divmod(value, 1)
    return Duration(seconds=int(whole), nanos=round(part * 1e9))


def at(epoch_seconds: float) -> Timestamp:
    return Timestamp(seconds=int(epoch_seconds))
