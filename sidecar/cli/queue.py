"""`baton queue list | pause | resume`: the queues of jobs, from any pod."""

import argparse
from typing import Any

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import jobs_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.cli.job_tables import print_json, print_queues


def main(options: argparse.Namespace) -> int:
    async def act(sidecar: Connection) -> int:
        stub = jobs_pb2_grpc.JobsStub(sidecar.channel)
        limits: dict[str, Any] = {"timeout": CALL_SECONDS, "metadata": sidecar.metadata}
        if options.action == "list":
            print_queues((await stub.Stats(pb.JobsStatsRequest(), **limits)).queues, options.output)
            return 0
        if options.action == "pause":
            request = pb.JobsPauseQueueRequest(queue=options.queue, note=options.note)
            queue = (await stub.PauseQueue(request, **limits)).queue
        else:
            resume = pb.JobsResumeQueueRequest(queue=options.queue)
            queue = (await stub.ResumeQueue(resume, **limits)).queue
        if options.output == "json":
            print_json(queue)
        else:
            print(f"{options.queue} is {'paused' if queue.paused else 'resumed'}")
        return 0

    return call(options, act)
