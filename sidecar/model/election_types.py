"""The types of the election: timers, phases, statements with their results, and effects.

`model/election.py` decides; `election/elector.py` carries out the effects;
`adapters/postgres/leader_lock.py` executes the statements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from sidecar.model.term import LossReason, Term


@dataclass(frozen=True, slots=True)
class Timers:
    """All in seconds. `config.rules` checks that they fit together."""

    ping: float = 1.0
    lease: float = 3.0
    server_lease: float = 4.0
    poll: float = 1.0
    grace: float = 3.2
    drain: float = 20.0
    callback_timeout: float = 10.0
    # OnLoseLeadership is called this long before the lease expires.
    margin: float = 0.3
    # Short: an app that fails its health check will probably not respond either.
    unhealthy_callback_timeout: float = 1.0


class Phase(Enum):
    """The phase of a group on this runner; `model/election_group.py` draws the moves."""

    STANDBY = "standby"
    CANDIDATE = "candidate"
    BECOMING = "becoming"
    LEADING = "leading"
    DRAINING = "draining"
    LOSING = "losing"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True)
class Beat:
    """The last heartbeat of a holder, as the table shows it."""

    epoch: int
    sequence: int
    timeline: str


@dataclass(frozen=True, slots=True)
class Holder:
    """The runner of the last takeover, from the group's term row."""

    epoch: int = 0
    runner_id: str = ""
    host: str = ""
    clean: bool = True


@dataclass(frozen=True, slots=True)
class Backend:
    """A Postgres backend that holds a lock, and when its state last changed."""

    pid: int
    started_at: datetime
    changed_at: datetime


# Statements: one at a time on the lock session.


@dataclass(frozen=True, slots=True)
class Poll:
    """Read all groups; try the lock of `try_ids`."""

    read_ids: tuple[int, ...]
    try_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Takeover:
    group_id: int
    highest_epoch_seen: int = 0  # the new epoch must be higher


@dataclass(frozen=True, slots=True)
class Ping:
    group_ids: tuple[int, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    group_id: int
    epoch: int
    clean: bool
    why: str = field(default="", compare=False)  # for people: it changes nothing


@dataclass(frozen=True, slots=True)
class Inspect:
    group_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reap:
    group_id: int
    backend: Backend


Statement = Poll | Takeover | Ping | Release | Inspect | Reap


# Results of the statements.


@dataclass(frozen=True, slots=True)
class Polled:
    group_id: int
    locked: bool
    holder: Holder
    beat: Beat


@dataclass(frozen=True, slots=True)
class Taken:
    """The takeover was committed: the new epoch, and what the rows contained before."""

    epoch: int
    found: Beat
    found_clean: bool
    clean_timeline: str
    timeline: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """A write holds the group's row: the takeover did not happen and may be retried."""


@dataclass(frozen=True, slots=True)
class Pinged:
    """If not `acknowledged`, no standby confirmed the beat, and a failover may lose it."""

    group_ids: frozenset[int]
    resign_ids: frozenset[int] = frozenset()
    acknowledged: bool = True


@dataclass(frozen=True, slots=True)
class Inspected:
    backends: dict[int, Backend]


@dataclass(frozen=True, slots=True)
class Done:
    """The result of Release and Reap, which return no data."""


Result = Sequence[Polled] | Taken | Blocked | Pinged | Inspected | Done


# Effects: what the driver must do now, in order.


@dataclass(frozen=True, slots=True)
class Connect:
    pass


@dataclass(frozen=True, slots=True)
class HangUp:
    pass


@dataclass(frozen=True, slots=True)
class Become:
    term: Term
    timeout: float


@dataclass(frozen=True, slots=True)
class CancelBecome:
    term: Term


@dataclass(frozen=True, slots=True)
class StartWork:
    term: Term


@dataclass(frozen=True, slots=True)
class DrainWork:
    term: Term
    until: float


@dataclass(frozen=True, slots=True)
class CancelWork:
    term: Term


@dataclass(frozen=True, slots=True)
class Lose:
    term: Term
    reason: LossReason
    timeout: float


Effect = Connect | HangUp | Become | CancelBecome | StartWork | DrainWork | CancelWork | Lose


@dataclass(frozen=True, slots=True)
class LeaderView:
    """What this runner knows about the leader of a group."""

    group: str
    is_leader: bool
    runner_id: str
    host: str
    epoch: int
    trusted_until: float  # boottime; only meaningful if is_leader
    draining: bool
    drain_deadline: float | None


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """A live runner of the cluster, from the registry."""

    runner_id: str
    campaigning: bool
    campaigning_seconds: float
