"""The attached processes of this pod: they come, answer pings, and go.

Guarantees:
- nothing is delivered to a process before it acknowledged that every term from before it attached
  is over (G1);
- the primary is the first process that is healthy; it stays primary until its stream ends;
- a process that stops answering pings is closed, whether or not it is the primary.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import structlog

from sidecar import metrics
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app.process import AttachedProcess
from sidecar.model.errors import AppUnavailable, SidecarError
from sidecar.model.process import ProcessHello
from sidecar.model.term import ANY_EPOCH, LossReason, Term
from sidecar.tracing import Tracer

log = structlog.get_logger()

PROCESSES_MAX = 256


class AttachedProcesses:
    def __init__(
        self,
        messages: Messages,
        tracer: Tracer,
        groups: Sequence[str],
        *,
        interval: float,
        failures_max: int,
        callback_timeout: float,
    ) -> None:
        self.messages = messages
        self.interval = interval
        self.on_change: list[Callable[[], None]] = []  # a process came, went or changed
        self._tracer = tracer
        self._groups = groups
        self._failures_max = failures_max
        self._callback_timeout = callback_timeout
        self._processes: dict[int, AttachedProcess] = {}
        self._numbers = 0
        self._changed = asyncio.Event()

    @property
    def all(self) -> list[AttachedProcess]:
        """In the order in which they attached."""
        return list(self._processes.values())

    @property
    def ready(self) -> Iterator[AttachedProcess]:
        """Those that may get work, the longest attached first."""
        return (each for each in self._processes.values() if each.healthy and each.capacity)

    async def changed(self) -> None:
        """Wait until a process came, went or changed."""
        await self._changed.wait()

    def attach(self, hello: ProcessHello) -> AttachedProcess:
        if len(self._processes) >= PROCESSES_MAX:
            raise AppUnavailable(f"{PROCESSES_MAX} processes are attached to this sidecar")
        self._numbers += 1
        process = AttachedProcess(
            hello,
            self.messages,
            self._tracer,
            number=self._numbers,
            failures_max=self._failures_max,
        )
        self._processes[process.number] = process
        log.info(
            "process_attached",
            process=hello.process_id,
            client=hello.client,
            capacity=hello.capacity,
        )
        self._notify()
        return process

    def detach(self, process: AttachedProcess) -> None:
        process.close()
        if self._processes.pop(process.number, None):
            problem = str(process.problem or "")
            log.info("process_detached", process=process.hello.process_id, problem=problem)
            self._notify()

    async def watch(self, process: AttachedProcess) -> None:
        """End its old terms, then ping it until it closes; a primary is pinged by the app watch."""
        try:
            await self._end_old_terms(process)
        except SidecarError as error:
            process.close(error)
            return
        process.ready = True
        self._notify()
        while process.connected:
            await asyncio.sleep(self.interval)
            if process.is_primary:
                continue
            was_healthy = process.healthy
            try:
                await process.check(max(self.interval, 1.0))
            except SidecarError as error:
                log.info("process_silent", process=process.hello.process_id, problem=str(error))
            if process.healthy != was_healthy:
                self._notify()

    def set_capacity(self, process: AttachedProcess, capacity: int) -> None:
        process.capacity = capacity
        process.outbox.wake()
        self._notify()

    async def _end_old_terms(self, process: AttachedProcess) -> None:
        for group in self._groups:
            term = Term(group, 0, ANY_EPOCH)
            await process.lose_leadership(term, LossReason.SHUTDOWN, self._callback_timeout)

    def _notify(self) -> None:
        metrics.ATTACHED_PROCESSES.set(len(self._processes))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for listener in self.on_change:
            listener()
