"""What any pod may clean up, now and then: old deferreds, groups that no runner names any more."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

from sidecar.background import failures_logged

INTERVAL_SECONDS = 300.0


async def run(tasks: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
    """Every few minutes run each task; pods take turns by chance."""
    while True:
        await asyncio.sleep(INTERVAL_SECONDS * (0.5 + random.random()))  # noqa: S311
        for name, task in tasks.items():
            with failures_logged(name):
                await task()
