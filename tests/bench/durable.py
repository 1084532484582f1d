"""What durable execution costs against the bare commit it cannot do without, in one run.

    Runs.Checkpoint    vs  INSERT of the same row, one commit each, on as many connections
    Deferreds.Create   vs  the same
    Deferreds.Get      vs  SELECT of such a row

Inside the sidecar: an app's gRPC call comes on top of it, as with State. A checkpoint locks its run
and its term, looks whether the step is there, stores and counts it, in one statement, which those
that wait at the same time share. With one caller and with 64, each on a run of its own. Rounds of
both sides take turns; the ratio is ours over the peer's (calls per second, the median of the
rounds): 1 is as fast. Run alone: `python -m tests.bench.durable`.
"""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

from devtools.servers import PostgresServer, postgres_binaries
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.deferreds import Deferreds
from sidecar.execution.runs import Runs
from sidecar.model.run import CHECKPOINTS_MAX, RunRef
from tests.bench.state import (
    CALLERS,
    KEYS,
    VALUE,
    Call,
    Result,
    bare_connections,
    compared,
    on_connection,
)
from tests.integration.runs_lab import Lab, laboratory

LIMITS = (
    "Alone: the round trip to Postgres, and one commit for each call that writes, as on the bare"
    " side. A checkpoint also locks its run and its term: that is the fence, and what it costs"
    " above a bare INSERT. Together: reads that wait at the same time share a statement, and so do"
    " checkpoints of different runs of a group; what creates a deferred does not."
)
RUNS = 256  # with as many steps as they may hold: more than are stored in the time
LAB_CONNECTIONS = 8  # the pool of `laboratory`

_INSERT = "INSERT INTO bare (key, value) VALUES (%s, %s)"
_SELECT = "SELECT value FROM bare WHERE key = %s"


def run() -> list[dict[str, Any]]:
    """The rows of the report."""
    with PostgresServer(postgres_binaries("auto")) as postgres:
        results = asyncio.run(_compared(postgres.url))
    return [result.row("durable") for result in results]


async def _compared(url: str) -> list[Result]:
    async with AsyncExitStack() as stack:
        lab = await stack.enter_async_context(laboratory(url))
        bare = await stack.enter_async_context(bare_connections(url, LAB_CONNECTIONS))
        runs = Runs(PostgresRunRecords(lab.database, lab.who), lab.hints)
        deferreds = Deferreds(PostgresDeferreds(lab.database, lab.who), lab.hints)
        tokens = [await deferreds.create(f"waiting-{number}") for number in range(KEYS)]
        for number in range(KEYS):
            await on_connection(bare, _INSERT, (f"waiting-{number}", b""))
        steps = _steps(await _live_runs(lab))
        names = itertools.count()

        async def checkpoint(_: int) -> None:
            ref, step = next(steps)
            await runs.checkpoint(ref, step, VALUE)

        async def insert(_: int) -> None:
            await on_connection(bare, _INSERT, (f"step-{next(names)}", VALUE))

        pairs: dict[str, tuple[Call, Call]] = {
            "Runs.Checkpoint vs INSERT": (checkpoint, insert),
            "Deferreds.Create vs INSERT": (
                lambda _: deferreds.create(f"new-{next(names)}"),
                insert,
            ),
            "Deferreds.Get vs SELECT": (
                lambda i: deferreds.get(tokens[i % KEYS]),
                lambda i: on_connection(bare, _SELECT, (f"waiting-{i % KEYS}",)),
            ),
        }
        return [
            await compared(name, callers, *pair)
            for name, pair in pairs.items()
            for callers in CALLERS
        ]


async def _live_runs(lab: Lab) -> list[RunRef]:
    term = await lab.term()
    return [(await lab.runs.start_singleton(term, f"s{number}")).ref for number in range(RUNS)]


def _steps(refs: list[RunRef]) -> Iterator[tuple[RunRef, str]]:
    """A step of each run in turn, up to what a run may hold."""
    return ((ref, f"step-{n}") for n in range(CHECKPOINTS_MAX) for ref in refs)


if __name__ == "__main__":
    for row in run():
        print(row)
