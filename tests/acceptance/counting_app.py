"""An app on the Python client whose singleton counts in its owned state.

Each acknowledged count is one line of the ledger, written after the acknowledgement.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from baton import Baton, Context

from tests.acceptance.ledger import Ledger

app = Baton()


@app.singleton("counter")
async def count(context: Context) -> None:
    number = context.state.json({"count": 0})["count"]
    _note("start", number, context)
    while not context.draining:
        number += 1
        await context.put_state({"count": number})
        _note("acknowledged", number, context)
        await asyncio.sleep(0.05)


def _note(event: str, number: int, context: Context) -> None:
    LEDGER.write(event, count=number, epoch=context.epoch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    parser.add_argument("--sidecar")
    parser.add_argument("--ledger", type=Path)
    options = parser.parse_args()
    LEDGER = Ledger(options.ledger)
    app.run(options.address, options.sidecar)
