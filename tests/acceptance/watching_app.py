"""Watches state through the Python client and notes every change: `python -m … ADDRESS LEDGER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from baton import Sidecar

from tests.acceptance.ledger import Ledger


async def main(address: str, ledger: Ledger) -> None:
    async with Sidecar().connected(address) as sidecar:
        await sidecar.state.put("watched/first", 0)
        first = await sidecar.state.get("watched/first", strong=True)
        assert first is not None
        async for change in sidecar.state.watch("watched/", after_version=first.version - 1):
            entry = change.entry
            value = None if change.deleted else entry.json()
            ledger.write("change", key=entry.key, version=entry.version, value=value)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Ledger(Path(sys.argv[2]))))
