"""The handlers of an app, by kind and name, and how one is run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from baton._cluster import enter_scope
from baton._context import Context
from baton._outcomes import INTENDED, failure, success
from baton._specs import JobOptions
from baton._threads import invoke_in_thread, is_async
from baton.v1 import callback_pb2 as pb
from baton.v1 import runs_pb2

log = logging.getLogger("baton")
Handler = Callable[[Context], Any]
Settle = Callable[[Context, pb.ExecuteResponse | None], None]

ASYNC_CAPACITY = 1500
THREAD_CAPACITY = 64


class Registered:
    """A handler, and whether it is a coroutine function: asked once, not with each run."""

    __slots__ = ("function", "is_async")

    def __init__(self, function: Handler) -> None:
        self.function, self.is_async = function, is_async(function)


@dataclass
class Handlers:
    """What the app can execute, by name."""

    schedules: dict[str, Registered] = field(default_factory=dict)
    singletons: dict[str, Registered] = field(default_factory=dict)
    jobs: dict[str, Registered] = field(default_factory=dict)
    job_options: dict[str, JobOptions] = field(default_factory=dict)
    hide_errors: bool = False

    def find(self, kind: int, name: str) -> Registered | None:
        """The handler for a run; None: this app does not know it."""
        if kind == runs_pb2.RUN_KIND_JOB:
            return self.jobs.get(name)
        is_singleton = kind == runs_pb2.RUN_KIND_SINGLETON
        return (self.singletons if is_singleton else self.schedules).get(name)

    def capacity(self) -> int:
        """How many runs this app takes at once, unless the user says it: threads cost more."""
        counted = (*self.schedules.values(), *self.jobs.values())
        all_async = all(handler.is_async for handler in counted)
        return ASYNC_CAPACITY if all_async else THREAD_CAPACITY

    async def run(
        self, handler: Registered, attempt: Context, settle: Settle
    ) -> pb.ExecuteResponse | None:
        """Runs the handler in its scope; hands its answer to `settle`, and returns it.

        None: succeeded, with nothing to say about it.
        """
        enter_scope(attempt)
        try:
            if handler.is_async:
                returned = await handler.function(attempt)
            else:
                returned = await invoke_in_thread(handler.function, attempt)
            response = None if returned is None else success(returned, self.job_options)
        except Exception as error:
            response = self._failure(attempt, error)
        except asyncio.CancelledError as error:
            if attempt.cancelled:
                raise
            response = failure(error, hide=self.hide_errors)  # the handler cancelled itself
        settle(attempt, response)
        return response

    def _failure(self, attempt: Context, error: Exception) -> pb.ExecuteResponse:
        if not isinstance(error, INTENDED):
            log.exception("run %d of %s failed", attempt.run_id, attempt.name)
        try:
            return failure(error, hide=self.hide_errors)
        except Exception as unsendable:  # its state is nothing that JSON can say
            log.exception("run %d of %s failed", attempt.run_id, attempt.name)
            return failure(unsendable, hide=self.hide_errors)
