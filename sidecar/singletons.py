"""Leader-only processes: one `Execute` per singleton stays open for as long as the term lasts.

Guarantees:
- one life at a time in the whole cluster: each is a run of its own, begun under the term, and what
  it returns is accepted only while it is the live one (G3, G6);
- it gets the last acknowledged state, read after its life began;
- a life that ends is followed by another one after `restart_after`, with back-off when it failed;
- when the term drains it has a moment to return by itself, then its call is cancelled; when the
  term is lost its call is cancelled at once. Either way before OnLoseLeadership.

    start_singleton ─▶ Execute … ─▶ verdict ─▶ record ─▶ pause ─▶ start_singleton …
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from sidecar import metrics
from sidecar.config import Singleton
from sidecar.model.errors import Fenced, SidecarError
from sidecar.model.ledger import Recorded, Report
from sidecar.model.retry import RetryPolicy
from sidecar.model.run import (
    Answer,
    CallFailed,
    Delivery,
    Limits,
    Outcome,
    Stopped,
    Verdict,
    verdict,
)
from sidecar.model.schedule import SkipReason
from sidecar.model.term import Tenure, Term

log = structlog.get_logger()

FAREWELL_SECONDS = 1.0
RESTART_SECONDS_MAX = 60.0
RETRY_SECONDS = 1.0
_ONE_ATTEMPT = Limits(RetryPolicy(1, 1.0, 1.0))


class Store(Protocol):
    async def start_singleton(self, term: Term, name: str) -> Delivery: ...


class Callback(Protocol):
    async def execute(self, delivery: Delivery) -> Answer: ...


class Recorder(Protocol):
    """Writes verdicts; one per term."""

    async def record(self, report: Report) -> Recorded | None: ...
    async def run(self) -> None: ...


class Singletons:
    """Keeps the singletons of led groups alive."""

    def __init__(
        self,
        declared: Sequence[Singleton],
        store: Store,
        callback: Callback,
        recorder_of: Callable[[Tenure], Recorder],
        *,
        recorded: Callable[[Report, Recorded], None],
    ) -> None:
        self._declared = declared
        self._store = store
        self._callback = callback
        self._recorder_of = recorder_of
        self._recorded = recorded

    async def lead(self, tenure: Tenure) -> None:
        """Keep the group's singletons alive until cancelled, or until they ended in a drain."""
        mine = [s for s in self._declared if s.group == tenure.term.group]
        recorder = self._recorder_of(tenure)
        writer = asyncio.create_task(recorder.run(), name="singletons.record")
        try:
            async with asyncio.TaskGroup() as tasks:
                for singleton in mine:
                    life = self._keep_alive(singleton, tenure, recorder)
                    tasks.create_task(life, name=f"singleton.{singleton.name}")
        except* Fenced:
            metrics.FENCED_WRITES.labels("singleton").inc()
            tenure.fenced()
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _keep_alive(self, singleton: Singleton, tenure: Tenure, recorder: Recorder) -> None:
        failures = 0
        while not tenure.draining.is_set():
            try:
                delivery = await self._begun(singleton, tenure)
            except Fenced:
                raise
            except SidecarError as error:
                log.warning("singleton_waits", singleton=singleton.name, problem=str(error))
                await _pause(RETRY_SECONDS, tenure)
                continue
            if not tenure.trusted:  # a slow answer, or a frozen process: the next leader's turn
                await _pause(RETRY_SECONDS, tenure)
                continue
            succeeded = await self._live(delivery, tenure, recorder)
            failures = 0 if succeeded else failures + 1
            await _pause(restart_seconds(singleton.restart_after_seconds, failures), tenure)

    async def _begun(self, singleton: Singleton, tenure: Tenure) -> Delivery:
        delivery = await self._store.start_singleton(tenure.term, singleton.name)
        return replace(
            delivery,
            limits=_ONE_ATTEMPT,
            ping_url=singleton.ping_url,
            state_version=singleton.state.version,
            state_ttl_seconds=singleton.state.ttl_seconds,
        )

    async def _live(self, delivery: Delivery, tenure: Tenure, recorder: Recorder) -> bool:
        """One life; whether it ended well."""
        log.info("singleton_started", singleton=delivery.name, run_id=delivery.ref.run_id)
        answer = await self._answer(delivery, tenure)
        report = Report(delivery, ended(verdict(delivery, answer, age_seconds=0.0, chance=0.0)))
        recorded = await recorder.record(report)
        log.info(
            "singleton_ended",
            singleton=delivery.name,
            run_id=delivery.ref.run_id,
            outcome=report.verdict.outcome,
            problem=report.verdict.error,
            accepted=recorded is not None,
        )
        if recorded:
            self._recorded(report, recorded)
        return report.verdict.outcome is not Outcome.FAILED

    async def _answer(self, delivery: Delivery, tenure: Tenure) -> Answer:
        """What the app returned; in a drain it is asked to stop after a moment."""
        call = asyncio.create_task(self._callback.execute(delivery), name="singletons.execute")
        draining = asyncio.create_task(tenure.draining.wait(), name="singletons.draining")
        try:
            await asyncio.wait({call, draining}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                await asyncio.wait({call}, timeout=FAREWELL_SECONDS)
            if call.done():
                return call.result()
            return Stopped(SkipReason.OPERATOR, "handed over")
        except Exception as error:  # a life that cannot begin must not end its neighbours
            log.exception("callback_broke", singleton=delivery.name, run_id=delivery.ref.run_id)
            return CallFailed("INTERNAL", f"inside the sidecar: {type(error).__name__}")
        finally:
            call.cancel()
            draining.cancel()
            await asyncio.gather(call, draining, return_exceptions=True)


def ended(decided: Verdict) -> Verdict:
    """A life never waits for another attempt: it ended, and the next one is a run of its own."""
    if decided.outcome is not None:
        return decided
    return replace(decided, outcome=Outcome.FAILED, wait_seconds=0.0)


def restart_seconds(restart_after: float, failures: int) -> float:
    """The pause before the next life: doubled with each failure in a row."""
    if failures == 0:
        return restart_after
    doubled = max(restart_after, 1.0) * float(2 ** min(failures - 1, 16))
    return max(restart_after, min(RESTART_SECONDS_MAX, doubled))


async def _pause(seconds: float, tenure: Tenure) -> None:
    """Sleep, but not into a drain."""
    draining = asyncio.create_task(tenure.draining.wait(), name="singletons.pause")
    try:
        await asyncio.wait({draining}, timeout=seconds)
    finally:
        draining.cancel()
