"""Delivers each run by one call: a task per run awaits the app's answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from sidecar.model.run import Answer, CallFailed, Run

log = structlog.get_logger()


class Caller(Protocol):
    @property
    def connected(self) -> bool: ...
    async def wait_connected(self, seconds: float) -> bool: ...

    async def execute(self, run: Run) -> Answer:
        """Call the app; cancelling it cancels the call."""


class CallPerRun:
    """Implements the pipeline's `App` port."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def connected(self) -> bool:
        return self._caller.connected

    async def wait_connected(self, seconds: float) -> bool:
        return await self._caller.wait_connected(seconds)

    def deliver(self, run: Run, answered: Callable[[Answer], None]) -> "_Call":
        task = asyncio.create_task(_answer(self._caller, run), name=f"execute.{run.ref.run_id}")
        return _Call(task, answered)


class _Call:
    def __init__(self, task: "asyncio.Task[Answer]", answered: Callable[[Answer], None]) -> None:
        self._task = task
        self._answered: Callable[[Answer], None] | None = answered
        task.add_done_callback(self._ended)

    def cancel(self) -> Awaitable[object]:
        self._answered = None
        self._task.cancel()
        return asyncio.gather(self._task, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Answer]") -> None:
        if self._answered and not task.cancelled():
            self._answered(task.result())


async def _answer(caller: Caller, run: Run) -> Answer:
    try:
        return await caller.execute(run)
    except Exception as error:  # a bug of ours must not leave the run without an answer
        log.exception("execute_call_failed", run_id=run.ref.run_id)
        return CallFailed("INTERNAL", f"error in the sidecar: {type(error).__name__}")
