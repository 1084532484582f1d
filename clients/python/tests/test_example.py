"""The example app does what its page says, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from baton.testing import FakeSidecar, eventually
from baton.v1 import runs_pb2 as pb

EXAMPLE = Path(__file__).parents[1] / "examples" / "orders.py"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
async def sidecar(tmp_path: Path, ledger: Path) -> AsyncIterator[FakeSidecar]:
    """The fake beside the example, which is led."""
    address = f"unix://{tmp_path}/app.sock"
    async with FakeSidecar() as fake:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLE), "--address", address, "--sidecar", fake.address),
            env={**os.environ, "ORDERS_LEDGER": str(ledger), "ORDERS_STEP_SECONDS": "1"},
        )
        fake.call_app_at(address)
        assert fake._channel is not None
        await asyncio.wait_for(fake._channel.channel_ready(), 60)
        await fake.lead()
        yield fake
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_schedules_and_singleton(sidecar: FakeSidecar):
    """The report counts, the flaky one needs three attempts, the coordinator keeps its count."""
    for _ in range(2):
        run = await sidecar.execute("report")
    assert run.result == b'{"report":2}'
    assert (await sidecar.execute("flaky", attempts=3)).outcome == pb.OUTCOME_SUCCEEDED
    assert await counted(sidecar, at_least=2) >= 2
    before = count(sidecar)
    await sidecar.lead()
    assert await counted(sidecar, at_least=before + 1) > before


def count(sidecar: FakeSidecar) -> int:
    """What the coordinator has counted up to."""
    return int(json.loads(sidecar.state("singleton-state:coordinator") or b'{"count":0}')["count"])


async def counted(sidecar: FakeSidecar, at_least: int) -> int:
    """Lets the coordinator count that far, then ends the term."""
    task = asyncio.create_task(sidecar.execute("coordinator", kind=pb.RUN_KIND_SINGLETON))
    await eventually(lambda: count(sidecar) >= at_least, 20)
    await sidecar.lose()
    await task
    return count(sidecar)


def written(ledger: Path) -> list[dict[str, Any]]:
    """The lines of the ledger."""
    return [json.loads(line) for line in ledger.read_text().splitlines()]


async def test_an_order_survives_the_end_of_a_term(sidecar: FakeSidecar, ledger: Path):
    """G5: every step of the order is done once, over two terms."""
    task = asyncio.create_task(sidecar.execute("order-flow", {"order": 7}))
    await eventually(lambda: any(r.progress_message == "charge" for r in sidecar.runs()), 20)
    await sidecar.lose()
    run = await task
    assert run.state == pb.RUN_STATE_WAITING
    await sidecar.lead()
    run = await sidecar.resume(run.run_id)
    assert run.outcome == pb.OUTCOME_SUCCEEDED
    lines = await asyncio.to_thread(written, ledger)
    assert [line["step"] for line in lines] == ["reserve", "charge", "pack", "ship", "notify"]
    assert {line["attempt"] for line in lines} == {1, 2}
