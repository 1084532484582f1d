"""Runs of schedules whose executions must not overlap: which of them may begin.

Only the leader of a group decides here, one turn after the other, so that two runs of a schedule
never begin on the ground of the same look.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from sidecar.dispatch.ports import RunStore
from sidecar.dispatch.reporting import count_ended
from sidecar.model.ledger import Contender, Recorded
from sidecar.model.overlap import Admission, Candidate, admission
from sidecar.model.schedule import SkipReason
from sidecar.model.term import Term


@dataclass(frozen=True, slots=True)
class Admitted:
    start: tuple[int, ...]  # may begin now
    replaced: bool  # some that run were asked to end
    look_again: bool  # some have ended here: others may begin, or come into sight


async def admit(store: RunStore, term: Term) -> Admitted:
    """Skip and replace as the policies say, and tell what may begin."""
    start: list[int] = []
    skip: list[int] = []
    replace: set[int] = set()
    waiting: set[int] = set()
    due = await store.contended(term)
    if expired := any(contender.overdue for contender in due):
        count_ended(await store.expire(term))
    contenders = sorted((c for c in due if not c.overdue), key=attrgetter("schedule_id"))
    for _, group in groupby(contenders, key=attrgetter("schedule_id")):
        rivals = list(group)
        decided = _decided(rivals)
        start.extend(decided.start)
        skip.extend(decided.skip)
        if decided.replace:
            # What runs is asked to end; what waits for a retry ends here. Backfilled ones go on.
            for rival in rivals:
                replace.update({*rival.running_ids} - {*rival.backfill_ids})
                waiting.update({*rival.waiting_ids} - {*rival.backfill_ids})
    ended: Sequence[Recorded] = ()  # not those that somebody else is changing
    if ending := {*skip, *waiting}:
        ended = await store.skip(term, sorted(ending), SkipReason.OVERLAP, "overlap")
        count_ended(ended)
    if replace:
        await store.ask_replacement(term, sorted(replace))
    return Admitted(tuple(start), bool(replace), bool(ended) or expired)


def _decided(rivals: Sequence[Contender]) -> Admission:
    """`sorted` is stable: within a schedule the oldest still comes first."""
    candidates = [Candidate(r.run_id, r.begun, r.backfill) for r in rivals]
    mine = {rival.run_id for rival in rivals if rival.begun}
    others = {i for rival in rivals for i in (*rival.running_ids, *rival.waiting_ids)}
    running = any(rival.running_ids for rival in rivals)
    return admission(rivals[-1].overlap, candidates, busy=bool(others - mine), running=running)
