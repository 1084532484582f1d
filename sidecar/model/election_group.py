"""One group as this runner sees it: its phase, its holder, and our own term.

`Group.move_to` is the only function that changes `phase`, and `_MOVES` lists what it allows:

    STANDBY ───▶ CANDIDATE    the lock was acquired
    CANDIDATE ─▶ BECOMING     the takeover is committed and the grace period has passed
              ─▶ RELEASING    it must not lead: the app is unhealthy, a stop, a blocked takeover
              ─▶ STANDBY      … or the session was lost, and the lock with it
    BECOMING ──▶ LEADING      OnBecomeLeader succeeded
              ─▶ LOSING       OnBecomeLeader failed, or the term ended meanwhile
    LEADING ───▶ DRAINING     resign, shutdown, dead man's switch: running work may finish
              ─▶ LOSING       the lease was lost, a newer term exists, the app is unhealthy
    DRAINING ──▶ LOSING       the work finished or ran out of time, or the term ended meanwhile
    LOSING ────▶ RELEASING    OnLoseLeadership returned or failed: unlock
              ─▶ STANDBY      … and the lock is already gone
    RELEASING ─▶ STANDBY      unlocked, or the session was lost
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.model.election_types import (
    Backend,
    Beat,
    Become,
    CancelBecome,
    CancelWork,
    DrainWork,
    Effect,
    Holder,
    LeaderView,
    Lose,
    Phase,
    Taken,
    Timers,
)
from sidecar.model.term import LossReason, Term

NEVER = float("inf")
_NO_HOLDER = Holder()
_APP_LEADS = (Phase.BECOMING, Phase.LEADING, Phase.DRAINING)
_BACKOFF_SECONDS = (2.0, 60.0)  # how long other runners may compete first: initial, longest
_MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.STANDBY: frozenset({Phase.CANDIDATE}),
    Phase.CANDIDATE: frozenset({Phase.BECOMING, Phase.RELEASING, Phase.STANDBY}),
    Phase.BECOMING: frozenset({Phase.LEADING, Phase.LOSING}),
    Phase.LEADING: frozenset({Phase.DRAINING, Phase.LOSING}),
    Phase.DRAINING: frozenset({Phase.LOSING}),
    Phase.LOSING: frozenset({Phase.RELEASING, Phase.STANDBY}),
    Phase.RELEASING: frozenset({Phase.STANDBY}),
}


class IllegalMove(RuntimeError):
    """A bug in the election, never a condition to handle."""


@dataclass(slots=True)
class Group:
    """The state of one group on this runner."""

    name: str
    id: int
    phase: Phase = Phase.STANDBY
    # What the database shows about other runners.
    holder: Holder = _NO_HOLDER
    highest_epoch_seen: int = 0  # a failover may lose writes, and the new server knows less
    last_beat: Beat | None = None
    last_beat_at: float = 0.0  # when `last_beat` was first received
    free_since: float | None = None  # when the group was first seen without a live holder
    tried: bool = False  # whether its lock was tried since then, before the next poll was due
    rank_delay: float = 0.0  # how long runners of a better rank may compete first
    suspect: Backend | None = None
    suspect_since: float = 0.0
    # Our own lock and term.
    locked: bool = False
    acquired_at: float = 0.0
    blocked_at: float | None = None  # when a write last blocked the takeover
    epoch: int = 0
    lead_at: float = NEVER
    trusted_until: float = 0.0
    predecessor_seen_at: float = 0.0  # the takeover time counts from here
    # The end of our term.
    reason: LossReason = LossReason.RESIGNED
    acknowledged: bool = False
    become_pending: bool = False
    drain_deadline: float | None = None
    work_until: float = NEVER
    backoff: float = 0.0  # how long other runners may compete first, once the group is free
    compete_after: float = 0.0
    backoffs: int = 0

    def move_to(self, phase: Phase) -> None:
        """Change the phase. Raises IllegalMove for a move that `_MOVES` does not list."""
        if phase not in _MOVES[self.phase]:
            raise IllegalMove(f"group {self.name}: {self.phase.value} -> {phase.value}")
        self.phase = phase

    @property
    def term(self) -> Term:
        return Term(self.name, self.id, self.epoch)

    @property
    def held(self) -> bool:
        """Whether this runner has the lock and an epoch, and must ping."""
        return self.locked and self.epoch > 0

    @property
    def live_holder(self) -> str:
        """The runner that holds the group; empty if the group is free or seems to be."""
        free = self.holder.clean or self.free_since is not None
        return "" if free else self.holder.runner_id

    def observe(self, holder: Holder, beat: Beat, now: float) -> None:
        """A poll returned this holder and its last beat."""
        self.holder = holder
        self.highest_epoch_seen = max(self.highest_epoch_seen, holder.epoch)
        if beat != self.last_beat:
            self.last_beat, self.last_beat_at = beat, now
            self.free_since, self.suspect = None, None

    def lock_acquired(self, now: float) -> None:
        """`now` is when the result was received."""
        self.locked, self.acquired_at, self.free_since = True, now, None
        self.move_to(Phase.CANDIDATE)
        self.epoch, self.lead_at = 0, NEVER
        self.blocked_at = None
        self.predecessor_seen_at = now if self.holder.clean else self.last_beat_at

    def grace_ends_at(self, taken: Taken, grace: float, now: float) -> float:
        """When no runner can trust the previous term any more (G1).

        A beat or a clean release counts only on the server timeline on which it was written.
        """
        if taken.found_clean and taken.clean_timeline == taken.timeline:
            return now
        if taken.found == self.last_beat and taken.found.timeline == taken.timeline:
            return self.last_beat_at + grace
        return self.acquired_at + grace

    def back_off(self, jitter: float) -> None:
        """Let other runners compete first, twice as long each time."""
        initial, longest = _BACKOFF_SECONDS
        self.backoff = min(longest, initial * 2**self.backoffs) * (1 + jitter)
        self.backoffs = min(self.backoffs + 1, 10)

    def withdraw(self, now: float) -> None:
        """Release the lock without having led; the row's `clean` keeps its value."""
        self.acknowledged, self.lead_at = False, NEVER
        if self.locked:
            self.move_to(Phase.RELEASING)
        else:
            self.enter_standby(now)

    def enter_standby(self, now: float) -> None:
        self.move_to(Phase.STANDBY)
        self.epoch = 0
        # Counted from here, not from `resign`: a drain may take longer than the backoff.
        self.compete_after = max(self.compete_after, now + self.backoff)
        self.backoff = 0.0

    def become(self, timers: Timers) -> Become:
        """The grace period has passed: call OnBecomeLeader."""
        self.move_to(Phase.BECOMING)
        self.become_pending, self.acknowledged = True, False
        self.lead_at = NEVER
        return Become(self.term, timers.callback_timeout)

    def end(self, reason: LossReason, timers: Timers, now: float) -> list[Effect]:
        """End the term, or the candidacy, from any phase."""
        gracefully = reason in (LossReason.RESIGNED, LossReason.SHUTDOWN, LossReason.STALE)
        match self.phase:
            case Phase.CANDIDATE:
                self.withdraw(now)
            case Phase.BECOMING:
                self.reason = reason
                return [CancelBecome(self.term), *self.lose(timers)]
            case Phase.LEADING if gracefully:
                return [self._drain(reason, timers, now)]
            case Phase.LEADING | Phase.DRAINING if not gracefully:
                self.reason = reason
                return [CancelWork(self.term), *self.lose(timers)]
            case Phase.RELEASING if not self.locked:
                self.enter_standby(now)
        return []

    def _drain(self, reason: LossReason, timers: Timers, now: float) -> DrainWork:
        self.move_to(Phase.DRAINING)
        self.reason = reason
        self.drain_deadline = now + timers.drain
        self.work_until = now + timers.drain * 0.75  # The drain time includes OnLoseLeadership.
        return DrainWork(self.term, self.work_until)

    def lose(self, timers: Timers) -> list[Effect]:
        """Call OnLoseLeadership, or wait for OnBecomeLeader to finish first."""
        self.move_to(Phase.LOSING)
        return [] if self.become_pending else [self.lose_effect(timers)]

    def lose_effect(self, timers: Timers) -> Lose:
        """The call of OnLoseLeadership, with its timeout."""
        timeout = timers.callback_timeout
        if self.reason is LossReason.APP_UNHEALTHY:
            timeout = timers.unhealthy_callback_timeout
        elif self.drain_deadline is not None:
            timeout = min(timeout, max(1.0, timers.drain * 0.25))
        self.drain_deadline = None
        return Lose(self.term, self.reason, timeout)

    def view(self, me: str) -> LeaderView:
        """What this runner knows about the leader of the group."""
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
