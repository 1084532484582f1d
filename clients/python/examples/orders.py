"""An example app: what a shop might leave to Baton. `make demo` runs three of them.

    report       a schedule that counts its own runs in its owned state
    flaky        a schedule whose first attempts fail
    coordinator  a singleton: one in the whole cluster, its counter survives every change of leader
    order-flow   five durable steps; each is recorded in the ledger once it is done
    receipt      a job: background work, on whichever pod has room

Start it beside a sidecar: python orders.py --sidecar 127.0.0.1:9401. It attaches; with --address it
serves there instead, and the sidecar calls it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from contextlib import suppress
from typing import Any

from baton import Baton, ClusterContext, Context, Result, Retry

log = logging.getLogger("orders")
app = Baton()


@app.on_become_leader()
async def become(context: ClusterContext) -> None:
    log.info("leader of %s, epoch %d", context.group, context.epoch)


@app.on_lose_leadership()
async def lose(context: ClusterContext, reason: str) -> None:
    log.info("no longer leader of %s, epoch %d: %s", context.group, context.epoch, reason)


@app.schedule("report")
async def report(context: Context) -> Result:
    state = context.state.json() or {}
    number = state.get("reports", 0) + 1
    log.info("report %d, due at %s", number, context.scheduled_at.isoformat())
    return Result({"report": number}, state={**state, "reports": number})


@app.schedule("flaky")
async def flaky(context: Context) -> str:
    if context.attempt < 3:
        raise Retry("supplier busy")
    log.info("flaky succeeded at attempt %d", context.attempt)
    return f"succeeded at attempt {context.attempt}"


@app.singleton("coordinator")
async def coordinator(context: Context) -> None:
    count = (context.state.json() or {}).get("count", 0)
    while not context.draining:
        count += 1
        await context.put_state({"count": count})
        await context.heartbeat(message=f"count {count}")
        log.info("coordinator counts %d", count)
        with suppress(TimeoutError):  # a second has passed; else: leave at once, nobody has to wait
            await asyncio.wait_for(context.wait_draining(), timeout=1)


@app.schedule("order-flow")
async def order_flow(context: Context) -> dict[str, Any]:
    order = (context.json() or {}).get("order", context.run_id)
    seconds = float(os.environ.get("ORDERS_STEP_SECONDS", "0.2"))
    for number, name in enumerate(("reserve", "charge", "pack", "ship", "notify"), start=1):
        await context.step(name, perform, context, name, order, seconds)
        await context.heartbeat(number / 5, name)
    return {"order": order, "done": True}


async def perform(context: Context, step: str, order: Any, seconds: float) -> str:
    """One step of an order: it takes its time, then leaves a line in the ledger."""
    await asyncio.sleep(seconds)
    line = {"order": order, "run": context.run_id, "step": step, "attempt": context.attempt}
    if path := os.environ.get("ORDERS_LEDGER"):
        await asyncio.to_thread(_append, path, json.dumps(line))
    log.info("order %s: %s", order, step)
    return step


@app.job("receipt")
async def receipt(context: Context) -> dict[str, Any]:
    await asyncio.sleep(float(os.environ.get("ORDERS_STEP_SECONDS", "0.2")))
    log.info("receipt %s, attempt %d", context.json()["receipt"], context.attempt)
    return {"receipt": context.json()["receipt"]}


def _append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as ledger:
        ledger.write(line + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description="the example app of Baton")
    parser.add_argument("--address", help="serve there (BATON_APP_ADDRESS); default: attach")
    parser.add_argument("--sidecar", help="the sidecar (BATON_API_ADDRESS, 127.0.0.1:9401)")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app.run(arguments.address, arguments.sidecar)


if __name__ == "__main__":
    main()
