"""`baton drain`: hand over all groups and stop campaigning; the preStop hook."""

import argparse

from sidecar._proto.baton.v1 import operations_pb2, operations_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call

# Longer than any useful drain in a pod; Kubernetes ends the hook before that.
_WAIT_SECONDS = 3600.0


def main(options: argparse.Namespace) -> int:
    async def drain(sidecar: Connection) -> int:
        stub = operations_pb2_grpc.OperationsStub(sidecar.channel)
        await stub.Drain(
            operations_pb2.OperationsDrainRequest(wait=options.wait),
            timeout=_WAIT_SECONDS if options.wait else CALL_SECONDS,
            metadata=sidecar.metadata,
        )
        print("drained" if options.wait else "draining")
        return 0

    return call(options, drain)
