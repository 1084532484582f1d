"""Which groups this app leads, in which term, and until when it may believe so.

    no term -- OnBecomeLeader(e), e above every epoch lost --> term e
    term e  -- OnLoseLeadership(0, or an epoch >= e), or OnBecomeLeader(above e) --> no term, e lost

A term is trusted only until `trusted_until`; a renewal moves that, in either direction. Nothing
here waits or does I/O: the clock is an argument, and what follows from a change is the caller's
business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.duration_pb2 import Duration

from baton._clock import IS_BOOTTIME, boottime
from baton.v1 import callback_pb2 as pb
from baton.v1 import leadership_pb2

Clock = Callable[[], float]


def trust_end(
    message: pb.OnBecomeLeaderRequest | leadership_pb2.Leader, *, read_at: float
) -> float | None:
    """When the trust given by a message read at `read_at` ends: the earlier of its two readings."""
    ends = []
    if message.HasField("trusted_for"):
        ends.append(read_at + _seconds(message.trusted_for))
    if IS_BOOTTIME and message.HasField("trusted_until_boottime"):
        ends.append(_seconds(message.trusted_until_boottime))
    return min(ends, default=None)


@dataclass(eq=False)
class Term:
    """One leadership of one group; `trusted_until` None: the sidecar said nothing about trust."""

    group: str
    epoch: int
    trusted_until: float | None
    clock: Clock = boottime
    over: bool = False
    draining: asyncio.Event = field(default_factory=asyncio.Event)

    def leads(self) -> bool:
        """Whether the app may act as leader at this instant."""
        return not self.over and self.trusted_until is not None and self.trust_left() > 0

    def trust_left(self) -> float:
        """Seconds of trust left, by the last message; without any trust time it never ends."""
        return float("inf") if self.trusted_until is None else self.trusted_until - self.clock()

    def distrust(self) -> None:
        """Ends trust at once; only a later message of this very term can bring it back."""
        self.trusted_until = 0.0

    def hear(self, leader: leadership_pb2.Leader, *, read_at: float) -> None:
        """Takes in a message of Leadership.Watch: only the newest counts."""
        if not leader.is_leader or leader.epoch != self.epoch:
            self.distrust()
            return
        self.trusted_until = trust_end(leader, read_at=read_at) or 0.0
        if leader.draining:
            self.draining.set()


class Terms:
    """The terms of all groups, and per group the highest epoch lost."""

    def __init__(self, clock: Clock = boottime) -> None:
        self.clock = clock
        self._open: dict[str, Term] = {}
        self._lost: dict[str, int] = {}

    def get(self, group: str) -> Term | None:
        """The open term of a group, trusted or not."""
        return self._open.get(group)

    def all(self) -> list[Term]:
        """Every open term."""
        return list(self._open.values())

    def last_lost(self, group: str) -> int:
        """The highest epoch lost; 0: none."""
        return self._lost.get(group, 0)

    def is_news(self, group: str, epoch: int) -> bool:
        """Whether OnBecomeLeader with this epoch opens a term: above all lost and held."""
        held = self._open.get(group)
        return epoch > max(self._lost.get(group, 0), held.epoch if held else 0)

    def open(self, group: str, epoch: int, trusted_until: float | None) -> Term:
        """Opens a term that `is_news`, after the one before it was closed."""
        if group in self._open or not self.is_news(group, epoch):
            raise ValueError(f"term {epoch} of {group} cannot be opened")
        term = self._open[group] = Term(group, epoch, trusted_until, self.clock)
        return term

    def close(self, group: str, epoch: int) -> Term | None:
        """Ends the open term if `epoch` is 0 or not below it, and remembers what was lost."""
        self._lost[group] = max(self._lost.get(group, 0), epoch)
        term = self._open.get(group)
        if term is None or 0 < epoch < term.epoch:
            return None
        term.over = True
        self._lost[group] = max(self._lost[group], term.epoch)
        return self._open.pop(group)


def _seconds(duration: Duration) -> float:
    return duration.seconds + duration.nanos / 1e9
