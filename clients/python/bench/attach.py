"""What a run over the stream costs the app in CPU, with a handler that does nothing.

    python bench/attach.py [RUNS]

A process of its own plays the sidecar: it keeps the app's capacity filled with jobs, in frames of
up to 512. Only the CPU of the app's process is counted, all of its threads and gRPC included.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import sys
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from typing import Any

import grpc.aio
from baton import Baton, Context
from baton.v1 import callback_pb2, runs_pb2
from baton.v1 import stream_pb2 as pb
from baton.v1.stream_pb2_grpc import AppStreamServicer, add_AppStreamServicer_to_server

FRAME_RUNS = 512


class Sidecar(AppStreamServicer):
    """Sends jobs as fast as they are answered, and reports when all are."""

    def __init__(self, runs: int, report: Connection) -> None:
        self._left = self._unanswered = runs
        self._report = report
        self._frames: asyncio.Queue[int] = asyncio.Queue()
        self._sent = 0

    async def Attach(
        self, request: AsyncIterator[pb.AttachRequest], call: Any
    ) -> AsyncIterator[pb.AttachResponse]:
        hello = (await anext(aiter(request))).hello
        yield pb.AttachResponse(welcome=pb.Welcome(cluster="bench", runner_id="bench"))
        self._frames.put_nowait(hello.capacity)
        reader = asyncio.create_task(self._read(request))
        while self._left:
            room = await self._frames.get()
            while not self._frames.empty():
                room += self._frames.get_nowait()
            while room and self._left:
                count = min(room, self._left, FRAME_RUNS)
                room, self._left = room - count, self._left - count
                yield self._frame(count)
        await reader

    def _frame(self, count: int) -> pb.AttachResponse:
        frame = pb.AttachResponse()
        for _ in range(count):
            self._sent += 1
            frame.runs.add(
                context=callback_pb2.ClusterContext(entity_type="job", epoch=7),
                run_id=(1 << 60) + self._sent,
                kind=runs_pb2.RUN_KIND_JOB,
                name="noop",
                attempt=1,
                idempotency_key=f"bench/{self._sent}",
                payload=b'{"to":"a@example.org"}',
                content_type="application/json",
                job=callback_pb2.JobContext(queue="default", priority=3),
            )
        return frame

    async def _read(self, request: AsyncIterator[pb.AttachRequest]) -> None:
        async for message in request:
            count = len(message.answers)
            self._unanswered -= count
            if count:
                self._frames.put_nowait(count)
            if not self._unanswered:
                self._report.send("done")
                return


async def _play(runs: int, report: Connection) -> None:
    server = grpc.aio.server()
    add_AppStreamServicer_to_server(Sidecar(runs, report), server)
    report.send(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    await asyncio.to_thread(report.recv)
    await server.stop(None)


def _sidecar(runs: int, report: Connection) -> None:
    asyncio.run(_play(runs, report))


async def _work(app: Baton, port: int, report: Connection) -> None:
    async with app.attached(f"127.0.0.1:{port}", drain_seconds=0):
        await asyncio.to_thread(report.recv)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_sidecar, args=(runs, theirs))
    process.start()
    app = Baton()

    @app.job("noop")
    async def noop(context: Context) -> None:
        pass

    port = ours.recv()
    cpu, started = _cpu_seconds(), time.perf_counter()
    asyncio.run(_work(app, port, ours))
    cpu, seconds = _cpu_seconds() - cpu, time.perf_counter() - started
    ours.send("stop")
    process.join()
    print(f"{runs} runs: {cpu / runs * 1e6:.1f} us of CPU per run, {runs / seconds:,.0f} runs/s")  # noqa: T201


if __name__ == "__main__":
    main()
