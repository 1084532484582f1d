"""An app on the Python client that attaches: declares its work in code, notes what happens.

    python -m tests.acceptance.attached_app NOTES [also]

`also` adds a schedule, as a newer build does (BATON_REVISION orders builds).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from baton import Baton, ClusterContext, Context

NOTES = Path(sys.argv[1])
app = Baton()


def note(what: str, **more: object) -> None:
    at = time.clock_gettime(time.CLOCK_BOOTTIME)
    with NOTES.open("a") as file:
        file.write(json.dumps({"at": at, "pid": os.getpid(), "what": what, **more}) + "\n")


@app.on_become_leader()
async def become(context: ClusterContext) -> None:
    note("become", epoch=context.epoch)


@app.on_lose_leadership()
async def lose(context: ClusterContext, reason: str) -> None:
    note("lose", epoch=context.epoch, reason=reason)


@app.schedule("often", every="1s")
async def often(context: Context) -> dict[str, int]:
    step = await context.step("counted", lambda: 7)
    note("often", attempt=context.attempt, step=step)
    return {"step": step}


@app.schedule("failing", every="1h", retry=1)
async def failing(context: Context) -> None:
    raise RuntimeError("the disk is full")


@app.job("send-mail")
async def send_mail(context: Context) -> dict[str, object]:
    note("mail", run_id=context.run_id, attempt=context.attempt, to=context.json()["to"])
    seconds = context.json().get("seconds", 0)
    if seconds:
        await asyncio.sleep(seconds)
    sent = await context.step("sent", lambda: 1)
    return {"sent": sent, "to": context.json()["to"]}


if "also" in sys.argv:

    @app.schedule("later", every="1s")
    async def later(context: Context) -> None:
        note("later")


if __name__ == "__main__":
    app.run(drain_seconds=5)
