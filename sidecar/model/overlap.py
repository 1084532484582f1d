"""The overlap policy: which due runs of a schedule start while another run is in progress.

An execution is in progress from its first delivery to its outcome, including waits for a retry.
Unless the policy is `allow`, backfilled ticks do not overlap either. The policy never skips or
replaces them: they wait for other runs, and other runs wait for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Overlap(StrEnum):
    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that is due; `begun` if it was delivered before."""

    run_id: int
    begun: bool = False
    backfill: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision for each candidate; a candidate in neither tuple waits."""

    start: tuple[int, ...] = ()
    skip: tuple[int, ...] = ()
    replace: bool = False  # cancel the runs in progress, except backfilled ones


def admission(
    policy: Overlap, candidates: Sequence[Candidate], *, busy: bool, running: bool = False
) -> Admission:
    """Decide for the due runs of one schedule, oldest first.

    `busy`: another run of the schedule is in progress. `running`: one is executing right now.
    Several runs may have begun under a policy that allowed overlap; they continue one at a time.
    """
    begun = tuple(c.run_id for c in candidates if c.begun)
    fresh = [c for c in candidates if not c.begun]
    ticks = [c.run_id for c in fresh if not c.backfill]
    if policy is Overlap.ALLOW:
        return Admission(start=begun + tuple(c.run_id for c in fresh))
    if policy is Overlap.REPLACE and ticks:
        older, newest = tuple(ticks[:-1]), ticks[-1]
        if busy or begun:
            resumable = tuple(c.run_id for c in candidates if c.begun and c.backfill)
            return Admission(start=() if running else resumable[:1], skip=older, replace=True)
        return Admission(start=(newest,), skip=older)
    start = () if running else begun[:1]
    if not busy and not begun and fresh:
        start = (fresh[0].run_id,)
    rest = [run_id for run_id in ticks if run_id not in start]
    if not start and not busy:
        return Admission()
    return Admission(start=start, skip=tuple(rest[1:] if policy is Overlap.QUEUE else rest))
