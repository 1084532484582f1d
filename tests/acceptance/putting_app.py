"""Counts on one key through the Python client, without an app: `python -m … ADDRESS LEDGER N`.

Each increment that was acknowledged is one line of the ledger.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from baton import Sidecar

from tests.acceptance.ledger import Ledger

KEY = "counted"


async def main(address: str, ledger: Ledger, count: int) -> None:
    async with Sidecar().connected(address) as sidecar:
        for _ in range(count):
            entry = await sidecar.state.modify(
                KEY, lambda before: before.json() + 1 if before else 1
            )
            ledger.write("acknowledged", count=entry.json(), version=entry.version)
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Ledger(Path(sys.argv[2])), int(sys.argv[3])))
