"""What a run does while another run of the same schedule is not over yet.

An execution is in progress from its first delivery to its outcome, waits for a retry included.
Backfilled ticks follow the policy in one point only: they never overlap; they are neither skipped
nor replaced for it, they wait and are waited for.
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
    """A run that is due; `begun` says that it was delivered before."""

    run_id: int
    begun: bool = False
    backfill: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """What is done with the candidates; those named nowhere wait."""

    start: tuple[int, ...] = ()
    skip: tuple[int, ...] = ()
    replace: bool = False  # what is in progress is to be cancelled, if it was not backfilled


def admission(
    policy: Overlap, candidates: Sequence[Candidate], *, busy: bool, running: bool = False
) -> Admission:
    """Decide for one schedule. Oldest first; `busy`: another run of it is in progress, and
    `running`: being executed just now. Several may be from the time in which they could overlap:
    now they go on one after the other.
    """
    begun = tuple(c.run_id for c in candidates if c.begun)
    fresh = [c for c in candidates if not c.begun]
    ticks = [c.run_id for c in fresh if not c.backfill]
    if policy is Overlap.ALLOW:
        return Admission(start=begun + tuple(c.run_id for c in fresh))
    if policy is Overlap.REPLACE and ticks:
        older, newest = tuple(ticks[:-1]), ticks[-1]
        if busy or begun:
            going_on = tuple(c.run_id for c in candidates if c.begun and c.backfill)
            return Admission(start=() if running else going_on[:1], skip=older, replace=True)
        return Admission(start=(newest,), skip=older)
    start = () if running else begun[:1]
    if not busy and not begun and fresh:
        start = (fresh[0].run_id,)
    rest = [run_id for run_id in ticks if run_id not in start]
    if not start and not busy:
        return Admission()
    return Admission(start=start, skip=tuple(rest[1:] if policy is Overlap.QUEUE else rest))
