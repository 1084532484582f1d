"""The election, decided without I/O: events and the time go in, statements and effects come out.

Guarantees, provided that Postgres ends the session of a holder that was silent for `server_lease`,
and that clocks run at about the same rate (they need not show the same time):

- G1: this runner leads a group only after a takeover whose grace period has passed, and until
  `margin` before *send time of the last acknowledged ping + lease*; a successor waits for
  `grace` > `lease` after it received the last beat.
- G2: each term carries the epoch that the takeover's transaction returned; acquiring the lock
  again starts a new term.
- G9: without a healthy app this runner neither competes nor leads. An app that has not
  acknowledged a loss is not healthy.

The phases of a group and the moves between them are drawn in `model/election_group.py`.

One lock session serves all groups, one statement at a time; the driver (`election/elector.py`)
calls `next_statement` whenever the session is free. When the session is lost or can no longer be
trusted, all terms end.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from sidecar.model.election_campaign import Campaign
from sidecar.model.election_group import NEVER, Group
from sidecar.model.election_session import Session
from sidecar.model.election_statements import StatementSelector
from sidecar.model.election_types import (
    Blocked,
    CancelWork,
    Connect,
    Effect,
    HangUp,
    Holder,
    Inspect,
    Inspected,
    LeaderView,
    Phase,
    Ping,
    Pinged,
    Poll,
    Polled,
    Release,
    Result,
    RunnerSeen,
    StartWork,
    Statement,
    Taken,
    Takeover,
    Timers,
)
from sidecar.model.term import LossReason, Term
from sidecar.model.unacknowledged import UnacknowledgedLosses


class Election:
    """The decisions of one runner about all groups of its cluster."""

    def __init__(
        self,
        runner_id: str,
        timers: Timers,
        jitter: Callable[[], float],
        *,
        campaign: bool = True,
        rebalance: bool = False,
        losses: UnacknowledgedLosses | None = None,
    ) -> None:
        """`jitter` returns a number in [0, 1); it spreads polls and reconnects. `losses` is shared
        with the app watch, which sends them again.

        Nothing happens before `join` names the groups.
        """
        self.runner_id = runner_id
        self.timers = timers
        self.groups: dict[int, Group] = {}
        self.app_healthy = False
        self.losses = UnacknowledgedLosses() if losses is None else losses
        self.stopping = False
        self._may_campaign = campaign
        self._rebalance = rebalance
        self._jitter = jitter
        self._effects: list[Effect] = []
        self._session = Session(jitter)
        self._statements = StatementSelector(timers, jitter)
        self._campaign = Campaign(runner_id)

    def join(self, groups: Mapping[str, int], now: float) -> None:
        """The runner joined the cluster, which has these groups: start to campaign."""
        self.groups = {id_: Group(name, id_) for name, id_ in groups.items()}
        self._statements.groups = self._campaign.groups = self.groups
        self._session.connect_at = now
        self._campaign.start(now)

    # ── for the driver ──────────────────────────────────────────────────────────────────────────

    def effects(self) -> list[Effect]:
        """What the driver must do now, in order; each effect is returned once."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def has_effects(self) -> bool:
        return bool(self._effects)

    def next_statement(self, now: float) -> Statement | None:
        """The most urgent statement to send now, if the lock session is free."""
        if not self._session.free:
            return None
        statement = self._statements.next(now, compete_from=self._compete_from())
        if statement:
            self._session.start(statement, now + self.timers.lease)
        return statement

    def wake_at(self) -> float:
        """When to call `tick` and `next_statement` again, unless an event comes before.

        One of them has something to do then; otherwise the driver would spin.
        """
        times = [*self._session.times(), *self._drain_times()]
        if not self._session.connected:
            return min(times)
        held = [g for g in self.groups.values() if g.held]
        times += [g.trusted_until - self.timers.margin for g in held]
        times += [g.lead_at for g in held if g.phase is Phase.CANDIDATE]
        if self._session.free:
            times += self._statements.times(compete_from=self._compete_from())
        return min(times)

    @property
    def connected(self) -> bool:
        return self._session.connected

    @property
    def campaigning(self) -> bool:
        ready = self.app_healthy and not self.losses
        return self._may_campaign and ready and not self.stopping

    @property
    def has_campaigning_peers(self) -> bool:
        """Whether another runner campaigned when the registry was last read."""
        return self._campaign.has_campaigning_peers

    def discovering_peers(self, now: float) -> bool:
        """Whether the registry must be read again, DISCOVERY_SECONDS later, before competing."""
        return self._campaign.discovering_peers(now)

    @property
    def idle(self) -> bool:
        """Whether no lock is held and neither a callback nor a release is pending."""
        return all(
            g.phase is Phase.STANDBY and not g.become_pending for g in self.groups.values()
        ) and not isinstance(self._session.statement, Release)

    def view(self, group: str) -> LeaderView:
        g = next((g for g in self.groups.values() if g.name == group), Group(group, 0))
        return g.view(self.runner_id)

    def _compete_from(self) -> float:
        return self._campaign.compete_from if self.campaigning else NEVER

    # ── time ────────────────────────────────────────────────────────────────────────────────────

    def tick(self, now: float) -> None:
        """Act on deadlines that have passed. The driver calls it at `wake_at` or earlier."""
        if self._trust_expired(now) or now >= self._session.statement_deadline:
            self._lose_session(now)
        for g in self.groups.values():
            if g.phase is Phase.CANDIDATE and now >= g.lead_at:
                self._effects.append(g.become(self.timers))
            if g.phase is Phase.DRAINING and now >= g.work_until:
                self._effects.append(CancelWork(g.term))
                self._effects += g.lose(self.timers)
        if self._session.due(now):
            self._session.connecting = True
            self._effects.append(Connect())

    def _trust_expired(self, now: float) -> bool:
        return any(
            g.held and now >= g.trusted_until - self.timers.margin for g in self.groups.values()
        )

    def _drain_times(self) -> list[float]:
        return [g.work_until for g in self.groups.values() if g.phase is Phase.DRAINING]

    # ── the session ─────────────────────────────────────────────────────────────────────────────

    def connect_succeeded(self, now: float) -> None:
        self._session.opened()
        self._statements.poll_at = now
        for g in self.groups.values():
            # This may be another server: find out again which groups are free or suspect.
            g.free_since, g.suspect = None, None

    def connect_failed(self, now: float) -> None:
        self._session.closed(now)

    def disconnected(self, now: float) -> None:
        """The connection broke, or a statement on it failed."""
        self._lose_session(now)

    def _lose_session(self, now: float, *, fenced: Group | None = None) -> None:
        """End every term: cancel the work, call OnLoseLeadership, drop the connection."""
        if not self._session.connected:
            return
        self._session.closed(now)
        self._statements.ping_wanted_at = NEVER
        for g in self.groups.values():
            g.locked = False
            reason = LossReason.FENCED if g is fenced else LossReason.LEASE_LOST
            self._effects += g.end(reason, self.timers, now)
        self._effects.append(HangUp())

    # ── results ─────────────────────────────────────────────────────────────────────────────────

    def result_received(
        self, statement: Statement, result: Result, *, sent_at: float, now: float
    ) -> None:
        """`sent_at` was read before the statement was sent, `now` after its result arrived."""
        if not self._session.finish(statement):
            return
        match statement, result:
            case Ping(), Pinged():
                self._pinged(statement, result, sent_at, now)
            case Takeover(), Taken():
                self._taken(self.groups[statement.group_id], result, sent_at, now)
            case Takeover(), Blocked():
                self._blocked(self.groups[statement.group_id], now)
            case Release(), _:
                self._released(self.groups[statement.group_id], now)
            case Inspect(), Inspected():
                self._inspected(statement, result, now)
            case Poll(), Sequence():
                for row in result:
                    self._polled(self.groups[row.group_id], row, now)
                self._statements.inspect_wanted = True
                self._campaign.rank()
            case _:
                pass

    def _polled(self, g: Group, row: Polled, now: float) -> None:
        g.observe(row.holder, row.beat, now)
        if row.locked:
            g.lock_acquired(now)
            if not self.campaigning:
                g.withdraw(now)
        elif g.free_since is None and (
            row.holder.clean or self._statements.beat_is_overdue(g, now)
        ):
            g.free_since, g.tried = now, False

    def _taken(self, g: Group, taken: Taken, sent_at: float, now: float) -> None:
        g.epoch = g.highest_epoch_seen = taken.epoch
        g.trusted_until = sent_at + self.timers.lease
        if not any(o.held for o in self.groups.values() if o is not g):
            self._statements.ping_sent_at = sent_at  # the takeover wrote a beat
        g.lead_at = g.grace_ends_at(taken, self.timers.grace, now)
        g.holder = Holder(taken.epoch, self.runner_id, "", clean=False)
        self.tick(now)

    def _blocked(self, g: Group, now: float) -> None:
        """A write holds the group's row: retry or withdraw. Other groups are not affected."""
        g.blocked_at = now
        # A fenced write ends within a lease; a lock held for longer is something else.
        if g.phase is Phase.CANDIDATE and now - g.acquired_at >= self.timers.server_lease:
            g.withdraw(now)

    def _pinged(self, ping: Ping, result: Pinged, sent_at: float, now: float) -> None:
        if not result.acknowledged:
            return  # The deadline, not one missing acknowledgement, decides when we step down.
        for group_id, epoch in zip(ping.group_ids, ping.epochs, strict=True):
            g = self.groups[group_id]
            if group_id not in result.group_ids:
                if g.epoch == epoch and g.locked:
                    self._lose_session(now, fenced=g)
                    return
            elif g.epoch == epoch:
                g.trusted_until = sent_at + self.timers.lease
        for group_id in result.resign_ids:
            self.resign(group_id, LossReason.RESIGNED, now)

    def _released(self, g: Group, now: float) -> None:
        g.locked = False
        g.holder = Holder(g.epoch or g.holder.epoch, clean=True)
        g.last_beat = g.free_since = None
        g.enter_standby(now)

    def _inspected(self, inspect: Inspect, result: Inspected, now: float) -> None:
        for group_id in inspect.group_ids:
            g, backend = self.groups[group_id], result.backends.get(group_id)
            if backend != g.suspect:
                g.suspect, g.suspect_since = backend, now

    # ── the app and its work ────────────────────────────────────────────────────────────────────

    def app_health_changed(self, healthy: bool, now: float) -> None:
        """A broken connection counts as unhealthy: the next one may reach another process."""
        if healthy and not self.app_healthy:
            self._campaign.start(now)
        self.app_healthy = healthy
        if not healthy:
            self._end_all(now, LossReason.APP_UNHEALTHY)

    def become_finished(self, term: Term, ok: bool, now: float) -> None:
        """OnBecomeLeader returned, failed or was cancelled."""
        g = self.groups[term.group_id]
        g.become_pending = False
        if g.phase is Phase.LOSING:
            self._effects.append(g.lose_effect(self.timers))
        elif g.phase is Phase.BECOMING and g.epoch == term.epoch:
            if ok:
                g.move_to(Phase.LEADING)
                g.backoffs = 0
                self._effects.append(StartWork(term))
            else:
                g.reason = LossReason.RESIGNED
                g.back_off(self._jitter())
                self._effects += g.lose(self.timers)

    def work_finished(self, term: Term, now: float) -> None:
        """The leader's work has returned; this only matters while draining."""
        g = self.groups[term.group_id]
        if g.phase is Phase.DRAINING and g.epoch == term.epoch:
            self._effects += g.lose(self.timers)

    def lose_finished(self, term: Term, acknowledged: bool, now: float) -> None:
        """OnLoseLeadership returned (`acknowledged`) or failed."""
        g = self.groups[term.group_id]
        if g.phase is not Phase.LOSING or g.epoch != term.epoch:
            return
        g.acknowledged = acknowledged
        if g.locked:
            g.move_to(Phase.RELEASING)
        else:
            g.enter_standby(now)
        if not acknowledged:
            self.losses.add(term, g.reason)
            self._end_all(now, LossReason.APP_UNHEALTHY)

    def fenced(self, term: Term, now: float) -> None:
        """The database refused a write with this term's epoch: a newer term exists."""
        g = self.groups[term.group_id]
        if g.locked and g.epoch == term.epoch:
            self._lose_session(now, fenced=g)

    def write_refused(self, epoch: int, now: float) -> None:
        """The database refused a write for a run of this epoch: its term or attempt has ended.

        A ping finds out which: it ends the term if a newer one exists, and else changes nothing.
        """
        if any(g.held and g.epoch == epoch for g in self.groups.values()):
            self._statements.ping_soon(now)

    # ── requests ────────────────────────────────────────────────────────────────────────────────

    def resign(self, group_id: int, reason: LossReason, now: float) -> None:
        """Hand the group over cleanly, and let other runners compete first."""
        g = self.groups[group_id]
        if g.phase in (Phase.LEADING, Phase.BECOMING, Phase.CANDIDATE):
            g.back_off(self._jitter())
        self._effects += g.end(reason, self.timers, now)

    def stop(self, now: float, *, hurry: bool = False) -> None:
        """Resign all groups and stop competing. With `hurry`, do not wait for running work."""
        self.stopping = True
        for g in self.groups.values():
            self._effects += g.end(LossReason.SHUTDOWN, self.timers, now)
            if hurry and g.phase is Phase.DRAINING:
                g.work_until = now
        self.tick(now)

    def released_elsewhere(self, group_id: int, now: float) -> None:
        """A hint arrived: another runner has just released the group."""
        g = self.groups.get(group_id)
        if g and not g.locked:
            g.free_since, g.tried = now, False
            self._campaign.rank()

    def resign_requested(self) -> None:
        """A hint arrived: ping now, because the result names the group that must resign."""
        self._statements.ping_now()

    def runners_seen(self, runners: Collection[RunnerSeen], now: float) -> None:
        """The registry was read."""
        self._campaign.observe(runners, now)
        if self._rebalance and not self.stopping and (surplus := self._campaign.surplus_group(now)):
            self.resign(surplus.id, LossReason.RESIGNED, now)

    def _end_all(self, now: float, reason: LossReason) -> None:
        for g in self.groups.values():
            self._effects += g.end(reason, self.timers, now)
