"""Selects the next statement for the lock session: one at a time, the most urgent first.

Guarantees:
- no other statement delays a ping that is due;
- the first choice for a group tries its lock at each poll; the other runners try it as soon as the
  holder seems to be gone, each after the delay of its rank;
- at each time that `times` returns, `next` has a statement to send.

    ping ▶ release ▶ takeover ▶ reap ▶ inspect ▶ poll ▶ takeover that was blocked
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sidecar.model.election_group import NEVER, Group
from sidecar.model.election_types import (
    Inspect,
    Phase,
    Ping,
    Poll,
    Reap,
    Release,
    Statement,
    Takeover,
    Timers,
)

_REAP_SLACK_SECONDS = 2.0
# The least time between two pings that refused writes ask for: an app that keeps writing for an
# attempt that has ended must not occupy the session.
REFUSED_PING_SECONDS = 0.1


@dataclass(slots=True)
class StatementSelector:
    """Times pings and polls. It tries no lock before `compete_from`."""

    timers: Timers
    jitter: Callable[[], float]
    groups: Mapping[int, Group] = field(default_factory=dict)
    ping_sent_at: float = 0.0
    ping_wanted_at: float = NEVER  # earlier than the ping interval
    poll_at: float = 0.0
    inspect_wanted: bool = False

    def next(self, now: float, *, compete_from: float) -> Statement | None:
        return (
            self._ping(now)
            or self._release()
            or self._takeover()
            or self._reap(now)
            or self._inspect(now)
            or self._poll(now, compete_from)
            or self._retry_takeover()
        )

    def times(self, *, compete_from: float) -> list[float]:
        """When the next statements are due, if the session is free."""
        waiting = [g for g in self.groups.values() if not g.locked]
        times = [self._try_at(g, compete_from) for g in waiting if _early(g)]
        if waiting:
            times.append(self.poll_at)
        if any(g.held for g in self.groups.values()):
            times.append(self._ping_at())
        return times

    def ping_now(self) -> None:
        self.ping_wanted_at = 0.0

    def ping_soon(self, now: float) -> None:
        """Now, or REFUSED_PING_SECONDS after the last ping."""
        soon = max(now, self.ping_sent_at + REFUSED_PING_SECONDS)
        self.ping_wanted_at = min(self.ping_wanted_at, soon)

    def beat_is_overdue(self, g: Group, now: float) -> bool:
        return g.last_beat is not None and now - g.last_beat_at > 1.5 * self.timers.ping

    def _ping(self, now: float) -> Statement | None:
        held = [g for g in self.groups.values() if g.held]
        if not held or now < self._ping_at():
            return None
        self.ping_sent_at, self.ping_wanted_at = now, NEVER
        return Ping(tuple(g.id for g in held), tuple(g.epoch for g in held))

    def _ping_at(self) -> float:
        return min(self.ping_sent_at + self.timers.ping, self.ping_wanted_at)

    def _release(self) -> Statement | None:
        for g in self.groups.values():
            if g.phase is Phase.RELEASING:
                clean = g.acknowledged and g.epoch > 0
                return Release(g.id, g.epoch, clean=clean, why=g.reason.value)
        return None

    def _takeover(self) -> Statement | None:
        for g in self.groups.values():
            if g.phase is Phase.CANDIDATE and not g.epoch and g.blocked_at is None:
                return Takeover(g.id, g.highest_epoch_seen)
        return None

    def _retry_takeover(self) -> Statement | None:
        """Last and in turn, because each attempt may wait for a row until the lock timeout."""
        blocked = [
            (g.blocked_at, g.id, g.highest_epoch_seen)
            for g in self.groups.values()
            if g.phase is Phase.CANDIDATE and not g.epoch and g.blocked_at is not None
        ]
        return Takeover(*min(blocked)[1:]) if blocked else None

    def _reap(self, now: float) -> Statement | None:
        """Terminate a backend that holds a lock and was idle for longer than `server_lease`."""
        limit = self.timers.server_lease + _REAP_SLACK_SECONDS
        for g in self.groups.values():
            if not g.locked and g.suspect and now - g.suspect_since >= limit:
                backend, g.suspect = g.suspect, None
                return Reap(g.id, backend)
        return None

    def _inspect(self, now: float) -> Statement | None:
        """Once after each poll, read which backends hold the locks whose beats are overdue."""
        if not self.inspect_wanted:
            return None
        self.inspect_wanted = False
        overdue = [g for g in self.groups.values() if not g.locked and self.beat_is_overdue(g, now)]
        held = tuple(g.id for g in overdue if not g.holder.clean)
        return Inspect(held) if held else None

    def _poll(self, now: float, compete_from: float) -> Statement | None:
        waiting = [g for g in self.groups.values() if not g.locked]
        ready = [g for g in waiting if now >= self._try_at(g, compete_from)]
        if not waiting or (now < self.poll_at and not any(_early(g) for g in ready)):
            return None
        for g in ready:
            g.tried = True
        self.poll_at = now + self.timers.poll * (0.9 + 0.2 * self.jitter())
        return Poll(tuple(g.id for g in waiting), tuple(g.id for g in ready))

    def _try_at(self, g: Group, compete_from: float) -> float:
        """When this runner may try the lock: the first choice at any poll, others by their rank."""
        if g.phase is not Phase.STANDBY:
            return NEVER
        if g.free_since is None:
            return NEVER if g.rank_delay else max(g.compete_after, compete_from)
        return max(g.compete_after, max(g.free_since, compete_from) + g.rank_delay)


def _early(g: Group) -> bool:
    """Whether the group was just found free: it is tried once before the next poll is due."""
    return g.free_since is not None and not g.tried
