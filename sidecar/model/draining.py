"""Work that stops when its term winds down."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from sidecar.model.term import Tenure


async def until_draining(tenure: Tenure, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends, fails, or the term begins to drain: then it is cancelled."""
    task = asyncio.ensure_future(work)
    draining = asyncio.ensure_future(tenure.draining.wait())
    try:
        await asyncio.wait({task, draining}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        draining.cancel()
        await asyncio.gather(task, draining, return_exceptions=True)
    if not task.cancelled() and (error := task.exception()):
        raise error
