"""What `queries/runs/*.sql` do to the tables: each method is one statement, or one transaction."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sidecar.model.errors import Fenced
from sidecar.model.overlap import Overlap
from sidecar.model.run import (
    Checkpoint,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    RunState,
    idempotency_key,
)
from sidecar.model.run_records import (
    Cancellation,
    Claim,
    Completion,
    Contender,
    Recorded,
    Redelivered,
    Step,
    StoredStep,
)
from sidecar.model.schedule import CatchUp, CatchUpPolicy, SkipReason
from sidecar.model.term import Term
from sidecar.model.verdict import DELIVERIES_MAX
from tests.simulation.tables import CLUSTER, Execution, RunRow, Tables

_DUE = (RunState.QUEUED, RunState.WAITING)
_CONTENDERS_MAX = 20


class RunStatements:
    """Public methods are what the ports of dispatch and of the singletons ask for."""

    def __init__(self, tables: Tables) -> None:
        self._db = tables

    def fence(self, term: Term) -> None:
        if not self._db.stands(term):
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")

    def _wrote(self, term: Term) -> None:
        self._db.auditor.written(term.group_id, term.epoch)

    # ── taking over ─────────────────────────────────────────────────────────────────────────────

    def requeue(self, term: Term, known: Collection[int] | None) -> Redelivered:
        self.fence(term)
        changed = [self._taken_back(run, term) for run in self._strays(term)]
        for run in self._db.live(term.group_id, RunState.RUNNING):
            lost = known is not None and run.epoch == term.epoch and run.id not in known
            if run.kind is not RunKind.SINGLETON and (run.epoch < term.epoch or lost):
                changed.append(self._taken_back(run, term))
        if changed:
            self._wrote(term)
        return Redelivered(len(changed), tuple(_recorded(r) for r in changed if r.outcome))

    def _strays(self, term: Term) -> Iterator[RunRow]:
        """Left behind in a group that nobody leads, by schedules of this one, or retired ones."""
        for run in self._db.live(None, RunState.RUNNING, *_DUE):
            epoch = self._db.vacant(run.group_id) if run.group_id != term.group_id else None
            if epoch is not None and run.epoch <= epoch and run.schedule_id:
                here = self._db.schedules[run.schedule_id].definition.group == term.group
                if here or self._is_retired(run):
                    yield run

    def _taken_back(self, run: RunRow, term: Term) -> RunRow:
        now, running = self._db.now, run.state is RunState.RUNNING
        old = run.epoch < term.epoch or run.group_id != term.group_id
        outcome = None
        if run.cancel_reason or self._is_retired(run):
            outcome = Outcome.SKIPPED
        elif old and running and run.attempt - run.attempts_free >= DELIVERIES_MAX:
            outcome = Outcome.FAILED
        after = replace(
            run,
            group_id=term.group_id,
            overlap=self._db.schedules[run.schedule_id].definition.overlap,
            state=RunState.ENDED if outcome else RunState.WAITING if running else run.state,
            outcome=outcome,
            reason=run.cancel_reason or SkipReason.OPERATOR if outcome is Outcome.SKIPPED else None,
            attempts_free=run.attempts_free + (0 if old else 1),
            due_at=min(run.due_at, now) if running else run.due_at,
            finished_at=now if outcome else None,
        )
        self._db.put_run(after)
        if outcome is Outcome.FAILED:
            self._remember(after, now)
        return after

    def expire(self, term: Term) -> list[Recorded]:
        self.fence(term)
        now = self._db.now
        queued = self._db.live(term.group_id, RunState.QUEUED)
        old = [run for run in queued if self._is_overdue(run, now)]
        return self._skipped(term, old, SkipReason.MISFIRE)

    def _is_overdue(self, run: RunRow, now: datetime) -> bool:
        """A tick that grew too old before it was begun."""
        if run.kind is not RunKind.SCHEDULE or run.attempt or run.backfill:
            return False
        definition = self._db.schedules[run.schedule_id].definition
        skip_if_older_than = timedelta(seconds=definition.skip_if_older_than_seconds)
        policy = CatchUpPolicy(skip_if_older_than, CatchUp(definition.catch_up))
        return now - run.due_at > policy.age_max

    def _is_retired(self, run: RunRow) -> bool:
        schedule = self._db.schedules.get(run.schedule_id)
        return schedule is not None and schedule.retired_at is not None

    # ── claiming ────────────────────────────────────────────────────────────────────────────────

    def claim(self, term: Term, limit: int, admitted: Sequence[int]) -> Claim:
        self.fence(term)
        now = self._db.now
        waiting = sorted(self._db.live(term.group_id, *_DUE), key=lambda r: (r.due_at, r.id))
        due = [r for r in waiting if r.due_at <= now]
        taken = [r for r in due if r.overlap == "allow" or r.id in admitted][:limit]
        chosen = [r for r in taken if not self._is_overdue(r, now)]
        contended = any(r.overlap != "allow" and r.id not in admitted for r in due)
        next_due_at = next((r.due_at for r in waiting if r.due_at > now), None)
        if chosen:
            self._wrote(term)
        deliveries = tuple(self._delivered(r, term, now) for r in chosen)
        return Claim(deliveries, now, next_due_at, contended, overdue=len(chosen) < len(taken))

    def _delivered(self, run: RunRow, term: Term, now: datetime) -> Run:
        self._db.put_run(
            replace(
                run,
                state=RunState.RUNNING,
                attempt=run.attempt + 1,
                epoch=term.epoch,
                attempt_started_at=now,
            )
        )
        definition = self._db.schedules[run.schedule_id].definition
        return Run(
            ref=RunRef(run.id, run.attempt + 1, term.epoch),
            kind=run.kind,
            name=run.name,
            group=term.group,
            scheduled_at=run.tick,
            idempotency_key=idempotency_key(CLUSTER, run.kind, run.name, run.id, run.tick),
            limits=Limits(
                definition.retry,
                definition.timeout_seconds,
                definition.skip_if_older_than_seconds,
            ),
            failures=run.failures,
            deliveries=run.attempt + 1 - run.attempts_free,
            undelivered=run.attempts_free,
            queued_seconds=(now - run.queued_at).total_seconds(),
            overlap=run.overlap,
        )

    def contended(self, term: Term) -> list[Contender]:
        """Not fenced, like the query: what follows from it is."""
        now = self._db.now
        # Of any group: the schedule may have come from another one.
        busy = [*self._db.live(None, RunState.RUNNING, RunState.WAITING)]
        due = sorted(
            (r for r in self._db.live(term.group_id, *_DUE) if r.overlap != "allow"),
            key=lambda r: (r.due_at, r.id),
        )
        places: dict[tuple[int, bool], int] = {}
        found = []
        for run in due:
            place = places[run.schedule_id, run.backfill] = (
                places.get((run.schedule_id, run.backfill), 0) + 1
            )
            if run.due_at <= now and place <= _CONTENDERS_MAX:
                overdue = self._is_overdue(run, now)
                found.append(replace(_contender(run, busy), overdue=overdue))
        return found

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    def skip(self, term: Term, run_ids: Sequence[int], reason: SkipReason) -> list[Recorded]:
        self.fence(term)
        found = [r for r in self._db.live(term.group_id, *_DUE) if r.id in run_ids]
        return self._skipped(term, found, reason)

    def _skipped(self, term: Term, runs: list[RunRow], reason: SkipReason) -> list[Recorded]:
        if runs:
            self._wrote(term)
        return [_recorded(self.end(run, Outcome.SKIPPED, reason)) for run in runs]

    def end(self, run: RunRow, outcome: Outcome, reason: SkipReason | None = None) -> RunRow:
        after = replace(
            run,
            state=RunState.ENDED,
            outcome=outcome,
            reason=reason,
            finished_at=self._db.now,
        )
        self._db.put_run(after)
        return after

    def ask_replacement(self, term: Term, run_ids: Sequence[int]) -> None:
        self.fence(term)
        for run in self._db.live(term.group_id, RunState.RUNNING):
            if run.id in run_ids and run.cancel_reason is None:
                self._wrote(term)
                self._db.put_run(replace(run, cancel_reason=SkipReason.OVERLAP))

    def cancellations(self, term: Term) -> list[Cancellation]:
        return [
            Cancellation(run.id, run.attempt, run.cancel_reason, "asked")
            for run in self._db.live(term.group_id, RunState.RUNNING)
            if run.epoch == term.epoch and run.cancel_reason
        ]

    def complete(
        self, term: Term, completions: Sequence[Completion], *, with_state: bool = True
    ) -> dict[int, Recorded]:
        self.fence(term)
        return self.accepted(term, completions, with_state=with_state)

    def accepted(
        self, term: Term, completions: Sequence[Completion], *, with_state: bool
    ) -> dict[int, Recorded]:
        """Those of live attempts."""
        accepted = {}
        for completion in completions:
            run = self._db.runs.get(completion.run.ref.run_id)
            if run and self.is_live(run, completion.run.ref, term):
                self._wrote(term)
                self._db.auditor.accepted(run, completion.run.ref, completion.run.state_key)
                accepted[run.id] = _recorded(self._completed(run, completion))
                self._count_state(completion)
                if with_state:
                    self.keep_state(completion)
        return accepted

    def is_live(self, run: RunRow, ref: RunRef, term: Term) -> bool:
        live = run.state is RunState.RUNNING and run.attempt == ref.attempt
        return live and run.epoch == term.epoch

    def _completed(self, run: RunRow, completion: Completion) -> RunRow:
        now, verdict = self._db.now, completion.verdict
        asked = run.cancel_reason is not None or self._is_retired(run)
        stopped = verdict.outcome is None and asked
        outcome = Outcome.SKIPPED if stopped else verdict.outcome
        reason = run.cancel_reason or SkipReason.OPERATOR if stopped else verdict.reason
        due_at, overlap = run.due_at, run.overlap
        if outcome is None:
            due_at = now + timedelta(seconds=verdict.wait_seconds)
            overlap = self._db.schedules[run.schedule_id].definition.overlap
        after = replace(
            run,
            state=RunState.ENDED if outcome else RunState.WAITING,
            outcome=outcome,
            reason=reason,
            overlap=overlap,
            due_at=due_at,
            failures=run.failures + verdict.used_retry,
            attempts_free=run.attempts_free + (not verdict.delivered),
            finished_at=now if outcome else None,
        )
        self._db.put_run(after)
        self._remember(after, now)
        return after

    def _remember(self, run: RunRow, now: datetime) -> None:
        key = (run.kind.entity_type, run.name)
        known = self._db.executions.get(key, Execution())
        success = now if run.outcome is Outcome.SUCCEEDED else None
        self._db.put(
            self._db.executions,
            key,
            replace(
                known,
                last_run_at=_latest(known.last_run_at, run.attempt_started_at),
                last_success_at=_latest(known.last_success_at, success),
            ),
        )

    def keep_state(self, completion: Completion) -> None:
        if completion.verdict.state is not None:
            self._db.put(self._db.states, completion.run.state_key, completion.verdict.state)

    def _count_state(self, completion: Completion) -> None:
        """For the judge, not for the product."""
        key = completion.run.state_key
        if completion.verdict.state is not None:
            count = self._db.state_writes.get(key, 0)
            self._db.put(self._db.state_writes, key, count + 1)

    def find_lost_completions(self, completions: Sequence[Completion]) -> Mapping[int, Recorded]:
        found = {}
        for ref in (completion.run.ref for completion in completions):
            run = self._db.runs.get(ref.run_id)
            if run is None or run.epoch != ref.epoch:
                continue
            if run.attempt > ref.attempt:
                found[run.id] = Recorded(run.id, run.kind, RunState.WAITING, None, None, None, None)
            elif run.attempt == ref.attempt and run.state is not RunState.RUNNING:
                found[run.id] = _recorded(run)
        return found

    # ── operators ───────────────────────────────────────────────────────────────────────────────

    def get(self, run_id: int) -> RunRow:
        return self._db.runs[run_id]

    def cancel(self, run_id: int) -> bool:
        run = self._db.runs.get(run_id)
        if run is None or run.kind is RunKind.SINGLETON or run.state is RunState.ENDED:
            return False
        asked = replace(run, cancel_reason=run.cancel_reason or SkipReason.OPERATOR)
        if run.state is RunState.RUNNING:
            self._db.put_run(asked)
        else:
            self.end(asked, Outcome.SKIPPED, SkipReason.OPERATOR)
        return True

    def retry(self, run_id: int) -> bool:
        now, run = self._db.now, self._db.runs.get(run_id)
        if run is None or run.outcome is not Outcome.FAILED or run.kind is RunKind.SINGLETON:
            return False
        schedule = self._db.schedules[run.schedule_id]
        again = replace(
            run,
            group_id=self._db.group_id(schedule),
            overlap=schedule.definition.overlap,
            state=RunState.QUEUED,
            outcome=None,
            finished_at=None,
            failures=0,
            attempts_free=run.attempt,
            cancel_reason=None,
            due_at=now,
            queued_at=now,
            lives=run.lives + 1,
        )
        self._db.put_run(again)
        return True

    # ── singletons, and what a run keeps ────────────────────────────────────────────────────────

    def start_singleton(self, term: Term, name: str) -> Run:
        self.fence(term)
        self._wrote(term)
        now = self._db.now
        for run in self._db.live(term.group_id, RunState.RUNNING):
            if run.kind is RunKind.SINGLETON and run.name == name and run.epoch <= term.epoch:
                self.end(run, Outcome.FAILED)
        born = RunRow(
            self._db.next_id(),
            term.group_id,
            RunKind.SINGLETON,
            name,
            0,
            now,
            RunState.RUNNING,
            now,
            now,
            attempt=1,
            epoch=term.epoch,
            attempt_started_at=now,
        )
        self._db.put_run(born)
        self._remember(born, now)
        return Run(
            ref=RunRef(born.id, 1, term.epoch),
            kind=born.kind,
            name=name,
            group=term.group,
            scheduled_at=now,
            idempotency_key=idempotency_key(CLUSTER, born.kind, name, born.id, now),
        )

    def checkpoint(self, ref: RunRef, step: str, value: bytes) -> StoredStep:
        run = self._db.runs.get(ref.run_id)
        term = Term("", run.group_id, ref.epoch) if run else None
        if not run or not term or not self._db.stands(term) or not self.is_live(run, ref, term):
            raise Fenced(f"attempt {ref.attempt} of run {ref.run_id} is not the live one: stop")
        steps = self._db.checkpoints.get(run.id, ())
        if found := next((s for s in steps if s.step == step), None):
            return StoredStep(False, found.value)
        self._wrote(term)
        self._db.put(self._db.checkpoints, run.id, (*steps, Checkpoint(step, value)))
        return StoredStep(True)

    def checkpoint_all(self, steps: Sequence[Step]) -> list[StoredStep | None]:
        """Of one group, each where nothing stands in its way; one alone hears what does."""
        if len(steps) == 1:
            return [self.checkpoint(steps[0].run, steps[0].name, steps[0].value)]
        runs = [
            self._db.runs[i]
            for i in sorted(step.run.run_id for step in steps)
            if i in self._db.runs
        ]
        group_id = next((run.group_id for run in runs if run.epoch == steps[0].run.epoch), None)
        return [self._unhindered(step, group_id) for step in steps]

    def _unhindered(self, step: Step, group_id: int | None) -> StoredStep | None:
        run = self._db.runs.get(step.run.run_id)
        if run is None or run.group_id != group_id:
            return None
        try:
            answer = self.checkpoint(step.run, step.name, step.value)
        except Fenced:
            return None
        return answer if answer.stored else None

    def checkpoints(self, run_ids: Sequence[int]) -> dict[int, tuple[Checkpoint, ...]]:
        return {i: self._db.checkpoints[i] for i in run_ids if i in self._db.checkpoints}

    def state(self, key: str) -> bytes:
        return self._db.states.get(key, b"0")


def _contender(run: RunRow, busy: list[RunRow]) -> Contender:
    others = [r for r in busy if r.schedule_id == run.schedule_id and r.id != run.id]
    return Contender(
        run_id=run.id,
        schedule_id=run.schedule_id,
        overlap=Overlap(run.overlap),
        begun=run.state is RunState.WAITING,
        backfill=run.backfill,
        running_ids=tuple(r.id for r in others if r.state is RunState.RUNNING),
        waiting_ids=tuple(r.id for r in others if r.state is RunState.WAITING),
        backfill_ids=tuple(r.id for r in others if r.backfill),
    )


def _recorded(run: RunRow) -> Recorded:
    return Recorded(run.id, run.kind, run.state, run.outcome, run.reason, 0.0, run.finished_at)


def _latest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a and b else a or b
