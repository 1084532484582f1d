"""An app on the Python client whose singleton notes what it starts from, and counts its lives."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

from baton import Baton, Context, Fenced

from tests.acceptance.ledger import Ledger

app = Baton()


def note(event: str, context: Context, **fields: Any) -> None:
    LEDGER.write(event, run=context.run_id, epoch=context.epoch, **fields)


@app.singleton("keeper")
async def keep(context: Context) -> None:
    state = context.state.json({})
    version, metadata = context.state.version, context.metadata
    note("start", context, state=state, version=version, lives=metadata.run_count)
    state["lives"] = state.get("lives", 0) + 1
    if version == 1:
        state["legacy"] = "only version 1 knows this"
    await context.put_state(state)
    note("put", context, state=state, version=version)
    try:
        await context.wait_draining()
    except asyncio.CancelledError:
        try:
            await context.put_state({"lives": -1})
        except Fenced as error:
            note("refused", context, reason=error.reason, why=context.cancel_reason)
        raise


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    parser.add_argument("--sidecar")
    parser.add_argument("--ledger", type=Path)
    options = parser.parse_args()
    LEDGER = Ledger(options.ledger)
    app.run(options.address, options.sidecar)
