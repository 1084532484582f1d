"""Several processes of one pod: uvicorn's workers, processes made by fork, and a thread."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from baton import Baton, BatonError
from baton.testing import FakeSidecar, eventually

ASGI = """
import os
from baton import Baton

baton = Baton()

@baton.job("who")
async def who(context):
    return os.getpid()

@baton.schedule("leads")
async def leads(context):
    return os.getpid()

async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    await receive()
    async with baton.attached():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    print("detached", flush=True)
    await send({"type": "lifespan.shutdown.complete"})
"""

# As gunicorn does with --preload: the app is imported once, then the workers are forked.
FORKED = """
import asyncio, os, signal, sys
from baton import Baton

baton = Baton()

@baton.job("who")
def who(context):
    return os.getpid()

def asynchronous():
    async def main():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, baton.stop)
        await baton.attach(drain_seconds=5)
    asyncio.run(main())

def synchronous():
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    with baton.background(drain_seconds=5) as background:
        mine = background.wait(baton.jobs.submit("own"))
        while not asked:
            signal.pause()

children = []
for _ in range(2):
    child = os.fork()
    if not child:
        globals()[sys.argv[1]]()
        os._exit(0)
    children.append(child)
signal.signal(signal.SIGTERM, lambda *_: [os.kill(child, signal.SIGTERM) for child in children])
sys.exit(max(os.waitpid(child, 0)[1] for child in children))
"""


@asynccontextmanager
async def running(*command: str, sidecar: str, cwd: Path) -> AsyncIterator[Process]:
    """A program beside the sidecar; nothing of it is left afterwards."""
    environment = {**os.environ, "BATON_API_ADDRESS": sidecar, "PYTHONPATH": str(cwd)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=cwd, env=environment, stdout=PIPE, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def workers_of(fake: FakeSidecar) -> set[int]:
    """The processes that execute jobs, when there are more jobs than one of them is given."""
    ids = [fake.submit("who") for _ in range(20)]
    await asyncio.wait_for(fake.settle(), 30)
    await eventually(lambda: all(fake.job(one).result for one in ids), 20)
    return {int(fake.job(one).result) for one in ids}


async def ended(process: Process) -> bytes:
    process.send_signal(signal.SIGTERM)
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    return output


async def test_the_workers_of_uvicorn_attach(tmp_path: Path):
    """Both take jobs, one of them leads; SIGTERM drains each in its lifespan."""
    (tmp_path / "web.py").write_text(ASGI)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = ("-m", "uvicorn", "web:app", "--workers", "2", "--port", port, "--lifespan", "on")
    async with (
        FakeSidecar() as fake,
        running(*command, sidecar=fake.address, cwd=tmp_path) as process,
    ):
        await fake.wait_attached(2, seconds=60)
        pids = {int(hello.process_id) for hello in fake.attached()}
        assert len(pids) == 2
        assert await workers_of(fake) == pids
        await fake.lead()
        run = await fake.execute("leads")
        assert int(run.result) == int(fake.attached()[0].process_id)
        assert (await ended(process)).count(b"detached") == 2


@pytest.mark.parametrize("worker", ["asynchronous", "synchronous"])
async def test_forked_workers_attach(worker: str, tmp_path: Path):
    """An app that was imported before the fork works in each child, with a loop or a thread."""
    async with (
        FakeSidecar() as fake,
        running("-c", FORKED, worker, sidecar=fake.address, cwd=tmp_path) as process,
    ):
        await fake.wait_attached(2, seconds=60)
        pids = {int(hello.process_id) for hello in fake.attached()}
        assert len(pids) == 2
        assert process.pid not in pids
        assert await workers_of(fake) == pids
        await ended(process)
        assert process.returncode == 0
        assert not fake.attached()


def test_a_background_that_cannot_start_says_why(tmp_path: Path):
    """The error is raised where it can be seen, not in the thread."""
    with pytest.raises(FileNotFoundError):
        Baton().background(api_token_file=tmp_path / "missing")


async def test_the_background_is_called_from_other_threads():
    """Calls work until it is stopped, and are refused afterwards."""
    app = Baton()
    app.job("report")(lambda context: "done")

    def work(address: str) -> bytes:
        with app.background(address, drain_seconds=1) as background:
            submitted = background.wait(app.jobs.submit("report"))
            result = background.wait(app.jobs.wait(submitted.id, timeout=20)).result
            with pytest.raises(BatonError):
                background.wait(app.jobs.get(1 << 60))
        with pytest.raises(RuntimeError, match="not attached"):
            background.wait(app.jobs.submit("report"))
        return result

    async with FakeSidecar() as fake:
        assert await asyncio.to_thread(work, fake.address) == b'"done"'
