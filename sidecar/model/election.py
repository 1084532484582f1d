"""The election, decided without I/O: events and the time go in, statements and effects come out.

Guarantees, given that Postgres ends the session of a holder it has not heard from for
`server_lease`, and that clocks run at about the same rate (they need not agree):

- G1: a group is led here only between a takeover whose grace has passed and `margin` before *send
  time of the last acknowledged ping + lease*; a successor waits `grace` > `lease` from its
  receipt of the last beat.
- G2: each term carries the epoch that the takeover's transaction returned; getting the lock again
  is a new term.
- G9: without a healthy app it neither competes nor goes on leading.

    STANDBY ─lock─▶ CANDIDATE ─grace─▶ BECOMING ─answered─▶ LEADING ─resign─▶ DRAINING
       ▲               │                  │ failed             │ app unhealthy  │ work ended
       │               │ cannot lead      ▼                    ▼                │
       │◀─unlocked─ RELEASING ◀─told─── LOSING ◀───────────────┴────────────────┘
       │◀─told─ LOSING ◀─ session or trust lost ─ any phase that the app was told of

One lock session serves all groups, one statement at a time; whoever drives this asks
`next_statement` whenever the session is free. Losing the session, or the trust in it, ends all
terms at once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from sidecar.model.election_agenda import Agenda
from sidecar.model.election_group import NEVER, Group
from sidecar.model.election_session import Session
from sidecar.model.election_words import (
    Become,
    Blocked,
    CancelBecome,
    CancelWork,
    Connect,
    DrainWork,
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
from sidecar.model.spreading import (
    LOOK_AGAIN_SECONDS,
    SETTLED_SECONDS,
    WAIT_SECONDS_MAX,
    group_to_hand_over,
)
from sidecar.model.term import LossReason, Term


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
    ) -> None:
        """`jitter` returns a number in [0, 1); it spreads polls and reconnects.

        Nothing happens before `join` names the groups.
        """
        self.runner_id = runner_id
        self.timers = timers
        self.groups: dict[int, Group] = {}
        self.runners: Collection[RunnerSeen] = ()
        self.app_healthy = False
        self.stopping = False
        self._campaign = campaign
        self._rebalance = rebalance
        self._jitter = jitter
        self._effects: list[Effect] = []
        self._session = Session(jitter)
        self._agenda = Agenda(timers, jitter)
        self._campaign_since = 0.0

    def join(self, groups: Mapping[str, int], now: float) -> None:
        """The cluster's groups and their ids are known: campaign."""
        self.groups = {id_: Group(name, id_) for name, id_ in groups.items()}
        self._agenda.groups = self.groups
        self._session.connect_at = now
        self._look_around(now)

    # ── what the driver asks ────────────────────────────────────────────────────────────────────

    def effects(self) -> list[Effect]:
        """What must be done now, in order; each is handed out once."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def has_effects(self) -> bool:
        return bool(self._effects)

    def next_statement(self, now: float) -> Statement | None:
        """The statement to send now on the free lock session, most urgent first."""
        if not self._session.free:
            return None
        statement = self._agenda.next(now, campaigning=self.campaigning)
        if statement:
            self._session.sent(statement, now + self.timers.lease)
        return statement

    def wake_at(self) -> float:
        """When `tick` or `next_statement` has something to do, if nothing happens before.

        Never a time at which they would do nothing: the driver would spin.
        """
        times = [*self._session.times(), *self._drain_times()]
        if not self._session.connected:
            return min(times)
        held = [g for g in self.groups.values() if g.held]
        times += [g.trusted_until - self.timers.margin for g in held]
        times += [g.lead_at for g in held if g.phase is Phase.CANDIDATE]
        if self._session.free:
            times += self._agenda.times(campaigning=self.campaigning)
        return min(times)

    @property
    def connected(self) -> bool:
        return self._session.connected

    @property
    def campaigning(self) -> bool:
        return self._campaign and self.app_healthy and not self.stopping

    def looks_around(self, now: float) -> bool:
        """Not competing yet: who else campaigns is to be asked again, after LOOK_AGAIN_SECONDS."""
        return now < self._agenda.hold_until

    @property
    def at_rest(self) -> bool:
        """Nothing is held here and no app is left to be told."""
        return all(
            g.phase is Phase.STANDBY and not g.become_pending for g in self.groups.values()
        ) and not isinstance(self._session.statement, Release)

    def view(self, group: str) -> LeaderView:
        g = next((g for g in self.groups.values() if g.name == group), Group(group, 0))
        return g.view(self.runner_id)

    # ── time ────────────────────────────────────────────────────────────────────────────────────

    def tick(self, now: float) -> None:
        """Let deadlines pass. Called at least whenever `wake_at` says so."""
        if self._trust_is_over(now) or now >= self._session.statement_deadline:
            self._lose_session(now)
        for g in self.groups.values():
            if g.phase is Phase.CANDIDATE and now >= g.lead_at:
                self._become(g)
            if g.phase is Phase.DRAINING and now >= g.work_until:
                self._effects.append(CancelWork(g.term))
                self._tell_lost(g, now)
        if self._session.due(now):
            self._session.connecting = True
            self._effects.append(Connect())

    def _trust_is_over(self, now: float) -> bool:
        return any(
            g.held and now >= g.trusted_until - self.timers.margin for g in self.groups.values()
        )

    def _drain_times(self) -> list[float]:
        return [g.work_until for g in self.groups.values() if g.phase is Phase.DRAINING]

    # ── the session ─────────────────────────────────────────────────────────────────────────────

    def connected_now(self, now: float) -> None:
        self._session.opened()
        self._agenda.poll_at = now
        for g in self.groups.values():
            # Another server may answer now: what was free or suspect is looked at anew.
            g.free_since, g.suspect = None, None

    def connect_failed(self, now: float) -> None:
        self._session.closed(now)

    def disconnected(self, now: float) -> None:
        """The connection broke, or a statement on it failed."""
        self._lose_session(now)

    def _lose_session(self, now: float, *, fenced: Group | None = None) -> None:
        """Every term ends: stop the work, tell the apps, throw the connection away."""
        if not self._session.connected:
            return
        self._session.closed(now)
        self._agenda.ping_wanted_at = NEVER
        for g in self.groups.values():
            g.locked = False
            self._end(g, now, LossReason.FENCED if g is fenced else LossReason.LEASE_LOST)
        self._effects.append(HangUp())

    # ── results ─────────────────────────────────────────────────────────────────────────────────

    def answered(self, statement: Statement, result: Result, *, sent_at: float, now: float) -> None:
        """Postgres answered; `sent_at` was read before sending, `now` after receiving."""
        if not self._session.answered(statement):
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
                self._agenda.inspect_wanted = True
                self._rank()
            case _:
                pass

    def _polled(self, g: Group, row: Polled, now: float) -> None:
        g.noticed(row.holder, row.beat, now)
        if row.locked:
            g.acquired(now)
            if not self.campaigning:
                g.give_up(now)
        elif g.free_since is None and (row.holder.clean or self._agenda.beat_is_overdue(g, now)):
            g.free_since, g.tried = now, False

    def _taken(self, g: Group, taken: Taken, sent_at: float, now: float) -> None:
        g.epoch = g.epoch_known = taken.epoch
        g.trusted_until = sent_at + self.timers.lease
        if not any(o.held for o in self.groups.values() if o is not g):
            self._agenda.ping_sent_at = sent_at  # the takeover was a beat
        g.lead_at = g.grace_ends_at(taken, self.timers.grace, now)
        g.holder = Holder(taken.epoch, self.runner_id, "", clean=False)
        self.tick(now)

    def _blocked(self, g: Group, now: float) -> None:
        """A write holds the row: this group waits, or is left to others; its siblings go on."""
        g.blocked_at = now
        # A fenced write is over within a lease; whatever holds the row for longer is none.
        if g.phase is Phase.CANDIDATE and now - g.acquired_at >= self.timers.server_lease:
            g.give_up(now)

    def _pinged(self, ping: Ping, result: Pinged, sent_at: float, now: float) -> None:
        if not result.acknowledged:
            return  # The deadline, not one lost acknowledgement, decides when we step down.
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
        g.seen = g.free_since = None
        g.stand_by(now)

    def _inspected(self, inspect: Inspect, result: Inspected, now: float) -> None:
        for group_id in inspect.group_ids:
            g, backend = self.groups[group_id], result.backends.get(group_id)
            if backend != g.suspect:
                g.suspect, g.suspect_since = backend, now

    # ── the app and its work ────────────────────────────────────────────────────────────────────

    def app_is(self, healthy: bool, now: float) -> None:
        """The app's health changed. A broken connection is unhealthy: it may be a new process."""
        if healthy and not self.app_healthy:
            self._look_around(now)
        self.app_healthy = healthy
        if not healthy:
            for g in self.groups.values():
                self._end(g, now, LossReason.APP_UNHEALTHY)

    def became(self, term: Term, ok: bool, now: float) -> None:
        """OnBecomeLeader ended."""
        g = self.groups[term.group_id]
        g.become_pending = False
        if g.phase is Phase.LOSING:
            self._effects.append(g.lose_effect(self.timers))
        elif g.phase is Phase.BECOMING and g.epoch == term.epoch:
            if ok:
                g.phase, g.step_downs = Phase.LEADING, 0
                self._effects.append(StartWork(term))
            else:
                g.reason = LossReason.RESIGNED
                g.step_aside(self._jitter())
                self._tell_lost(g, now)

    def work_ended(self, term: Term, now: float) -> None:
        """The leader's work has wound down; only expected while draining."""
        g = self.groups[term.group_id]
        if g.phase is Phase.DRAINING and g.epoch == term.epoch:
            self._tell_lost(g, now)

    def lost(self, term: Term, acknowledged: bool, now: float) -> None:
        """OnLoseLeadership ended."""
        g = self.groups[term.group_id]
        if g.phase is not Phase.LOSING or g.epoch != term.epoch:
            return
        g.acknowledged = acknowledged
        if g.locked:
            g.phase = Phase.RELEASING
        else:
            g.stand_by(now)

    def fenced(self, term: Term, now: float) -> None:
        """A write stamped with this term was refused: a newer term exists."""
        g = self.groups[term.group_id]
        if g.locked and g.epoch == term.epoch:
            self._lose_session(now, fenced=g)

    def write_refused(self, epoch: int, now: float) -> None:
        """A write on behalf of a run of this epoch was refused: its term or its attempt is over.

        Which of them, a ping tells: it ends a term that was overtaken, and costs no other.
        """
        if any(g.held and g.epoch == epoch for g in self.groups.values()):
            self._agenda.ping_soon(now)

    # ── wishes ──────────────────────────────────────────────────────────────────────────────────

    def resign(self, group_id: int, reason: LossReason, now: float) -> None:
        """Hand the group over cleanly, and let others compete before this runner does."""
        g = self.groups[group_id]
        if g.phase in (Phase.LEADING, Phase.BECOMING, Phase.CANDIDATE):
            g.step_aside(self._jitter())
        self._end(g, now, reason)

    def stop(self, now: float, *, hurry: bool = False) -> None:
        """Resign everything and compete no more. In a hurry, running work is not waited for."""
        self.stopping = True
        for g in self.groups.values():
            self._end(g, now, LossReason.SHUTDOWN)
            if hurry and g.phase is Phase.DRAINING:
                g.work_until = now
        self.tick(now)

    def released_elsewhere(self, group_id: int, now: float) -> None:
        """A notification: the group was released cleanly a moment ago."""
        g = self.groups.get(group_id)
        if g and not g.locked:
            g.free_since, g.tried = now, False
            self._rank()

    def asked_to_resign(self) -> None:
        """A notification: the next ping will say which group; do not wait for its time."""
        self._agenda.ping_at_once()

    def runners_seen(self, runners: Collection[RunnerSeen], now: float) -> None:
        self.runners = runners
        if now >= self._campaign_since + LOOK_AGAIN_SECONDS:
            self._agenda.hold_until = min(self._agenda.hold_until, now)
        self._rank()
        if not self._rebalance or self.stopping:
            return
        mine = [g for g in self.groups.values() if g.phase is Phase.LEADING]
        if any(now - g.acquired_at < SETTLED_SECONDS for g in mine):
            return  # Its last leader may have crashed, and is listed for a while yet.
        surplus = group_to_hand_over(
            self.runner_id, [g.name for g in mine], runners, self._agenda.leaders(self.runner_id)
        )
        for g in mine:
            if g.name == surplus:
                self.resign(g.id, LossReason.RESIGNED, now)

    def _look_around(self, now: float) -> None:
        """The campaign begins: several groups are not for whoever happens to be the first."""
        self._campaign_since = now
        if len(self.groups) > 1:
            self._agenda.hold_until = now + WAIT_SECONDS_MAX

    def _rank(self) -> None:
        self._agenda.rank(self.runner_id, [r.runner_id for r in self.runners if r.campaigning])

    # ── the moves ───────────────────────────────────────────────────────────────────────────────

    def _become(self, g: Group) -> None:
        g.phase, g.become_pending, g.acknowledged = Phase.BECOMING, True, False
        g.lead_at = NEVER
        self._effects.append(Become(g.term, self.timers.callback_timeout))

    def _end(self, g: Group, now: float, reason: LossReason) -> None:
        """Begin the way out of whatever phase the group is in."""
        gracefully = reason in (LossReason.RESIGNED, LossReason.SHUTDOWN, LossReason.STALE)
        match g.phase:
            case Phase.CANDIDATE:
                g.give_up(now)
            case Phase.BECOMING:
                g.reason = reason
                self._effects.append(CancelBecome(g.term))
                self._tell_lost(g, now)
            case Phase.LEADING if gracefully:
                g.reason, g.phase = reason, Phase.DRAINING
                g.drain_deadline = now + self.timers.drain
                # OnLoseLeadership is part of the drain time.
                g.work_until = now + self.timers.drain * 0.75
                self._effects.append(DrainWork(g.term, g.work_until))
            case Phase.LEADING | Phase.DRAINING if not gracefully:
                g.reason = reason
                self._effects.append(CancelWork(g.term))
                self._tell_lost(g, now)
            case Phase.RELEASING if not g.locked:
                g.stand_by(now)
            case _:
                pass

    def _tell_lost(self, g: Group, now: float) -> None:
        g.phase = Phase.LOSING
        if not g.become_pending:
            self._effects.append(g.lose_effect(self.timers))
