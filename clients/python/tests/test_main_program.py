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
import asyncio, sys
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

app.run(sys.argv[1], sys.argv[2], drain_seconds=float(sys.argv[3]))
"""


@asynccontextmanager
async def program(address: str, sidecar: str, drain_seconds: float) -> AsyncIterator[Process]:
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
