"""An app on the Python client that shows where it runs, from deep below its handler."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import baton
from baton import Baton, Context

app = Baton()


@app.schedule("report")
async def report(context: Context) -> None:
    if context.attempt == 1:
        raise baton.Retry("once more")
    await context.step("deep", below)
    await context.heartbeat(message="alive")


async def below() -> int:
    """Nobody handed anything down to here."""
    made = await baton.next_id()
    with NOTES.open("a") as notes:
        notes.write(json.dumps(asdict(baton.cluster_context())) + "\n")
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    parser.add_argument("--sidecar")
    parser.add_argument("--notes", type=Path)
    options = parser.parse_args()
    NOTES: Path = options.notes
    app.run(options.address, options.sidecar)
