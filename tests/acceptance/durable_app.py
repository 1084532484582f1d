"""An app on the Python client whose runs are meant to be interrupted; see `test_durable`."""

from __future__ import annotations

import argparse
import asyncio
import uuid
from pathlib import Path
from typing import Any

from baton import Baton, ClusterContext, Context, Fenced

from tests.acceptance.ledger import Ledger

STEPS = ("reserve", "charge", "pack", "ship", "notify")
STEP_SECONDS = 0.5

app = Baton()


@app.on_become_leader()
async def become(context: ClusterContext) -> None:
    LEDGER.write("become", epoch=context.epoch)


def note(event: str, context: Context, **fields: Any) -> None:
    LEDGER.write(event, run=context.run_id, attempt=context.attempt, epoch=context.epoch, **fields)


@app.schedule("order-flow")
async def order_flow(context: Context) -> dict[str, str]:
    """Five steps, each with an effect outside; what a step gave is unique to that effect."""
    note("start", context)

    async def effect(step: str) -> str:
        await asyncio.sleep(STEP_SECONDS)
        receipt = uuid.uuid4().hex
        note("effect", context, step=step, receipt=receipt)
        return receipt

    receipts = {}
    for number, step in enumerate(STEPS, start=1):
        receipts[step] = await context.step(step, effect, step)
        note("taken", context, step=step, receipt=receipts[step])
        await context.heartbeat(number / len(STEPS), step)
    return receipts


@app.schedule("approval")
async def approval(context: Context) -> Any:
    """Waits for somebody to complete its deferred."""
    deferred = await context.create_deferred("approval")
    note("waiting", context, token=deferred.token)
    answer = await deferred
    note("answered", context, answer=answer)
    return answer


@app.schedule("patient")
async def patient(context: Context) -> str:
    """Works until a hand-over is wanted, then reaches a checkpoint and returns."""
    note("start", context)
    await context.heartbeat(0.4, "working")
    await context.wait_draining()
    note("draining", context, flag=context.draining)
    return await context.step("last", str.upper, "reached")


@app.schedule("stubborn")
async def stubborn(context: Context) -> str:
    """The first attempt takes no hint; it must be stopped, and nothing of it may count."""
    note("start", context)
    if context.attempt > 1:
        return await context.step("mine", str.upper, f"attempt {context.attempt}")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note("cancelled", context, reason=context.cancel_reason, draining=context.draining)
        try:
            await context.step("mine", str.upper, "of the first attempt")
        except Fenced as error:
            note("refused", context, reason=error.reason)
        raise
    raise AssertionError


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    parser.add_argument("--sidecar")
    parser.add_argument("--ledger", type=Path)
    options = parser.parse_args()
    LEDGER = Ledger(options.ledger)
    app.run(options.address, options.sidecar)
