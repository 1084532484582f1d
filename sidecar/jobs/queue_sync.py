"""Stores the limits of the queues that the configuration file names.

Guarantee: what was declared last is stored as soon as Postgres answers. A pause belongs to the
operators: the file does not change it.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from sidecar.model.errors import SidecarError
from sidecar.model.job_queue import QueueSettings

log = structlog.get_logger()

_RETRY_SECONDS = 2.0


class QueueStore(Protocol):
    async def configure_queues(self, queues: Sequence[QueueSettings]) -> int:
        """How many queues have changed."""
        ...


class QueueSync:
    def __init__(self, store: QueueStore, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._declared: Sequence[QueueSettings] = ()
        self._changed = asyncio.Event()

    def declare(self, queues: Sequence[QueueSettings]) -> None:
        self._declared = queues
        self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                changed = await self._store.configure_queues(self._declared)
            except SidecarError as error:
                log.info("queues_not_configured", problem=str(error))
                self._changed.set()
                await asyncio.sleep(self._retry_seconds)
            else:
                if changed:
                    log.info("queues_configured", changed=changed)
