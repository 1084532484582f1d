"""What the lock session is needed for next: one statement at a time, the most urgent first.

Guarantees: a ping is never late because of anything else that could wait; a group is tried at each
poll by its first choice, and by the others as soon as its holder seems to be gone, each after a
wait by its rank; a time given by `times` is one at which `next` has a statement to give.

    ping ▶ release ▶ takeover ▶ reap ▶ inspect ▶ poll ▶ takeover that was blocked
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sidecar.model import spreading
from sidecar.model.election_group import NEVER, Group
from sidecar.model.election_words import (
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
# A ping that refused writes ask for follows the one before no sooner: an app that goes on writing
# for an attempt that is over must not keep the session from everything else.
REFUSED_PING_SECONDS = 0.1


@dataclass(slots=True)
class Agenda:
    """The rhythm of pings and polls. `campaigning` says whether locks may be tried."""

    timers: Timers
    jitter: Callable[[], float]
    groups: Mapping[int, Group] = field(default_factory=dict)
    ping_sent_at: float = 0.0
    ping_wanted_at: float = NEVER  # sooner than its rhythm says
    poll_at: float = 0.0
    inspect_wanted: bool = False
    hold_until: float = 0.0  # no lock is tried before

    def next(self, now: float, *, campaigning: bool) -> Statement | None:
        return (
            self._ping(now)
            or self._release()
            or self._takeover()
            or self._reap(now)
            or self._inspect(now)
            or self._poll(now, campaigning)
            or self._takeover_again()
        )

    def times(self, *, campaigning: bool) -> list[float]:
        """When the free session is needed."""
        waiting = [g for g in self.groups.values() if not g.locked]
        times = [self._try_at(g, campaigning) for g in waiting if _early(g)]
        if waiting:
            times.append(self.poll_at)
        if any(g.held for g in self.groups.values()):
            times.append(self._ping_at())
        return times

    def ping_at_once(self) -> None:
        self.ping_wanted_at = 0.0

    def ping_soon(self, now: float) -> None:
        """At once, but for the distance that it keeps from the one before."""
        soon = max(now, self.ping_sent_at + REFUSED_PING_SECONDS)
        self.ping_wanted_at = min(self.ping_wanted_at, soon)

    def beat_is_overdue(self, g: Group, now: float) -> bool:
        return g.seen is not None and now - g.seen_at > 1.5 * self.timers.ping

    def rank(self, me: str, campaigning: Collection[str]) -> None:
        """Who else competes has changed, or who leads what."""
        leaders = self.leaders(me)
        waiting = [g for g in self.groups.values() if not g.locked]
        # Ranked together: what is free now, and what would be free if this leader were gone.
        for leader in {leaders[g.name] for g in waiting}:
            together = [g for g in waiting if leaders[g.name] == leader]
            vacant = {g.name: g.holder.runner_id for g in together}
            waits = spreading.waits(me, vacant, campaigning, leaders)
            for g in together:
                g.wait = waits[g.name]

    def leaders(self, me: str) -> dict[str, str]:
        """The runner that leads each group, as far as known."""
        return {g.name: me if g.locked else g.living_holder for g in self.groups.values()}

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
                return Release(g.id, g.epoch, clean=g.acknowledged and g.epoch > 0)
        return None

    def _takeover(self) -> Statement | None:
        for g in self.groups.values():
            if g.phase is Phase.CANDIDATE and not g.epoch and g.blocked_at is None:
                return Takeover(g.id, g.epoch_known)
        return None

    def _takeover_again(self) -> Statement | None:
        """Last of all and in turn: each attempt may take as long as a statement waits for a row."""
        blocked = [
            (g.blocked_at, g.id, g.epoch_known)
            for g in self.groups.values()
            if g.phase is Phase.CANDIDATE and not g.epoch and g.blocked_at is not None
        ]
        return Takeover(*min(blocked)[1:]) if blocked else None

    def _reap(self, now: float) -> Statement | None:
        """End a backend that holds a lock and did nothing for longer than the server allows."""
        limit = self.timers.server_lease + _REAP_SLACK_SECONDS
        for g in self.groups.values():
            if not g.locked and g.suspect and now - g.suspect_since >= limit:
                backend, g.suspect = g.suspect, None
                return Reap(g.id, backend)
        return None

    def _inspect(self, now: float) -> Statement | None:
        """Look at who holds the locks whose beats have stopped, once after each poll."""
        if not self.inspect_wanted:
            return None
        self.inspect_wanted = False
        overdue = [g for g in self.groups.values() if not g.locked and self.beat_is_overdue(g, now)]
        held = tuple(g.id for g in overdue if not g.holder.clean)
        return Inspect(held) if held else None

    def _poll(self, now: float, campaigning: bool) -> Statement | None:
        waiting = [g for g in self.groups.values() if not g.locked]
        ready = [g for g in waiting if now >= self._try_at(g, campaigning)]
        if not waiting or (now < self.poll_at and not any(_early(g) for g in ready)):
            return None
        for g in ready:
            g.tried = True
        self.poll_at = now + self.timers.poll * (0.9 + 0.2 * self.jitter())
        return Poll(tuple(g.id for g in waiting), tuple(g.id for g in ready))

    def _try_at(self, g: Group, campaigning: bool) -> float:
        """When it is this runner's turn: at once if it is the first choice, else by its rank."""
        if not campaigning or g.phase is not Phase.STANDBY:
            return NEVER
        if g.free_since is None:
            return NEVER if g.wait else max(g.compete_after, self.hold_until)
        return max(g.compete_after, max(g.free_since, self.hold_until) + g.wait)


def _early(g: Group) -> bool:
    """A group just seen free is tried once before the next poll is due."""
    return g.free_since is not None and not g.tried
