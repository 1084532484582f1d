"""What a toy app asks of State all the time: it writes, adds, reads strongly, from the cache, and
its own.

A write is repeated with the same request id until there is a definite answer, as a client should.
Each life of the app has a key of its own, named in `<folder>/<app>.key` for the readers of all
pods.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import grpc
import grpc.aio

from sidecar._proto.baton.v1 import runs_pb2, state_pb2, state_pb2_grpc
from tests.lab.ops import Op, OpRecorder

SHARED_KEY = "load/shared"
_CALL_SECONDS = 4.0
_PAUSE_SECONDS = 0.2
_RETRY_SECONDS = 0.2
# Answers after which the same call is made again; ABORTED is definite: another one was first.
_AGAIN = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED"}

Put = state_pb2.StatePutRequest


class Load:
    """The calls of one life of one app; `on` says whether to go on making them."""

    def __init__(
        self, app: str, folder: Path, channel: grpc.aio.Channel, on: Callable[[], bool]
    ) -> None:
        self._app, self._folder, self._on = app, folder, on
        self._state = state_pb2_grpc.StateStub(channel)
        self._recorder = OpRecorder(folder / f"{app}.jsonl")
        self._requests = count(1)

    async def run(self) -> None:
        """For ever, until cancelled."""
        await self._turn()
        key = f"load/{self._app}/{os.getpid()}"
        unfinished = self._folder / f"{self._app}.new"
        unfinished.write_text(key)
        unfinished.rename(self._folder / f"{self._app}.key")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_putting(key))
            tasks.create_task(self._keep_adding())
            tasks.create_task(self._keep_reading("strong"))
            tasks.create_task(self._keep_reading("cached"))

    async def count(self, name: str, start: int, run: runs_pb2.RunRef, pause: float) -> None:
        """Count in the owned state of a singleton; returns when its run is refused as over."""
        key = f"singleton-state:{name}"
        about = Op(self._app, "begin", key, start, _now(), _now(), "ok", run.epoch)
        self._recorder.asked(about)
        for number in count(start + 1):
            request = Put(key=key, value=b'{"count": %d}' % number, run=run)
            op = Op(self._app, "count", key, number, _now(), epoch=run.epoch)
            if not (await self._written(op, request)).acknowledged:
                return
            await asyncio.sleep(pause)

    async def _keep_putting(self, key: str) -> None:
        for number in count(1):
            await self._turn()
            op = Op(self._app, "put", key, number, _now())
            await self._written(op, Put(key=key, value=b"%d" % number))
            await self._read("own", key)

    async def _keep_adding(self) -> None:
        while True:
            await self._turn()
            with suppress(grpc.aio.AioRpcError):
                number, version = await self._get(SHARED_KEY, state_pb2.CONSISTENCY_STRONG)
                op = Op(self._app, "add", SHARED_KEY, number + 1, _now())
                value = b"%d" % (number + 1)
                await self._written(op, Put(key=SHARED_KEY, value=value, expected_version=version))

    async def _keep_reading(self, kind: str) -> None:
        while True:
            for file in sorted(self._folder.glob("*.key")):
                await self._turn()
                await self._read(kind, file.read_text())

    async def _turn(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            if self._on():
                return

    async def _written(self, op: Op, request: Put) -> Op:
        request.request_id = f"{self._app}-{os.getpid()}-{next(self._requests)}"
        number, tries = self._recorder.asked(op), count(1)
        while True:
            outcome = await _outcome(self._state.Put(request, timeout=_CALL_SECONDS))
            tried = next(tries)
            if outcome not in _AGAIN:
                done = replace(op, answered_at=_now(), outcome=outcome, tries=tried)
                self._recorder.answered(number, done)
                return done
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read(self, kind: str, key: str) -> None:
        strong = kind == "strong"
        consistency = state_pb2.CONSISTENCY_STRONG if strong else state_pb2.CONSISTENCY_CACHED
        op = Op(self._app, kind, key, 0, _now())
        try:
            number, _ = await self._get(key, consistency)
            op = replace(op, number=number, answered_at=_now(), outcome="ok")
        except grpc.aio.AioRpcError as error:
            op = replace(op, answered_at=_now(), outcome=error.code().name)
        self._recorder.asked(op)

    async def _get(self, key: str, consistency: state_pb2.Consistency) -> tuple[int, int]:
        """Number and version; zeros if there is no such key."""
        request = state_pb2.StateGetRequest(key=key, consistency=consistency)
        try:
            entry = (await self._state.Get(request, timeout=_CALL_SECONDS)).entry
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return 0, 0
            raise
        return int(entry.value), entry.version


async def _outcome(call: Awaitable[object]) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "ok"


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
