"""The app beside a sidecar in the tests: it does as it is told and writes everything down.

    python -m tests.lab.toy_app --name a --address 127.0.0.1:50051 --history a.jsonl
        [--control a.json] [--sidecar 127.0.0.1:9401] [--groups default,other] [--load FOLDER]
        [--attach HANDLER,HANDLER]

The control file is read anew at every call; see `Control`. Each callback is written when it arrives
and when it ends, each message of Leadership.Watch when it was received, one line each, in the form
of `tests.lab.history.Event`. With `--load` it also uses State all the time; see `toy_load`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar._proto.baton.v1 import (
    callback_pb2,
    callback_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2_grpc,
)
from tests.lab.toy_execute import Means, Refused, execute
from tests.lab.toy_load import Load
from tests.lab.toy_stream import ToyStream, hello

Context = grpc.aio.ServicerContext[Any, Any]
_STILL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Control:
    """How the app behaves at this moment.

    become, lose: ok, error, hang or slow:SECONDS. health: serving, not_serving or absent.
    execute: by name of the singleton or schedule, `*` for all others; see `toy_execute`.
    load: whether to go on with what `--load` asks for.
    """

    become: str = "ok"
    lose: str = "ok"
    health: str = "serving"
    execute: dict[str, str] = field(default_factory=dict)
    load: bool = True

    @staticmethod
    def read(path: Path | None) -> Control:
        return Control(**json.loads(path.read_text())) if path and path.exists() else Control()

    def write(self, path: Path) -> None:
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps({name: getattr(self, name) for name in Control.__slots__}))
        unfinished.rename(path)  # at once: the app never reads half a file


class Recorder:
    """Appends to the history; what is written is in the file when `write` returns."""

    def __init__(self, app: str, path: Path) -> None:
        self._app = app
        self._file = path.open("a", buffering=1)
        self._calls = count(os.getpid() * 1_000_000)  # unique over the lives of the app

    def write(self, kind: str, *, at: float | None = None, **more: object) -> None:
        line = {"at": _now() if at is None else at, "app": self._app, "kind": kind, **more}
        self._file.write(json.dumps(line) + "\n")

    @asynccontextmanager
    async def call(self, kind: str, **more: Any) -> AsyncIterator[dict[str, str]]:
        """Write arrival and end of a callback; the body may say its `outcome`."""
        call, at = next(self._calls), _now()
        self.write(kind, at=at, call=call, **more)
        ended: dict[str, str] = {}
        try:
            yield ended
        except asyncio.CancelledError:
            ended["outcome"] = "cancelled"
            raise
        except BaseException:
            ended.setdefault("outcome", "error")
            raise
        finally:
            group, epoch = more["group"], more["epoch"]
            self.write(
                kind,
                phase="ended",
                call=call,
                group=group,
                epoch=epoch,
                outcome=ended.get("outcome", "ok"),
            )


class ToyApp(callback_pb2_grpc.AppCallbackServicer):
    """Answers callbacks as the control file says."""

    def __init__(self, recorder: Recorder, control: Path | None, means: Means) -> None:
        self._recorder, self._control, self._means = recorder, control, means
        self._lost: dict[str, int] = {}
        self._leads: dict[str, int] = {}  # epochs by group

    async def OnBecomeLeader(
        self, request: callback_pb2.OnBecomeLeaderRequest, context: Context
    ) -> callback_pb2.OnBecomeLeaderResponse:
        ignored = self._is_over(request.context)
        trust = _trust(request)
        who = _who(request.context, metadata=_metadata(context))
        async with self._recorder.call("become", ignored=ignored, **trust, **who):
            if not ignored:
                self._leads[request.context.group] = request.context.epoch
                await _behave(Control.read(self._control).become, context)
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(
        self, request: callback_pb2.OnLoseLeadershipRequest, context: Context
    ) -> callback_pb2.OnLoseLeadershipResponse:
        group, epoch = request.context.group, request.context.epoch
        self._lost[group] = max(epoch, self._lost.get(group, 0))
        if not 0 < epoch < self._leads.get(group, 0):
            self._leads.pop(group, None)
        reason = callback_pb2.LossReason.Name(request.reason).removeprefix("LOSS_REASON_")
        who = _who(request.context, reason=reason, metadata=_metadata(context))
        async with self._recorder.call("lose", **who):
            await _behave(Control.read(self._control).lose, context)
        return callback_pb2.OnLoseLeadershipResponse()

    async def Execute(
        self, request: callback_pb2.ExecuteRequest, context: Context
    ) -> callback_pb2.ExecuteResponse:
        ignored = self._is_over(request.context)
        who = _who(request.context, metadata=_metadata(context), **_run(request))
        async with self._recorder.call("execute", ignored=ignored, **who) as ended:
            if ignored:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "this term is over")
            behaviours = Control.read(self._control).execute
            behaviour = behaviours.get(request.name) or behaviours.get("*", "")
            try:
                response = await execute(behaviour, request, self._means)
            except Refused as refused:
                ended["outcome"] = refused.code.name
                await context.abort(refused.code, "as the control file says")
            ended["outcome"] = response.WhichOneof("outcome") or "succeeded"
            return response

    def disconnected(self) -> None:
        """The stream broke: the app leads nothing any more, whatever it was told before."""
        for group, epoch in self._leads.items():
            self._recorder.write(
                "lose", group=group, epoch=epoch, fields={"reason": "STREAM_BROKEN"}
            )
            self._lost[group] = max(epoch, self._lost.get(group, 0))
        self._leads.clear()

    def _is_over(self, about: callback_pb2.ClusterContext) -> bool:
        return about.epoch <= self._lost.get(about.group, 0)


class ToyHealth(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # it has no types
    """grpc.health.v1 by the control file; `absent` answers as an app without it would."""

    def __init__(self, control: Path | None) -> None:
        self._control = control

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        return await self._status(context)

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        last = None
        while True:
            response = await self._status(context)
            if response.status != last:
                last = response.status
                yield response
            await asyncio.sleep(0.1)

    async def _status(self, context: Context) -> health_pb2.HealthCheckResponse:
        health = Control.read(self._control).health
        if health == "absent":
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        return health_pb2.HealthCheckResponse(status=health.upper())


async def watch(
    recorder: Recorder, leadership: leadership_pb2_grpc.LeadershipStub, group: str
) -> None:
    """Write down every renewal of the trust in one group, for ever."""
    while True:
        try:
            stream = leadership.Watch(leadership_pb2.LeadershipWatchRequest(group=group))
            async for message in stream:
                at = _now()  # before a look inside: the trust counts from here
                leader = message.leader
                recorder.write(
                    "watch", at=at, group=group, epoch=leader.epoch, is_leader=leader.is_leader,
                    **_trust(leader),
                    fields={"leader": leader.leader_runner_id, "draining": leader.draining},
                )  # fmt: skip
        except grpc.aio.AioRpcError as error:
            recorder.write("watch_broken", group=group, fields={"code": error.code().name})
        await asyncio.sleep(0.1)


async def notice_sleep(recorder: Recorder) -> None:
    """Write down when this process stood still: what arrived meanwhile is only read now."""
    while True:
        since = _now()
        await asyncio.sleep(0.1)
        if _now() - since > _STILL_SECONDS:
            recorder.write("woke", fields={"since": since})


async def serve(arguments: argparse.Namespace) -> None:
    recorder = Recorder(arguments.name, arguments.history)
    recorder.write("start", fields={"pid": os.getpid()})
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # Quick to come back: a sidecar that restarts must be watched again at once.
    options = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.initial_reconnect_backoff_ms", 50)]
    async with grpc.aio.insecure_channel(arguments.sidecar or "127.0.0.1:1", options) as channel:
        load = _load(arguments, channel)
        runs = runs_pb2_grpc.RunsStub(channel) if arguments.sidecar else None
        server = grpc.aio.server()
        app = ToyApp(recorder, arguments.control, Means(runs, load))
        if not arguments.attach:
            callback_pb2_grpc.add_AppCallbackServicer_to_server(app, server)
            health_pb2_grpc.add_HealthServicer_to_server(ToyHealth(arguments.control), server)
            server.add_insecure_port(arguments.address)
            await server.start()
        leadership = leadership_pb2_grpc.LeadershipStub(channel)
        groups = arguments.groups.split(",") if arguments.sidecar else []
        tasks = [asyncio.create_task(watch(recorder, leadership, group)) for group in groups]
        tasks.append(asyncio.create_task(notice_sleep(recorder)))
        if arguments.attach:
            tasks.append(asyncio.create_task(_attached(arguments, recorder, app).run(channel)))
        if load:
            tasks.append(asyncio.create_task(load.run()))
        await stop.wait()
        for task in tasks:
            task.cancel()
        await server.stop(grace=1)


def _attached(arguments: argparse.Namespace, recorder: Recorder, app: ToyApp) -> ToyStream:
    def renewed(leader: leadership_pb2.Leader) -> None:
        recorder.write(
            "watch", group=leader.group, epoch=leader.epoch, is_leader=leader.is_leader,
            **_trust(leader),
            fields={"leader": leader.leader_runner_id, "draining": leader.draining, "stream": True},
        )  # fmt: skip

    def broken(problem: str) -> None:
        recorder.write("stream_broken", fields={"problem": problem})
        app.disconnected()

    return ToyStream(
        app,
        hello(arguments.attach.split(",")),
        renewed=renewed,
        broken=broken,
        healthy=lambda: Control.read(arguments.control).health == "serving",
    )


def _load(arguments: argparse.Namespace, channel: grpc.aio.Channel) -> Load | None:
    if arguments.load is None:
        return None
    return Load(
        arguments.name, arguments.load, channel, lambda: Control.read(arguments.control).load
    )


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _seconds(duration: Duration) -> float:
    return duration.seconds + duration.nanos / 1e9


def _trust(message: callback_pb2.OnBecomeLeaderRequest | leadership_pb2.Leader) -> dict[str, Any]:
    known = message.HasField("trusted_until_boottime")
    return {
        "trusted_for": _seconds(message.trusted_for),
        "trusted_until": _seconds(message.trusted_until_boottime) if known else None,
    }


def _who(about: callback_pb2.ClusterContext, **fields: object) -> dict[str, Any]:
    more = {"runner_id": about.runner_id, "cluster": about.cluster, **fields}
    return {
        "group": about.group, "epoch": about.epoch, "is_leader": about.is_leader, "fields": more
    }  # fmt: skip


def _metadata(context: Context) -> dict[str, str]:
    """What came beside the message, but for secrets."""
    pairs = context.invocation_metadata() or ()
    shown = (key for key, _ in pairs if key == "traceparent" or key.startswith("baton-"))
    wanted = set(shown) - {"baton-token"}
    return {key: str(value) for key, value in pairs if key in wanted}


def _run(request: callback_pb2.ExecuteRequest) -> dict[str, object]:
    return {
        "run_id": request.run_id,
        "run_kind": request.kind,
        "name": request.name,
        "attempt": request.attempt,
        "scheduled_at": request.scheduled_at.ToJsonString(),
        "idempotency_key": request.idempotency_key,
        "payload": request.payload.decode(errors="replace"),
        "state": request.state.decode(errors="replace"),
        "state_version": request.state_version,
        "checkpoints": {c.step: c.value.decode(errors="replace") for c in request.checkpoints},
        "run_count": request.metadata.run_count,
        "missed_count": request.metadata.missed_count,
        "last_error": request.metadata.last_error,
        "entity_type": request.context.entity_type,
    }


async def _behave(behaviour: str, context: Context) -> None:
    word, _, argument = behaviour.partition(":")
    if word == "slow":
        await asyncio.sleep(float(argument))
    elif word == "hang":
        await asyncio.Event().wait()
    elif word == "error":
        await context.abort(grpc.StatusCode.INTERNAL, "as the control file says")
    elif word != "ok":
        raise ValueError(f"no such behaviour: {behaviour}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The toy app of the tests.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--history", required=True, type=Path)
    parser.add_argument("--control", type=Path)
    parser.add_argument("--sidecar", default="")
    parser.add_argument("--groups", default="default")
    parser.add_argument("--load", type=Path)
    parser.add_argument("--attach", default="", help="attach, with these handlers")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
