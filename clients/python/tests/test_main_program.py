"""`app.run()` as a process of its own, ended by signals."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from baton.testing import FakeSidecar, eventually
from baton.v1.runs_pb2 import OUTCOME_SUCCEEDED

PROGRAM = """
import asyncio, sys, time
from baton import Baton
app = Baton()

@app.schedule("slow")
async def slow(ctx):
    await ctx.wait_draining()
    await asyncio.sleep(ctx.json(0.3))
    return "finished"

@app.on_lose_leadership()
async def lose(ctx, reason):
    print("lost", reason, flush=True)

@app.schedule("blocking")
async def blocking(ctx):
    time.sleep(ctx.json())

app.run(sys.argv[1] or None, sys.argv[2], drain_seconds=float(sys.argv[3]))
"""


@asynccontextmanager
async def program(address: str, sidecar: str, drain_seconds: float) -> AsyncIterator[Process]:
    """The program; without an address it attaches."""
    args = (sys.executable, "-c", PROGRAM, address, sidecar, str(drain_seconds))
    process = await asyncio.create_subprocess_exec(*args, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def led(fake: FakeSidecar, address: str) -> None:
    """Leads as soon as the program answers."""
    fake.call_app_at(address)
    channel = fake._channel
    assert channel is not None
    await asyncio.wait_for(channel.channel_ready(), 60)
    await fake.lead()


async def test_after_sigterm_it_serves_until_leadership_is_handed_over(tmp_path):
    """G1: runs finish, OnLoseLeadership is answered, and only then the process ends."""
    address = f"unix://{tmp_path}/app.sock"
    async with FakeSidecar(drain_seconds=5) as fake, program(address, fake.address, 20) as process:
        await led(fake, address)
        run = asyncio.create_task(fake.execute("slow"))
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        ended = await asyncio.wait_for(run, 30)
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        assert ended.outcome == OUTCOME_SUCCEEDED
        assert output == b"lost RESIGNED\n"
        assert process.returncode == 0


async def test_the_drain_time_bounds_the_wait(tmp_path):
    """A sidecar that does not answer any more never keeps the process."""
    address = f"unix://{tmp_path}/app.sock"
    async with FakeSidecar() as fake, program(address, "127.0.0.1:1", 0.3) as process:
        await led(fake, address)
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        assert output == b"lost SHUTDOWN\n"
        assert process.returncode == 0


async def test_a_second_signal_does_not_wait(tmp_path):
    """An impatient operator is obeyed."""
    address = f"unix://{tmp_path}/app.sock"
    async with FakeSidecar(drain_seconds=60) as fake, program(address, fake.address, 60) as process:
        await led(fake, address)
        run = asyncio.create_task(fake.execute("slow", 60))
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGINT)
        # Two that come at once are one.
        await eventually(lambda: fake._terms.groups["default"].draining, 20)
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        await run


async def test_an_attached_program_drains_after_sigterm():
    """G1, G18: no new work, runs finish, leadership is handed over, and only then it ends."""
    async with FakeSidecar(drain_seconds=5) as fake, program("", fake.address, 20) as process:
        await fake.wait_attached(seconds=60)
        await fake.lead()
        (stream,) = fake._processes
        run = asyncio.create_task(fake.execute("slow"))
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        ended = await asyncio.wait_for(run, 30)
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        assert ended.outcome == OUTCOME_SUCCEEDED
        assert output == b"lost RESIGNED\n"
        assert process.returncode == 0
        assert stream.capacity == 0


async def test_the_drain_time_of_an_attached_program_is_bounded():
    """What does not end in time is handed back at once, and the process ends."""
    async with FakeSidecar(drain_seconds=60) as fake, program("", fake.address, 0.5) as process:
        await fake.wait_attached(seconds=60)
        await fake.lead()
        run = asyncio.create_task(fake.execute("slow", 60))
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        assert output == b"lost SHUTDOWN\n"
        assert process.returncode == 0
        assert "UNAVAILABLE" in (await run).error


async def test_a_second_signal_ends_an_attached_program_at_once():
    async with FakeSidecar(drain_seconds=60) as fake, program("", fake.address, 60) as process:
        await fake.wait_attached(seconds=60)
        await fake.lead()
        run = asyncio.create_task(fake.execute("slow", 60))
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        await eventually(lambda: fake._terms.groups["default"].draining, 20)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        await run


async def test_a_blocked_loop_answers_no_health_check():
    """G9: a process that hangs in a handler is noticed, because nothing else answers for it."""
    async with FakeSidecar() as fake, program("", fake.address, 1) as process:
        await fake.wait_attached(seconds=60)
        await fake.lead()
        (stream,) = fake._processes
        run = asyncio.create_task(fake.execute("blocking", 2.5))
        await asyncio.sleep(0.5)
        before = len(stream.pongs)
        await asyncio.sleep(1.5)
        assert len(stream.pongs) == before
        await run
        await eventually(lambda: len(stream.pongs) > before)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)


async def test_an_address_in_the_environment_serves(tmp_path, monkeypatch):
    """A pod that was set up for callbacks keeps them."""
    monkeypatch.setenv("BATON_APP_ADDRESS", f"unix://{tmp_path}/app.sock")
    async with FakeSidecar() as fake, program("", fake.address, 1) as process:
        await led(fake, f"unix://{tmp_path}/app.sock")
        assert not fake.attached()
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)
