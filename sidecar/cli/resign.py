"""`baton resign GROUP`: hand over one group, whichever pod leads it."""

import argparse

from sidecar._proto.baton.v1 import leadership_pb2, leadership_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call


def main(options: argparse.Namespace) -> int:
    async def resign(sidecar: Connection) -> int:
        stub = leadership_pb2_grpc.LeadershipStub(sidecar.channel)
        answer = await stub.Resign(
            leadership_pb2.LeadershipResignRequest(group=options.group),
            timeout=CALL_SECONDS,
            metadata=sidecar.metadata,
        )
        print(f"{answer.leader.group}: {answer.leader.leader_runner_id} hands over")
        return 0

    return call(options, resign)
