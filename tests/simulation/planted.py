"""Bugs to plant: each lives here only, as a subclass of the code or of the model it breaks."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sidecar.execution.recorder import RETRY_SECONDS, Recorder
from sidecar.model.election import Election
from sidecar.model.election_group import Group
from sidecar.model.election_types import Effect, Lose, Result, Statement, Taken
from sidecar.model.errors import AnswerLost, StoreUnavailable
from sidecar.model.run import RunRef, RunState
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.stored_schedule import ClaimedTicks, DueTicks, StoredSchedule
from sidecar.model.term import LossReason, Term
from tests.simulation.apps import ModelLink
from tests.simulation.cluster import Parts
from tests.simulation.postgres_model import Server
from tests.simulation.run_statements import RunStatements
from tests.simulation.schedule_statements import ScheduleStatements
from tests.simulation.tables import RunRow
from tests.simulation.work_client import ModelRuns, ModelSchedules


class TrustCountsFromTheAnswer(Election):
    """A slow answer stretches the term."""

    def result_received(
        self, statement: Statement, result: Result, *, sent_at: float, now: float
    ) -> None:
        super().result_received(statement, result, sent_at=now, now=now)


class CleanOnAnyTimeline(Election):
    """A clean release is believed although the failover forgot the term that followed it."""

    def _taken(self, g: Group, taken: Taken, sent_at: float, now: float) -> None:
        super()._taken(g, replace(taken, clean_timeline=taken.timeline), sent_at, now)


class EveryLossIsClean(Election):
    """The release says clean although the app never answered."""

    def lose_finished(self, term: Term, acknowledged: bool, now: float) -> None:
        super().lose_finished(term, True, now)


class LossIsNotTold(Election):
    """OnLoseLeadership is skipped when the lease is lost."""

    def effects(self) -> list[Effect]:
        effects = super().effects()
        skipped = [e for e in effects if isinstance(e, Lose) and e.reason is LossReason.LEASE_LOST]
        for lose in skipped:
            self.lose_finished(lose.term, True, 0.0)
        return [effect for effect in effects if effect not in skipped]


class LossIsToldOnce(Election):
    """OnLoseLeadership that was not acknowledged is not sent again before OnBecomeLeader."""

    def lose_finished(self, term: Term, acknowledged: bool, now: float) -> None:
        super().lose_finished(term, acknowledged, now)
        self.losses.acknowledge(term)


class AppMayBeDead(Election):
    """The app's health does not matter once it was good."""

    def app_health_changed(self, healthy: bool, now: float) -> None:
        super().app_health_changed(healthy or self.app_healthy, now)


class AnyProcessMayAnswer(ModelLink):
    """What answers after the connection broke speaks for the app that was told of the term."""

    doubts = False


class NoFence(Server):
    """A write under an old epoch is accepted."""

    fenced = False


class EpochsMerelyCount(Server):
    """Epochs are counted from what is there, so that a lossy failover repeats one."""

    def next_epoch(self, found: int) -> int:
        return found + 1


class CompletionIsNotFenced(RunStatements):
    """A verdict is written for whatever attempt is live, under whatever term."""

    def complete(
        self, term: Term, completions: Sequence[Completion], *, with_state: bool = True
    ) -> dict[int, Recorded]:
        return self.accepted(term, completions, with_state=with_state)

    def is_live(self, run: RunRow, ref: RunRef, term: Term) -> bool:
        return run.state is RunState.RUNNING and run.attempt == ref.attempt


class AnyAttemptMayComplete(RunStatements):
    """The late answer to an old attempt counts for the one that runs now."""

    def is_live(self, run: RunRow, ref: RunRef, term: Term) -> bool:
        return run.state is RunState.RUNNING and run.epoch == term.epoch


class AnOutcomeMayChange(RunStatements):
    """A late answer counts although the run has ended, or waits for its next attempt."""

    def is_live(self, run: RunRow, ref: RunRef, term: Term) -> bool:
        return run.attempt == ref.attempt and run.epoch == term.epoch


