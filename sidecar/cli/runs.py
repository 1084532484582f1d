"""`baton runs`: recent runs, or everything about one."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.cli.tables import RUN_HEADER, run_row, table


def main(options: argparse.Namespace) -> int:
    async def show(sidecar: Connection) -> int:
        stub = runs_pb2_grpc.RunsStub(sidecar.channel)
        request = runs_pb2.RunsListRequest(
            name=options.name or "",
            outcome=f"OUTCOME_{(options.outcome or 'unspecified').upper()}",
            page_size=options.count,
        )
        found = await stub.List(request, timeout=CALL_SECONDS, metadata=sidecar.metadata)
        if options.json:
            shown = [MessageToDict(run, preserving_proto_field_name=True) for run in found.runs]
            print(json.dumps(shown, indent=2))
        else:
            now = datetime.now(UTC)
            runs = [await _with_reason(stub, run, sidecar) for run in found.runs]
            print(table(RUN_HEADER, (run_row(run, now) for run in runs)) or "no runs")
        return 0

    return call(options, show)


async def _with_reason(stub: Any, run: runs_pb2.Run, sidecar: Connection) -> runs_pb2.Run:
    """A run that the app declined, with its history, which has the app's reason."""
    if run.reason != runs_pb2.SKIP_REASON_APP_DECLINED:
        return run
    request = runs_pb2.RunsGetRequest(run_id=run.run_id)
    try:
        found = await stub.Get(request, timeout=CALL_SECONDS, metadata=sidecar.metadata)
    except grpc.aio.AioRpcError:
        return run  # pruned meanwhile
    declined: runs_pb2.Run = found.run
    return declined
