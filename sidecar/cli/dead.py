"""`baton dead list | show | replay | discard`: jobs that failed for good, from any pod."""

import argparse
from typing import Any

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import jobs_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.cli.job import BULK_SECONDS, filter_of
from sidecar.cli.job_tables import described, print_jobs, print_json


def main(options: argparse.Namespace) -> int:
    async def act(sidecar: Connection) -> int:
        stub = jobs_pb2_grpc.JobsStub(sidecar.channel)
        limits: dict[str, Any] = {"timeout": CALL_SECONDS, "metadata": sidecar.metadata}
        match options.action:
            case "list":
                request = pb.JobsListDeadRequest(filter=filter_of(options), page_size=options.count)
                found = await stub.ListDead(request, **limits)
                print_jobs(found.jobs, options.output, "no dead letters")
            case "show":
                job = (await stub.Get(pb.JobsGetRequest(job_id=options.job_id), **limits)).job
                print_json(job) if options.output == "json" else print(described(job))
            case _:
                await _change(options, stub, limits | {"timeout": BULK_SECONDS})
        return 0

    return call(options, act)


async def _change(options: argparse.Namespace, stub: Any, limits: dict[str, Any]) -> None:
    selection: dict[str, Any] = {
        "job_ids": options.job_ids,
        "filter": filter_of(options),
        "dry_run": options.dry_run,
    }
    if options.action == "replay":
        count = (await stub.Replay(pb.JobsReplayRequest(**selection), **limits)).replayed
    else:
        count = (await stub.Discard(pb.JobsDiscardRequest(**selection), **limits)).discarded
    done = "replayed" if options.action == "replay" else "discarded"
    if options.output == "json":
        print_json({done: count, "dry_run": options.dry_run})
    else:
        print(f"would be {done}: {count}" if options.dry_run else f"{done}: {count}")
