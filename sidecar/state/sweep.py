"""Removes expired state in small batches, on every pod; readers ignore expired entries anyway."""

import asyncio
import random

import structlog

from sidecar.hints import Hints
from sidecar.model.errors import SidecarError
from sidecar.state.ports import StateTable
from sidecar.state.store import TOPIC

log = structlog.get_logger()

SWEEP_SECONDS = 10.0
_BATCH = 200
_BETWEEN_BATCHES_SECONDS = 0.1


class StateSweeper:
    """Each pod sweeps at random intervals (0.5 to 1.5 times the mean) and skips locked rows."""

    def __init__(
        self, table: StateTable, hints: Hints, *, interval_seconds: float = SWEEP_SECONDS
    ) -> None:
        self._table = table
        self._hints = hints
        self._interval_seconds = interval_seconds

    async def run(self) -> None:
        while True:
            pause = random.uniform(0.5, 1.5) * self._interval_seconds  # noqa: S311 - spreads load
            try:
                if await self._table.sweep(_BATCH):
                    self._hints.notify(TOPIC)
                    pause = min(pause, _BETWEEN_BATCHES_SECONDS)
            except SidecarError as error:
                log.info("state_not_swept", problem=str(error))
            except Exception:  # the next attempt may succeed
                log.exception("state_not_swept")
            await asyncio.sleep(pause)
