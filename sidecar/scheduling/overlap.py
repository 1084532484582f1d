"""Decides which runs may start, for schedules whose runs must not overlap.

Only the leader of a group decides, one decision at a time, so two runs of a schedule never start
because of the same read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from sidecar.execution.announcer import Announcer
from sidecar.model.overlap import Admission, Candidate, admission
from sidecar.model.run_records import Contender, Recorded
from sidecar.model.schedule import SkipReason
from sidecar.model.term import Term
from sidecar.scheduling.ports import RunStore


@dataclass(frozen=True, slots=True)
class Admitted:
    start: tuple[int, ...]  # may start now
    replaced: bool  # the cancellation of running runs was requested
    repeat: bool  # some runs were ended: others may start now, so decide again


async def admit(store: RunStore, term: Term, announcer: Announcer) -> Admitted:
    """Skip and replace runs according to their overlap policies; return which may start."""
    start: list[int] = []
    skip: list[int] = []
    replace: set[int] = set()
    waiting: set[int] = set()
    due = await store.contended(term)
    if expired := any(contender.overdue for contender in due):
        announcer.ended(await store.expire(term))
    contenders = sorted((c for c in due if not c.overdue), key=attrgetter("schedule_id"))
    for _, group in groupby(contenders, key=attrgetter("schedule_id")):
        rivals = list(group)
        decided = _decided(rivals)
        start.extend(decided.start)
        skip.extend(decided.skip)
        if decided.replace:
            # Running runs are cancelled; runs that wait for a retry are skipped. Backfilled runs
            # are not replaced.
            for rival in rivals:
                replace.update({*rival.running_ids} - {*rival.backfill_ids})
                waiting.update({*rival.waiting_ids} - {*rival.backfill_ids})
    ended: Sequence[Recorded] = ()  # without the runs that another transaction is changing
    if ending := {*skip, *waiting}:
        ended = await store.skip(term, sorted(ending), SkipReason.OVERLAP, "overlap")
        announcer.ended(ended)
    if replace:
        await store.ask_replacement(term, sorted(replace))
    return Admitted(tuple(start), bool(replace), bool(ended) or expired)


def _decided(rivals: Sequence[Contender]) -> Admission:
    """Decide for the due runs of one schedule, oldest first (the sort by schedule is stable)."""
    candidates = [Candidate(r.run_id, r.begun, r.backfill) for r in rivals]
    mine = {rival.run_id for rival in rivals if rival.begun}
    others = {i for rival in rivals for i in (*rival.running_ids, *rival.waiting_ids)}
    running = any(rival.running_ids for rival in rivals)
    return admission(rivals[-1].overlap, candidates, busy=bool(others - mine), running=running)
