"""`baton pause`, `resume` and `trigger`: one schedule, from any pod."""

import argparse
from typing import Any

from sidecar._proto.baton.v1 import schedules_pb2, schedules_pb2_grpc
from sidecar.cli.api import CALL_SECONDS, Connection, call


def main(options: argparse.Namespace) -> int:
    async def act(sidecar: Connection) -> int:
        stub = schedules_pb2_grpc.SchedulesStub(sidecar.channel)
        limits: dict[str, Any] = {"timeout": CALL_SECONDS, "metadata": sidecar.metadata}
        name = options.name
        match options.action:
            case "pause":
                request = schedules_pb2.SchedulesPauseRequest(name=name, note=options.note)
                await stub.Pause(request, **limits)
                print(f"{name} is paused")
            case "resume":
                await stub.Resume(schedules_pb2.SchedulesResumeRequest(name=name), **limits)
                print(f"{name} is resumed")
            case "trigger":
                trigger = schedules_pb2.SchedulesTriggerRequest(
                    name=name, request_id=options.request_id
                )
                if options.payload is not None:
                    trigger.payload = options.payload.encode(errors="surrogateescape")
                print((await stub.Trigger(trigger, **limits)).run_id)
        return 0

    return call(options, act)
