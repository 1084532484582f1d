"""Leader-only processes: one `Execute` per singleton stays open during the whole term.

Guarantees:
- one execution at a time in the whole cluster: each is a run of its own, started under the term,
  and its result is accepted only while it is the live run (G3, G6);
- an execution that ends is restarted after `restart_after`, with back-off after failures;
- when the term drains, the handler gets RETURN_SECONDS to return, then its call is cancelled; when
  the term is lost, its call is cancelled at once. Both happen before OnLoseLeadership.

    start_singleton ─▶ execute (the pipeline) ─▶ pause ─▶ start_singleton …
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import structlog

from sidecar import metrics
from sidecar.execution.authority import Authority
from sidecar.execution.pipeline import Executions
from sidecar.model.definitions import Retry, Singleton
from sidecar.model.errors import Fenced, SidecarError
from sidecar.model.run import Limits, Outcome, Run, Stopped
from sidecar.model.run_records import Recorded
from sidecar.model.schedule import SkipReason
from sidecar.model.term import LossReason, Term

log = structlog.get_logger()

RETURN_SECONDS = 1.0  # how long a handler may take to return once the term drains
RESTART_SECONDS_MAX = 60.0
RETRY_SECONDS = 1.0
_ONE_ATTEMPT = Limits(Retry(1, 1.0, 1.0))


class Store(Protocol):
    async def start_singleton(self, term: Term, name: str) -> Run: ...


class Singletons:
    """Keeps the singletons of led groups running."""

    def __init__(self, declared: Iterable[Singleton], store: Store) -> None:
        self._declared = declared
        self._store = store

    async def lead(self, authority: Authority, executions: Executions) -> None:
        """Keep the group's singletons running until cancelled, or until they ended in a drain."""
        mine = [s for s in self._declared if s.group == authority.term.group]
        try:
            async with asyncio.TaskGroup() as tasks:
                for singleton in mine:
                    work = self._keep_running(singleton, authority, executions)
                    tasks.create_task(work, name=f"singleton.{singleton.name}")
        except* Fenced:
            metrics.FENCED_WRITES.labels("singleton").inc()
            authority.revoke(LossReason.FENCED)

    async def _keep_running(
        self, singleton: Singleton, authority: Authority, executions: Executions
    ) -> None:
        failures = 0
        while not authority.draining.is_set():
            try:
                run = await self._started(singleton, authority)
            except Fenced:
                raise
            except SidecarError as error:
                log.warning("singleton_start_failed", singleton=singleton.name, problem=str(error))
                await _pause(RETRY_SECONDS, authority)
                continue
            log.info("singleton_started", singleton=run.name, run_id=run.ref.run_id)
            recorded = await _executed(run, authority, executions)
            if recorded is None:  # not recorded: the authority is over or about to end
                await _pause(RETRY_SECONDS, authority)
                continue
            _log_end(run, recorded)
            failures = failures + 1 if recorded.outcome is Outcome.FAILED else 0
            await _pause(restart_seconds(singleton.restart_after_seconds, failures), authority)

    async def _started(self, singleton: Singleton, authority: Authority) -> Run:
        run = await self._store.start_singleton(authority.term, singleton.name)
        return replace(
            run,
            limits=_ONE_ATTEMPT,
            ping_url=singleton.ping_url,
            state_version=singleton.state.version,
            state_ttl_seconds=singleton.state.ttl_seconds,
        )


async def _executed(run: Run, authority: Authority, executions: Executions) -> Recorded | None:
    """What was recorded at its end; in a drain the run is cancelled after RETURN_SECONDS."""
    ended = executions.execute(run)
    draining = asyncio.create_task(authority.draining.wait(), name="singletons.draining")
    try:
        first: set[asyncio.Future[Any]] = {ended, draining}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait({ended}, timeout=RETURN_SECONDS)
            executions.stop(run.ref, Stopped(SkipReason.OPERATOR, "handed over"))
        return await ended
    finally:
        draining.cancel()


def _log_end(run: Run, recorded: Recorded) -> None:
    fields = {"run_id": run.ref.run_id, "outcome": recorded.outcome}
    log.info("singleton_ended", singleton=run.name, **fields)


def restart_seconds(restart_after: float, failures: int) -> float:
    """The pause before the next execution: doubled with each failure in a row."""
    if failures == 0:
        return restart_after
    doubled = max(restart_after, 1.0) * float(2 ** min(failures - 1, 16))
    return max(restart_after, min(RESTART_SECONDS_MAX, doubled))


async def _pause(seconds: float, authority: Authority) -> None:
    """Sleep; a drain ends the sleep."""
    draining = asyncio.create_task(authority.draining.wait(), name="singletons.pause")
    try:
        await asyncio.wait({draining}, timeout=seconds)
    finally:
        draining.cancel()
