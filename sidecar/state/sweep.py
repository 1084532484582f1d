"""Removes what has expired, in small batches, from every pod; readers do not see it anyway."""

import asyncio
import random

import structlog

from sidecar.model.errors import SidecarError
from sidecar.state.ports import Notifier, Truth
from sidecar.state.store import TOPIC

log = structlog.get_logger()

SWEEP_SECONDS = 10.0
_BATCH = 200
_BETWEEN_BATCHES_SECONDS = 0.1


class StateSweeper:
    """Pods take turns by chance: each waits 5 to 15 s, and none waits for another's locks."""

    def __init__(
        self, truth: Truth, notifier: Notifier, *, interval_seconds: float = SWEEP_SECONDS
    ) -> None:
        self._truth = truth
        self._notifier = notifier
        self._interval_seconds = interval_seconds

    async def run(self) -> None:
        while True:
            pause = random.uniform(0.5, 1.5) * self._interval_seconds  # noqa: S311 - spreads load
            try:
                if await self._truth.sweep(_BATCH):
                    self._notifier.notify(TOPIC)
                    pause = min(pause, _BETWEEN_BATCHES_SECONDS)
            except SidecarError as error:
                log.info("state_not_swept", problem=str(error))
            except Exception:  # whatever it was, the next try may succeed
                log.exception("state_not_swept")
            await asyncio.sleep(pause)
