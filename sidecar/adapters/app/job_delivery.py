"""Jobs go to every attached process that has their handler, to the one with the most room first.

Fits the `JobApp` of `sidecar/jobs/ports.py` and the pipeline's `App`.
"""

import asyncio
from collections.abc import Callable

from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.app.transport import Undelivered
from sidecar.execution.ports import Call
from sidecar.model.run import Answer, Run


class JobDelivery:
    def __init__(self, processes: AttachedProcesses) -> None:
        self._processes = processes

    @property
    def on_change(self) -> list[Callable[[], None]]:
        return self._processes.on_change

    @property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.hello.jobs for each in self._processes.ready))

    @property
    def capacity(self) -> int:
        return sum(each.capacity for each in self._processes.ready if each.hello.jobs)

    async def has_handlers(self) -> None:
        """Wait for a process that can execute a job."""
        while not self.names:
            await self._processes.changed()

    @property
    def connected(self) -> bool:
        return next(self._processes.ready, None) is not None

    async def wait_connected(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while not self.connected:
                    await self._processes.changed()
        except TimeoutError:
            return False
        return True

    def deliver(self, run: Run, answered: Callable[[Answer], None]) -> Call:
        able = [each for each in self._processes.ready if run.name in each.hello.jobs]
        if not able:
            return Undelivered(answered)
        return max(able, key=lambda each: each.free).deliver(run, answered)
