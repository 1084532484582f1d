"""Drives an app that attaches: the same checks, over the work stream instead of the callback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from sidecar.adapters.app.messages import Messages, leader_message
from sidecar.adapters.app.process import AttachedProcess
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.cli.conformance.driver import CALLBACK_SECONDS, CLUSTER, Driver, Subject
from sidecar.cli.conformance.fake_sidecar import RUNNER_ID, FakeSidecar
from sidecar.config import SecretSource
from sidecar.election.leadership import DEFAULT_GROUP
from sidecar.model.errors import AppUnavailable
from sidecar.model.process import ProcessHello
from sidecar.model.run import Answer, CallFailed, Run
from sidecar.model.term import LossReason, Term
from sidecar.tracing import NoTracer

_ATTACH_SECONDS = 30.0
_HEALTH_SECONDS = 1.0


def processes() -> AttachedProcesses:
    """Where the app attaches; a process that does not answer 3 pings is closed."""
    return AttachedProcesses(
        Messages(cluster=CLUSTER, runner_id=RUNNER_ID),
        NoTracer(),
        (DEFAULT_GROUP,),
        interval=_HEALTH_SECONDS,
        failures_max=3,
        callback_timeout=CALLBACK_SECONDS,
    )


class StreamLink:
    """The first process that attached, with the methods of the link to a callback app."""

    def __init__(self, attached: AttachedProcesses) -> None:
        self._attached = attached

    @property
    def process(self) -> AttachedProcess:
        if found := next(self._attached.ready, None):
            return found
        raise AppUnavailable("no process of the app is attached")

    @property
    def hello(self) -> ProcessHello:
        return self.process.hello

    async def wait_connected(self) -> None:
        while next(self._attached.ready, None) is None:
            await self._attached.changed()

    async def check(self, timeout: float) -> None:
        await self.process.check(timeout)

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        await self.process.become_leader(term, trusted_until, timeout)

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        await self.process.lose_leadership(term, reason, timeout)

    async def close(self) -> None:
        for process in self._attached.all:
            process.close()


class StreamDriver(Driver):
    """An app that attaches to the suite's sidecar."""

    attached = True
    connect_seconds = _ATTACH_SECONDS

    def __init__(self, subject: Subject, sidecar: FakeSidecar, attached: AttachedProcesses) -> None:
        self._stream = StreamLink(attached)
        super().__init__("", SecretSource(), subject, sidecar, link=self._stream)

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Send the renewals of trust in the stream, as a sidecar does."""
        task = asyncio.create_task(self._renew(), name="conformance.renew")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _renew(self) -> None:
        while True:
            await self.sidecar.election.changed()
            view = self.sidecar.election.view(DEFAULT_GROUP)
            if view.is_leader and self.term is not None:
                self._stream.process.renew(leader_message(view))

    async def _executed(self, run: Run) -> Answer:
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answered(answer: Answer) -> None:
            if not done.done():
                done.set_result(answer)

        call = self._stream.process.deliver(replace(run), answered)
        seconds = run.limits.timeout_seconds
        try:
            async with asyncio.timeout(seconds or None):
                return await done
        except TimeoutError:
            call.cancel()
            return CallFailed("DEADLINE_EXCEEDED", f"no answer within {seconds:g} s")
        except asyncio.CancelledError:
            call.cancel()
            raise
