"""A model of the Postgres server: what `queries/election/*.sql` do, and how it fails.

What the leader's work asks for is done by `run_statements.py` and `schedule_statements.py`, at the
instant at which the server executes it.

Modelled as the server behaves, not as we wish: `idle_session_timeout` counts on the wall clock and
stalls when that is set back; a statement reads its snapshot before it tries the lock; what a client
sent before it hung up is still executed; a session that ends frees its locks a little later; a
failover starts a new timeline, without the last writes if replication was asynchronous.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sidecar.model.election_types import (
    Backend,
    Beat,
    Blocked,
    Done,
    Holder,
    Inspect,
    Inspected,
    Ping,
    Pinged,
    Poll,
    Polled,
    Reap,
    Taken,
    Takeover,
)
from sidecar.model.errors import SidecarError, StoreUnavailable
from tests.simulation.world import World

_EXECUTION_SECONDS = (0.0001, 0.002)
_STUMBLE_SECONDS = (0.05, 1.2)  # a statement that meets a lock, a checkpoint, a full disk queue
_LOCKS_FREED_SECONDS = (0.0001, 0.02)
_LOCKS_FREED_LATE_SECONDS = (0.02, 0.5)
_SNAPSHOTS_MAX = 256
_RATES = (0.98, 1.02)  # of its wall clock
_WALL_START = datetime(2026, 1, 1, tzinfo=UTC)
_LOCK_TIMEOUT_SECONDS = 0.5


_NO_BEAT = Beat(0, 0, "")


@dataclass(frozen=True, slots=True)
class Row:
    """A group's rows of `term` and `beat`."""

    epoch: int = 0
    runner_id: str = ""
    clean: bool = True
    timeline: str = ""
    beat: Beat = _NO_BEAT


# Parts of Release that are statements of their own on the wire.
@dataclass(frozen=True, slots=True)
class MarkClean:
    group_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Unlock:
    group_id: int


@dataclass(frozen=True, slots=True)
class Notify:
    group_id: int


@dataclass(frozen=True, slots=True)
class Call:
    """A transaction of the leader's work, on a connection of the pool."""

    act: Callable[..., Any]
    arguments: tuple[Any, ...]


_READS = (Poll, Inspect, Reap, Unlock, Notify)
Request = Poll | Takeover | Ping | Inspect | Reap | MarkClean | Unlock | Notify | Call


class Client(Protocol):
    """The other end of a session."""

    runner_id: str

    def answered(self, result: Any) -> None: ...
    def reset(self) -> None: ...
    def vanish(self) -> None: ...


class Observer(Protocol):
    """Whoever judges what the server committed."""

    def taken_over(self, group_id: int, epoch: int, runner_id: str) -> None: ...
    def rewound(self, group_id: int, epoch: int) -> None: ...
    def committed(self) -> None: ...
    def clock_stepped(self) -> None: ...


@dataclass(slots=True, eq=False)
class Session:
    """A backend process."""

    pid: int
    client: Client
    started_at: datetime
    changed_at: datetime
    idle_seconds_max: float | None
    locks: dict[int, int] = field(default_factory=dict)
    busy: bool = False
    ended: bool = False
    leaving: bool = False
    idle_until: datetime = _WALL_START
    idle_turn: int = 0


