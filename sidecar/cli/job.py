"""`baton job submit | get | list | cancel | retry | watch`: jobs, from any pod."""

import argparse
import sys
from typing import Any

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import jobs_pb2_grpc
from sidecar._proto.baton.v1.job_types_pb2 import JobSpec, JobUnique
from sidecar._proto.baton.v1.schedules_pb2 import RetryPolicy
from sidecar.adapters.convert import duration
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.cli.job_tables import described, print_jobs, print_json


def main(options: argparse.Namespace) -> int:
    async def act(sidecar: Connection) -> int:
        stub = jobs_pb2_grpc.JobsStub(sidecar.channel)
        limits: dict[str, Any] = {"timeout": CALL_SECONDS, "metadata": sidecar.metadata}
        return await _ACTIONS[options.action](options, stub, limits)

    return call(options, act)


async def _submit(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    request = pb.JobsSubmitRequest(jobs=[_spec(options)], request_id=options.request_id)
    (job,) = (await stub.Submit(request, **limits)).jobs
    if options.output == "json":
        print_json({"job_id": str(job.job_id), "duplicate": job.duplicate})
    else:
        print(job.job_id)
        if job.duplicate:
            print("baton: this job is there already", file=sys.stderr)
    return 0


def _spec(options: argparse.Namespace) -> JobSpec:
    priority = (options.priority or "unspecified").upper()
    spec = JobSpec(
        name=options.name,
        payload=options.payload.encode(errors="surrogateescape"),
        queue=options.queue,
        priority=f"JOB_PRIORITY_{priority}",
        key=options.key,
        timeout=duration(options.timeout),
        labels=dict(options.labels),
        batch=options.batch,
    )
    if options.delay is not None:
        spec.delay.CopyFrom(duration(options.delay))
    if options.unique is not None:
        spec.unique.CopyFrom(JobUnique(key=options.unique))
    if options.attempts is not None:
        spec.retry.CopyFrom(RetryPolicy(attempts=options.attempts))
    return spec


async def _get(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    request = pb.JobsGetRequest(job_id=options.job_id, wait=duration(options.wait))
    limits["timeout"] += options.wait or 0.0
    job = (await stub.Get(request, **limits)).job
    if options.output == "json":
        print_json(job)
    else:
        print(described(job))
    return 0


async def _list(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    request = pb.JobsListRequest(filter=filter_of(options), page_size=options.count)
    print_jobs((await stub.List(request, **limits)).jobs, options.output, "no jobs")
    return 0


async def _cancel(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    request = pb.JobsCancelRequest(
        job_ids=options.job_ids, filter=filter_of(options), note=options.note
    )
    limits["timeout"] = BULK_SECONDS
    done = await stub.Cancel(request, **limits)
    if options.output == "json":
        print_json({"cancelled": done.cancelled, "requested": done.requested})
    else:
        print(f"cancelled: {done.cancelled}, asked to stop: {done.requested}")
    return 0


async def _retry(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    job = (await stub.Retry(pb.JobsRetryRequest(job_id=options.job_id), **limits)).job
    print_jobs([job], options.output, "")
    return 0


async def _watch(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> int:
    request = pb.JobsWatchRequest(job_id=options.job_id)
    async for message in stub.Watch(request, metadata=limits["metadata"]):
        print_jobs([message.job], options.output, "")
        sys.stdout.flush()
    return 0


BULK_SECONDS = 30.0  # up to ten thousand jobs
_ACTIONS = {
    "submit": _submit,
    "get": _get,
    "list": _list,
    "cancel": _cancel,
    "retry": _retry,
    "watch": _watch,
}


def filter_of(options: argparse.Namespace) -> pb.JobFilter:
    """Not every command has every filter."""
    state = (getattr(options, "state", None) or "unspecified").upper()
    outcome = (getattr(options, "outcome", None) or "unspecified").upper()
    return pb.JobFilter(
        name=options.name,
        queue=options.queue,
        key=options.key,
        batch=options.batch,
        labels=dict(options.labels),
        state=f"RUN_STATE_{state}",
        outcome=f"OUTCOME_{outcome}",
        error_contains=getattr(options, "error", ""),
    )
