"""The program and the test that the README shows do what it says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from baton.testing import FakeSidecar, eventually
from baton.v1 import runs_pb2 as pb

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def shown() -> dict[str, Any]:
    """What the code blocks define; the program is not run, a test serves its app."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "shown"}
    for block in blocks:
        exec(block.replace("app.run()", ""), names)  # noqa: S102 - our own page
    return names


async def test_the_shown_test_passes(shown: dict[str, Any]):
    """The last block tests what the others define."""
    await shown["test_report"]()
    await shown["test_order"]()


async def test_the_shown_calls_work(shown: dict[str, Any]):
    """A job is submitted and waited for; another one in a transaction; the lifespan attaches."""
    async with FakeSidecar() as sidecar:
        attached = shown["app"].attached
        shown["app"].attached = lambda: attached(sidecar.address, drain_seconds=0)
        async with shown["lifespan"](None):
            await sidecar.wait_attached()
            submitted = asyncio.create_task(shown["submit"]())
            await eventually(sidecar.jobs)
            await sidecar.advance("10s")
            assert await submitted == b'"done"'
    connection = Recording()
    assert shown["place_order"](connection) == 7
    assert connection.statements[1].startswith("SELECT baton.enqueue(")


class Recording:
    """A connection of psycopg that answers with an id."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, statement: str, values: object = None) -> Recording:
        self.statements.append(statement)
        return self

    def fetchone(self) -> tuple[int]:
        return (7,)


async def test_the_shown_order_waits_for_its_approval(shown: dict[str, Any]):
    """Charged once, approved by token, shipped."""
    app = shown["app"]
    async with FakeSidecar.beside(app) as sidecar:
        await sidecar.lead()
        task = asyncio.create_task(sidecar.execute("order-flow", {"order": 7}))
        await eventually(sidecar.deferreds)
        await app.deferreds.complete(sidecar.deferreds()[0].token, True)
        assert (await task).outcome == pb.OUTCOME_SUCCEEDED
