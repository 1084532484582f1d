"""What happens when the work stream breaks, or cannot be opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from baton import Baton, ClusterContext, Context
from baton.testing import FakeSidecar, eventually
from baton.v1 import callback_pb2, stream_pb2
from baton.v1 import runs_pb2 as pb


@pytest.fixture
async def sidecar(app: Baton) -> AsyncIterator[FakeSidecar]:
    """The fake, to which `app` attaches."""
    async with FakeSidecar.beside(app) as fake:
        yield fake


async def test_a_broken_stream_ends_everything_and_is_opened_again(
    app: Baton, sidecar: FakeSidecar
):
    """G1, G5: terms end, handlers stop, the run is delivered again in the next term."""
    told: list[str] = []
    begun = asyncio.Event()

    @app.schedule("slow")
    async def slow(context: Context) -> int:
        begun.set()
        try:
            if context.attempt == 1:
                await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append(context.cancel_reason)
            raise
        return context.attempt

    app.on_lose_leadership()(lambda context, reason: told.append(reason))
    first = await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("slow"))
    await begun.wait()
    sidecar.detach()
    run = await task
    assert run.state == pb.RUN_STATE_WAITING
    await eventually(lambda: told == ["CALL_CANCELLED", "LEASE_LOST"])
    assert not app.is_leader()
    await eventually(sidecar.attached)
    assert await sidecar.lead() > first
    assert (await sidecar.resume(run.run_id)).result == b"2"


async def test_a_term_that_waits_to_begin_does_not_begin_after_the_stream_broke(
    app: Baton, sidecar: FakeSidecar
):
    """G1: a become that arrived over a stream is worth nothing without it."""
    release, begun = asyncio.Event(), list[int]()

    @app.on_lose_leadership()
    async def lose(context: ClusterContext, reason: str) -> None:
        await release.wait()

    app.on_become_leader()(lambda context: begun.append(context.epoch))
    first = await sidecar.lead()
    (process,) = sidecar._processes
    context = callback_pb2.ClusterContext(group="default", epoch=first + 1, is_leader=True)
    become = callback_pb2.OnBecomeLeaderRequest(context=context)
    change = stream_pb2.LeadershipChange(become=become)
    process.send(stream_pb2.AttachResponse(leadership=[change]))
    await eventually(lambda: not app.is_leader())  # its predecessor is being ended
    sidecar.detach()
    await eventually(lambda: process not in sidecar._processes)
    release.set()
    await eventually(sidecar.attached)
    assert begun == [first]
    assert not app.is_leader()


async def test_a_sidecar_that_restarts_is_found_again(app: Baton):
    """The app needs no restart, and says once that it is alone."""
    app.schedule("report")(lambda context: "done")
    async with FakeSidecar() as fake:
        address = fake.address
        manager = app.attached(address, drain_seconds=0)
        await manager.__aenter__()
        await fake.wait_attached()
        await fake.lead()
    await eventually(lambda: not app.is_leader())
    async with FakeSidecar(address=address) as other:
        await other.wait_attached()
        await other.lead()
        assert (await other.execute("report")).outcome == pb.OUTCOME_SUCCEEDED
        await manager.__aexit__(None, None, None)


async def test_a_frozen_sidecar_is_left(app: Baton, sidecar: FakeSidecar):
    """G14: without health checks the stream is broken: other pods run its jobs by then."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.schedule("slow")
    async def slow(context: Context) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    await sidecar.lead(trusted_seconds=60)
    task = asyncio.create_task(sidecar.execute("slow"))
    await begun.wait()
    sidecar.freeze()
    await asyncio.wait_for(stopped.wait(), 15)
    assert (await task).state == pb.RUN_STATE_WAITING


async def test_several_processes_attach_and_one_of_them_leads():
    """When it goes, the next one takes over in a new term."""
    apps = [Baton(), Baton()]
    for number, app in enumerate(apps):
        app.schedule("report")(lambda context, number=number: number)
    async with FakeSidecar() as sidecar, apps[1].attached(sidecar.address, drain_seconds=0):
        await sidecar.wait_attached()
        async with apps[0].attached(sidecar.address, drain_seconds=0):
            await sidecar.wait_attached(2)
            epoch = await sidecar.lead()
            assert (await sidecar.execute("report")).result == b"1"
            assert not apps[0].is_leader()
            sidecar._processes[0].close()
            await eventually(lambda: not apps[1].is_leader())
            assert await sidecar.lead() > epoch
            assert (await sidecar.execute("report")).result == b"0"


async def test_a_wrong_token_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """G12: it is tried again slowly, and works as soon as the token does."""
    token = tmp_path / "token"
    token.write_text("wrong")
    app = Baton()
    with caplog.at_level(logging.WARNING, "baton"):
        async with (
            FakeSidecar(api_token="secret") as sidecar,
            app.attached(sidecar.address, api_token_file=token, drain_seconds=0),
        ):
            await asyncio.sleep(4.5)
            assert not sidecar.attached()
            token.write_text("secret")
            await sidecar.wait_attached()
    told = [line for line in caplog.messages if "UNAUTHENTICATED" in line]
    assert len(told) == 1


async def test_an_older_sidecar_is_named_as_such(caplog: pytest.LogCaptureFixture):
    """What to do is in the log."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with caplog.at_level(logging.ERROR, "baton"):
        async with Baton().attached(f"127.0.0.1:{port}", drain_seconds=0):
            await eventually(lambda: caplog.messages)
    await server.stop(None)
    assert "upgrade it, or serve the app" in caplog.messages[0]
