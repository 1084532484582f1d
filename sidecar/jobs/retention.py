"""Cleans up after jobs, on any pod: day partitions, unique keys, requests, counts of batches."""

from dataclasses import dataclass

import structlog

from sidecar.jobs.ports import Retained

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class JobRetention:
    store: Retained
    keep_seconds: float = 7 * 86_400.0

    async def clean_up(self) -> None:
        """Clean up once; safe on any pod at any time."""
        if done := await self.store.partitions(keep_seconds=self.keep_seconds):
            log.info("job_partitions_changed", partitions=done)
        await self.store.sweep(keep_seconds=self.keep_seconds)