class StateFollowsLater(ModelRuns):
    """The state is kept in a transaction of its own."""

    async def complete(
        self, term: Term, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        accepted = await self._call(lambda: self._do.complete(term, completions, with_state=False))
        for completion in completions:
            if completion.run.ref.run_id in accepted:
                await self._call(self._do.keep_state, completion)
        return accepted


class ClaimHasNoKey(ScheduleStatements):
    """Ticks become runs though the schedule has moved on and the row is there."""

    def is_unchanged(self, stored: StoredSchedule, ticks: DueTicks) -> bool:
        return stored.version == ticks.before.version

    def has_tick(self, name: str, tick: datetime) -> bool:
        return False


class ClaimIsRepeated(ModelSchedules):
    """After a lost answer the ticks are claimed again: harmless while claims have their key."""

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        try:
            return await super().claim_ticks(term, due)
        except AnswerLost:
            return await super().claim_ticks(term, due)


class LeadersClockDecides(ScheduleStatements):
    """What the leader takes for due is due."""

    def is_ready(self, stored: StoredSchedule, ticks: DueTicks, now: datetime) -> bool:
        return self.is_unchanged(stored, ticks)


class BackfillTakesTheLeadersTicks(ScheduleStatements):
    """Ticks that the leader has not looked at yet are backfilled, too."""

    def backfill(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Sequence[datetime]]
    ) -> list[int]:
        return super().backfill(name, lambda s, now: decide(replace(s, watermark=now), now))


class WatermarkMovesFirst(ModelSchedules):
    """The watermark is moved in a transaction before the one that writes the rows."""

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        rows = self._do.give_birth
        moved = await self._call(self._claim_without_rows, term, due)
        for ticks in due:
            if ticks.before.id in moved.moved:
                await self._call(rows, ticks.before, ticks)
        return replace(moved, queued=1)

    def _claim_without_rows(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        return self._do.claim_ticks(term, [replace(d, steps=(), starts=()) for d in due])


class BlindRetry(Recorder):
    """After a lost answer the verdict is written again without looking."""

    async def _write_until_answered(
        self, completions: Sequence[Completion], *, lost: bool
    ) -> tuple[Mapping[int, Recorded], Collection[int]]:
        while True:
            try:
                return await self._store.complete(self._authority.term, completions), ()
            except StoreUnavailable:
                await asyncio.sleep(RETRY_SECONDS[0])


# What is planted, and the guarantee that it breaks.
PLANTED = {
    "no grace": (Parts(grace_factor=0.0), "G1"),
    "trust counts from the answer": (Parts(election=TrustCountsFromTheAnswer), "G1"),
    "clean on any timeline": (Parts(election=CleanOnAnyTimeline), "G1"),
    "every loss is clean": (Parts(election=EveryLossIsClean), "G1"),
    "any process may answer": (Parts(link=AnyProcessMayAnswer), "G1"),
    "loss is not told": (Parts(election=LossIsNotTold), "order"),
    "loss is told once": (Parts(election=LossIsToldOnce), "order"),
    "app may be dead": (Parts(election=AppMayBeDead), "G9"),
    "no fence": (Parts(server=NoFence), "G3"),
    "epochs merely count": (Parts(server=EpochsMerelyCount), "G2"),
    "completion is not fenced": (Parts(run_statements=CompletionIsNotFenced), "G3"),
    "any attempt may complete": (Parts(run_statements=AnyAttemptMayComplete), "G4"),
    "an outcome may change": (Parts(run_statements=AnOutcomeMayChange), "G4"),
    "state follows later": (Parts(runs=StateFollowsLater), "G6"),
    "claim has no key": (
        Parts(schedule_statements=ClaimHasNoKey, schedules=ClaimIsRepeated),
        "G4",
    ),
    "the leader's clock decides": (Parts(schedule_statements=LeadersClockDecides), "G4"),
    "backfill past the watermark": (
        Parts(schedule_statements=BackfillTakesTheLeadersTicks),
        "G4",
    ),
    "watermark moves first": (Parts(schedules=WatermarkMovesFirst), "G4"),
}