class Server:
    """The primary of the day. Public attributes are for faults to play with."""

    fenced = True
    stumble_probability = 0.01

    def __init__(self, world: World, observer: Observer, group_ids: tuple[int, ...]) -> None:
        self.world = world
        self._timeline = 1
        # As a new group is joined: nobody ever led it, and it is known to be so on this timeline.
        self.rows = {group_id: Row(timeline=self.timeline) for group_id in group_ids}
        self.resign_requests: dict[int, int] = {}
        self.sessions: dict[int, Session] = {}
        self.up = True
        self.full = False  # no space is left: whatever writes is refused
        self.rows_locked_until: dict[int, float] = {}  # by writes that have their row of `term`
        self.sessions_max: int | None = None
        self.replicated = True  # False: a synchronous wait was cancelled, the commit only local
        self.on_notify: list[Callable[[int], None]] = []
        self.on_rewind: list[Callable[[float], None]] = []
        self._observer = observer
        self._frozen_backlog: list[tuple[Callable[..., None], tuple[object, ...]]] | None = None
        self._rate = world.between(_RATES)
        self._wall_step = timedelta()
        self._wall_at = (-1.0, _WALL_START)  # the last reading, and when it was taken
        self._next_pid = 1
        self._snapshots: deque[tuple[float, dict[int, Row]]] = deque(maxlen=_SNAPSHOTS_MAX)
        self._snapshots.append((0.0, dict(self.rows)))

    @property
    def wall(self) -> datetime:
        if self._wall_at[0] != self.world.now:
            wall = _WALL_START + timedelta(seconds=self._rate * self.world.now) + self._wall_step
            self._wall_at = (self.world.now, wall)
        return self._wall_at[1]

    @property
    def timeline(self) -> str:
        return f"{self._timeline:08X}"

    def holder(self, group_id: int) -> Session | None:
        """Who has the lock; a session on its way out has it until it is gone."""
        return next((s for s in self.sessions.values() if group_id in s.locks), None)

    # ── sessions ────────────────────────────────────────────────────────────────────────────────

    def connect(self, client: Client, idle_seconds_max: float | None) -> Session:
        """A new backend. Raises StoreUnavailable while the server is down."""
        if not self.up:
            raise StoreUnavailable("connection refused")
        if self.sessions_max is not None and len(self.sessions) >= self.sessions_max:
            raise StoreUnavailable("too many clients already")
        session = Session(self._next_pid, client, self.wall, self.wall, idle_seconds_max)
        self._next_pid += 1
        self.sessions[session.pid] = session
        self._idle(session)
        return session

    def receive(self, session: Session, request: Request) -> None:
        """A statement has arrived."""
        if self._postponed(self.receive, session, request):
            return
        if session.ended:
            session.client.reset()
            return
        session.busy = True
        session.changed_at = self.wall
        snapshot = dict(self.rows)  # READ COMMITTED: taken when the statement starts
        seconds = self.world.between(_EXECUTION_SECONDS)
        if self.world.chance(self.stumble_probability):
            seconds = self.world.between(_STUMBLE_SECONDS)
        if isinstance(request, Takeover | MarkClean):
            seconds += min(self._locked_seconds(request.group_id), _LOCK_TIMEOUT_SECONDS)
        self.world.after(seconds, self._execute, session, request, snapshot)

    def client_left(self, session: Session) -> None:
        """The client's FIN has arrived; a statement in progress is still completed."""
        if self._postponed(self.client_left, session):
            return
        session.leaving = True
        if not session.busy:
            self.end(session, "client left", tell=False)

    def end(self, session: Session, why: str, *, tell: bool = True) -> None:
        """The backend exits: nothing more is committed; its locks are free a little later."""
        if session.ended:
            return
        session.ended = True
        self.world.note("session_ended", pid=session.pid, why=why.replace(" ", "_"))
        late = self.world.chance(0.1)
        span = _LOCKS_FREED_LATE_SECONDS if late else _LOCKS_FREED_SECONDS
        self.world.after(self.world.between(span), self.sessions.pop, session.pid, None)
        if tell:
            session.client.reset()

    def _idle(self, session: Session) -> None:
        session.busy = False
        session.changed_at = self.wall
        session.idle_turn += 1
        if session.leaving:
            self.end(session, "client left", tell=False)
        elif session.idle_seconds_max is not None:
            session.idle_until = self.wall + timedelta(seconds=session.idle_seconds_max)
            turn = session.idle_turn
            self.world.after(session.idle_seconds_max / self._rate, self._idle_alarm, session, turn)

    def _idle_alarm(self, session: Session, turn: int) -> None:
        if self._postponed(self._idle_alarm, session, turn) or session.ended or session.busy:
            return
        if turn == session.idle_turn:
            left = (session.idle_until - self.wall).total_seconds()
            if left > 1e-6:  # The wall clock was set back: the server re-arms its timer.
                self.world.after(left, self._idle_alarm, session, turn)
            else:
                self.end(session, "idle session timeout")

    def _postponed(self, act: Callable[..., None], *arguments: object) -> bool:
        if self._frozen_backlog is None:
            return False
        self._frozen_backlog.append((act, arguments))
        return True

    # ── statements ──────────────────────────────────────────────────────────────────────────────

    def _execute(self, session: Session, request: Request, snapshot: dict[int, Row]) -> None:
        if self._postponed(self._execute, session, request, snapshot) or session.ended:
            return
        if self.full and not isinstance(request, _READS):
            result: Any = StoreUnavailable("No space left on device")
        else:
            result = self._result(session, request, snapshot)
        self._idle(session)
        session.client.answered(result)

    def _result(  # noqa: C901 - one line per statement reads best in one place
        self, session: Session, request: Request, snapshot: dict[int, Row]
    ) -> Any:
        match request:
            case Poll():
                return self._poll(session, request, snapshot)
            case Takeover():
                return self._takeover(session, request)
            case Ping():
                return self._ping(request)
            case Inspect():
                return self._inspect(request)
            case Reap():
                return self._reap(request)
            case MarkClean():
                return self._mark_clean(request)
            case Unlock():
                return self._unlock(session, request)
            case Notify():
                for listener in self.on_notify:
                    listener(request.group_id)
                return Done()
            case Call():
                result = _outcome(request)
                self._observer.committed()
                return result

    def _poll(self, session: Session, poll: Poll, snapshot: dict[int, Row]) -> list[Polled]:
        return [
            Polled(
                group_id,
                locked=group_id in poll.try_ids and self._try_lock(session, group_id),
                holder=Holder(row.epoch, row.runner_id, row.runner_id, row.clean),
                beat=row.beat,
            )
            for group_id in poll.read_ids
            if (row := snapshot[group_id])
        ]

    def _try_lock(self, session: Session, group_id: int) -> bool:
        if self.holder(group_id) not in (None, session):
            return False
        session.locks[group_id] = session.locks.get(group_id, 0) + 1  # session locks stack
        self.world.note("locked", group=group_id, runner=session.client.runner_id)
        return True

    def _locked_seconds(self, group_id: int) -> float:
        return max(0.0, self.rows_locked_until.get(group_id, 0.0) - self.world.now)

    def _takeover(self, session: Session, takeover: Takeover) -> Taken | Blocked:
        group_id, found = takeover.group_id, self.rows[takeover.group_id]
        if self._locked_seconds(group_id):
            self.world.note("blocked", group=group_id, runner=session.client.runner_id)
            return Blocked()
        epoch = self.next_epoch(max(found.epoch, takeover.highest_epoch_seen))
        beat = Beat(epoch, found.beat.sequence + 1, self.timeline)
        runner_id = session.client.runner_id
        self._commit(group_id, Row(epoch, runner_id, False, self.timeline, beat))
        self._observer.taken_over(group_id, epoch, runner_id)
        return Taken(epoch, found.beat, found.clean, found.timeline, self.timeline)

    def next_epoch(self, found: int) -> int:
        return max(found + 1, round(self.wall.timestamp() * 1000))

    def _ping(self, ping: Ping) -> Pinged:
        held = [
            (group_id, epoch)
            for group_id, epoch in zip(ping.group_ids, ping.epochs, strict=True)
            if self.rows[group_id].beat.epoch == epoch
        ]
        for group_id, epoch in held:
            row = self.rows[group_id]
            beat = Beat(epoch, row.beat.sequence + 1, self.timeline)
            self._commit(group_id, replace(row, beat=beat))
        return Pinged(
            frozenset(group_id for group_id, _ in held),
            frozenset(g for g, epoch in held if self.resign_requests.get(g) == epoch),
            acknowledged=self.replicated,
        )

    def _inspect(self, inspect: Inspect) -> Inspected:
        holders = {group_id: self.holder(group_id) for group_id in inspect.group_ids}
        return Inspected(
            {g: Backend(s.pid, s.started_at, s.changed_at) for g, s in holders.items() if s}
        )

    def _reap(self, reap: Reap) -> Done:
        session = self.sessions.get(reap.backend.pid)
        if session and session.changed_at == reap.backend.changed_at:
            self.end(session, "reaped")
        return Done()

    def _mark_clean(self, request: MarkClean) -> Done:
        row = self.rows[request.group_id]
        if row.epoch == request.epoch and not self._locked_seconds(request.group_id):
            self._commit(request.group_id, replace(row, clean=True, timeline=self.timeline))
            self.world.note("clean", group=request.group_id, epoch=request.epoch)
        return Done()

    def _unlock(self, session: Session, request: Unlock) -> Done:
        count = session.locks.pop(request.group_id, 0)
        if count > 1:
            session.locks[request.group_id] = count - 1
        self.world.note("unlocked", group=request.group_id, runner=session.client.runner_id)
        return Done()

    def vacant(self, group_id: int) -> int | None:
        row = self.rows[group_id]
        return row.epoch if row.clean else None

    def stands(self, group_id: int, epoch: int) -> bool:
        """The fence of a write under a term."""
        return not self.fenced or self.rows[group_id].epoch == epoch

    def _commit(self, group_id: int, row: Row) -> None:
        self.rows[group_id] = row
        self._snapshots.append((self.world.now, dict(self.rows)))

    # ── faults ──────────────────────────────────────────────────────────────────────────────────

    def freeze(self) -> None:
        if self._frozen_backlog is None:
            self._frozen_backlog = []

    def thaw(self) -> None:
        backlog, self._frozen_backlog = self._frozen_backlog or [], None
        for act, arguments in backlog:
            act(*arguments)

    @property
    def frozen(self) -> bool:
        return self._frozen_backlog is not None

    def restart(self) -> None:
        """Down, with all its sessions; nothing is lost. `up` is for the fault to set again."""
        self.up = False
        for session in [*self.sessions.values()]:
            self.end(session, "server restart")
        self.sessions.clear()

    def fail_over(self, *, lost_seconds: float, silently: Callable[[Session], bool]) -> None:
        """A standby takes over on a new timeline; some clients hear nothing of it."""
        self.up = False
        self.thaw()
        for session in [*self.sessions.values()]:
            silent = silently(session)
            self.end(session, "failover", tell=not silent)
            if silent:
                session.client.vanish()
        self.sessions.clear()
        known = [rows for at, rows in self._snapshots if at <= self.world.now - lost_seconds]
        self.rows = dict(known[-1] if known else self._snapshots[0][1])
        self._timeline += 1
        for rewind in self.on_rewind:
            rewind(lost_seconds if known else self.world.now)
        self._snapshots.clear()
        self._snapshots.append((self.world.now, dict(self.rows)))
        for group_id, row in self.rows.items():
            self._observer.rewound(group_id, row.epoch)

    def clean_seconds_ago(self) -> float | None:
        """When a group was last free after a clean release; None if that is not over."""
        if any(row.clean for row in self.rows.values()):
            return None
        clean = [at for at, rows in self._snapshots if any(r.clean for r in rows.values())]
        return self.world.now - clean[-1] if clean else None

    def step_wall_clock(self, seconds: float) -> None:
        self._wall_step += timedelta(seconds=seconds)
        self._wall_at = (-1.0, _WALL_START)
        self._observer.clock_stepped()


def _outcome(call: Call) -> Any:
    try:
        return call.act(*call.arguments)
    except SidecarError as error:
        return error
