"""An app on bare stubs that conforms, or breaks one promise: `--fault NAME`.

work    a schedule that takes 0.2 s
life    a singleton that beats until its call is cancelled
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar._proto.baton.v1 import (
    callback_pb2,
    callback_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
)

Call = grpc.aio.ServicerContext[Any, Any]
Code = grpc.StatusCode


class App(callback_pb2_grpc.AppCallbackServicer):
    def __init__(self, fault: str, token: str, runs: runs_pb2_grpc.RunsStub) -> None:
        self._fault, self._token, self._runs = fault, token, runs
        self._lost: dict[str, int] = {}
        self._led: set[int] = set()
        self._one = asyncio.Lock()
        self._beats: set[asyncio.Task[None]] = set()

    async def OnBecomeLeader(
        self, request: callback_pb2.OnBecomeLeaderRequest, context: Call
    ) -> callback_pb2.OnBecomeLeaderResponse:
        await self._admit(context)
        if self._fault == "becomes-with-an-error":
            await context.abort(Code.INTERNAL, "no")
        if self._fault == "leads-once" and self._led - {request.context.epoch}:
            await context.abort(Code.INTERNAL, "never again")
        self._led.add(request.context.epoch)
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(
        self, request: callback_pb2.OnLoseLeadershipRequest, context: Call
    ) -> callback_pb2.OnLoseLeadershipResponse:
        await self._admit(context)
        group, epoch = request.context.group, request.context.epoch
        known, first = group == "default", epoch > self._lost.get(group, 0)
        if self._fault == "refuses-epoch-zero" and not epoch and not self._led:
            await context.abort(Code.INVALID_ARGUMENT, "epoch: must not be 0")
        if self._fault == "loses-once" and known and epoch and not first:
            await context.abort(Code.FAILED_PRECONDITION, "lost already")
        if self._fault == "loses-known-terms" and known and epoch not in self._led | {0}:
            await context.abort(Code.NOT_FOUND, "no such term")
        if self._fault == "refuses-unknown-enums" and request.reason > 6:
            await context.abort(Code.INVALID_ARGUMENT, "reason: not known")
        if (
            self._fault == "hangs-when-it-loses"
            and known
            and epoch in self._led
            and not self._lost.get("default")
        ):
            self._lost[group] = epoch
            await asyncio.Event().wait()
        if epoch:
            self._lost[group] = max(epoch, self._lost.get(group, 0))
        async with self._turn():
            return callback_pb2.OnLoseLeadershipResponse()

    async def Execute(
        self, request: callback_pb2.ExecuteRequest, context: Call
    ) -> callback_pb2.ExecuteResponse:
        await self._admit(context)
        about = request.context
        if about.epoch <= self._lost.get(about.group, 0) and self._fault != "never-forgets":
            await context.abort(Code.UNAVAILABLE, "this term is over")
        if request.name not in ("work", "life"):
            await self._unknown(context)
        elif self._fault == "refuses-second-attempts" and request.attempt > 1:
            await context.abort(Code.ALREADY_EXISTS, "seen before")
        elif request.name == "work":
            async with self._turn():
                await asyncio.sleep(0.2)
        else:
            await self._live(request)
        return callback_pb2.ExecuteResponse()

    async def _unknown(self, context: Call) -> None:
        if self._fault == "takes-any-handler":
            return
        if self._fault == "fails-on-unknown-handlers":
            raise KeyError("no such handler")
        if self._fault == "seems-not-to-be-there":
            await context.abort(Code.UNIMPLEMENTED, "no such handler")
        await context.abort(Code.NOT_FOUND, "no such handler")

    async def _live(self, request: callback_pb2.ExecuteRequest) -> None:
        beating = asyncio.create_task(self._beat(request))
        self._beats.add(beating)
        try:
            await asyncio.shield(beating)
        finally:
            if self._fault != "goes-on":
                beating.cancel()

    async def _beat(self, request: callback_pb2.ExecuteRequest) -> None:
        run = runs_pb2.RunRef(
            run_id=request.run_id, attempt=request.attempt, epoch=request.context.epoch
        )
        while True:
            try:
                await self._runs.Heartbeat(runs_pb2.RunsHeartbeatRequest(run=run), timeout=1)
            except grpc.aio.AioRpcError as error:
                print(error.code(), flush=True)
            await asyncio.sleep(0.2)

    async def _admit(self, context: Call) -> None:
        given = dict(context.invocation_metadata() or ()).get("baton-token")
        if self._token and self._fault != "ignores-the-token" and given != self._token:
            await context.abort(Code.UNAUTHENTICATED, "wrong token")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._fault != "does-one-thing-at-a-time":
            yield
            return
        async with self._one:
            yield


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # it has no types
    def __init__(self, fault: str) -> None:
        self._status = "NOT_SERVING" if fault == "is-not-serving" else "SERVING"

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Call
    ) -> health_pb2.HealthCheckResponse:
        return health_pb2.HealthCheckResponse(status=self._status)


async def serve(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    small = (("grpc.max_receive_message_length", 128 * 1024),)
    server = grpc.aio.server(options=small if arguments.fault == "takes-small-messages" else ())
    async with grpc.aio.insecure_channel(arguments.sidecar) as channel:
        app = App(arguments.fault, arguments.token, runs_pb2_grpc.RunsStub(channel))
        if arguments.fault != "has-no-callback":
            callback_pb2_grpc.add_AppCallbackServicer_to_server(app, server)
        if arguments.fault != "has-no-health":
            health_pb2_grpc.add_HealthServicer_to_server(Health(arguments.fault), server)
        server.add_insecure_port(arguments.address)
        await server.start()
        await stop.wait()
        await server.stop(grace=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", default="")
    parser.add_argument("--token", default="")
    parser.add_argument("--address", required=True)
    parser.add_argument("--sidecar", required=True)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
