"""One group as this runner sees it: what others do, its own hold, and the way out of it."""

from dataclasses import dataclass

from sidecar.model.election_words import (
    Backend,
    Beat,
    Holder,
    LeaderView,
    Lose,
    Phase,
    Taken,
    Timers,
)
from sidecar.model.term import LossReason, Term

NEVER = float("inf")
_NOBODY = Holder()
_APP_LEADS = (Phase.BECOMING, Phase.LEADING, Phase.DRAINING)
_STEP_DOWN_SECONDS = (2.0, 60.0)  # how long others get their chance: first, longest


@dataclass(slots=True)
class Group:
    """One group as this runner sees it."""

    name: str
    id: int
    phase: Phase = Phase.STANDBY
    # What others do.
    holder: Holder = _NOBODY
    epoch_known: int = 0  # the highest ever seen, which a server that lost writes may not know
    seen: Beat | None = None
    seen_at: float = 0.0  # when `seen` was first received
    free_since: float | None = None  # when the group was first seen without a living holder
    tried: bool = False  # … and whether it was tried since then, outside the rhythm of polls
    wait: float = 0.0  # how long better placed runners go first
    suspect: Backend | None = None
    suspect_since: float = 0.0
    # Our own hold on the lock and the term.
    locked: bool = False
    acquired_at: float = 0.0
    blocked_at: float | None = None  # when a write was last found to hold up the takeover
    epoch: int = 0
    lead_at: float = NEVER
    trusted_until: float = 0.0
    takeover_since: float = 0.0  # the last sign of life of the predecessor
    # Giving it up.
    reason: LossReason = LossReason.RESIGNED
    acknowledged: bool = False
    become_pending: bool = False
    drain_deadline: float | None = None
    work_until: float = NEVER
    pause: float = 0.0  # others get this long to compete, once the group is free
    compete_after: float = 0.0
    step_downs: int = 0

    @property
    def term(self) -> Term:
        return Term(self.name, self.id, self.epoch)

    @property
    def held(self) -> bool:
        """The lock is ours, and so is the epoch: it must be pinged."""
        return self.locked and self.epoch > 0

    @property
    def living_holder(self) -> str:
        """Who else leads it, unless it is known or seems to be free."""
        free = self.holder.clean or self.free_since is not None
        return "" if free else self.holder.runner_id

    def noticed(self, holder: Holder, beat: Beat, now: float) -> None:
        """What a poll shows of others."""
        self.holder = holder
        self.epoch_known = max(self.epoch_known, holder.epoch)
        if beat != self.seen:
            self.seen, self.seen_at = beat, now
            self.free_since, self.suspect = None, None

    def acquired(self, now: float) -> None:
        """The lock is ours; `now` is when the answer was received."""
        self.locked, self.acquired_at, self.free_since = True, now, None
        self.phase, self.epoch, self.lead_at = Phase.CANDIDATE, 0, NEVER
        self.blocked_at = None
        self.takeover_since = now if self.holder.clean else self.seen_at

    def grace_ends_at(self, taken: Taken, grace: float, now: float) -> float:
        """When nobody can trust the term before this one any more (G1).

        What was seen or released counts only on the server timeline that it was written on.
        """
        if taken.found_clean and taken.clean_timeline == taken.timeline:
            return now
        if taken.found == self.seen and taken.found.timeline == taken.timeline:
            return self.seen_at + grace
        return self.acquired_at + grace

    def step_aside(self, chance: float) -> None:
        """Let others compete first, for longer each time."""
        first, longest = _STEP_DOWN_SECONDS
        self.pause = min(longest, first * 2**self.step_downs) * (1 + chance)
        self.step_downs = min(self.step_downs + 1, 10)

    def give_up(self, now: float) -> None:
        """This candidate never led: the lock goes, `clean` stays as it is."""
        self.acknowledged, self.lead_at = False, NEVER
        if self.locked:
            self.phase = Phase.RELEASING
        else:
            self.stand_by(now)

    def stand_by(self, now: float) -> None:
        self.phase, self.epoch = Phase.STANDBY, 0
        # Counted from here, not from the wish to resign: a drain may take longer than the pause.
        self.compete_after, self.pause = max(self.compete_after, now + self.pause), 0.0

    def lose_effect(self, timers: Timers) -> Lose:
        """OnLoseLeadership, with the time that the app has for it."""
        timeout = timers.callback_timeout
        if self.reason is LossReason.APP_UNHEALTHY:
            timeout = timers.unhealthy_callback_timeout
        elif self.drain_deadline is not None:
            timeout = min(timeout, max(1.0, timers.drain * 0.25))
        self.drain_deadline = None
        return Lose(self.term, self.reason, timeout)

    def view(self, me: str) -> LeaderView:
        """What can be said about the leader of this group."""
        mine = self.phase in _APP_LEADS
        free = self.holder.clean
        return LeaderView(
            group=self.name,
            is_leader=mine,
            runner_id=me if mine else ("" if free else self.holder.runner_id),
            host="" if mine or free else self.holder.host,
            epoch=self.epoch if mine else self.holder.epoch,
            trusted_until=self.trusted_until if mine else 0.0,
            draining=self.phase is Phase.DRAINING,
            drain_deadline=self.drain_deadline if self.phase is Phase.DRAINING else None,
        )
