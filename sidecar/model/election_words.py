"""The words of the election: timers, the statements it asks for, their results, its effects.

`model/election.py` decides with them; `election.py` carries them out;
`adapters/postgres/leader_lock.py` speaks them to Postgres.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sidecar.model.term import LossReason, Term


@dataclass(frozen=True, slots=True)
class Timers:
    """All in seconds. `config.rules` proves that they fit together."""

    ping: float = 1.0
    lease: float = 3.0
    server_lease: float = 4.0
    poll: float = 1.0
    grace: float = 3.2
    drain: float = 20.0
    callback_timeout: float = 10.0
    # The app is told this long before the trust ends.
    margin: float = 0.3
    # An app that does not answer its health check is not waited for.
    unhealthy_callback_timeout: float = 1.0


class Phase(Enum):
    """Where one group stands on this runner; the moves are drawn in `model/election.py`."""

    STANDBY = "standby"
    CANDIDATE = "candidate"
    BECOMING = "becoming"
    LEADING = "leading"
    DRAINING = "draining"
    LOSING = "losing"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True)
class Beat:
    """One heartbeat of a holder, as it stands in the table."""

    epoch: int
    sequence: int
    timeline: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote itself into the term row last."""

    epoch: int = 0
    runner_id: str = ""
    host: str = ""
    clean: bool = True


@dataclass(frozen=True, slots=True)
class Backend:
    """A server process holding a lock, and when it last did something."""

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
    above: int = 0  # the highest epoch that this runner knows of


@dataclass(frozen=True, slots=True)
class Ping:
    group_ids: tuple[int, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    group_id: int
    epoch: int
    clean: bool


@dataclass(frozen=True, slots=True)
class Inspect:
    group_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reap:
    group_id: int
    backend: Backend


Statement = Poll | Takeover | Ping | Release | Inspect | Reap


# Results: what Postgres answered.


@dataclass(frozen=True, slots=True)
class Polled:
    group_id: int
    locked: bool
    holder: Holder
    beat: Beat


@dataclass(frozen=True, slots=True)
class Taken:
    """The takeover's transaction was committed: the new epoch, and what was found there before."""

    epoch: int
    found: Beat
    found_clean: bool
    clean_timeline: str
    timeline: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """The group's row is locked by a write: nothing was taken over, and it may be tried again."""


@dataclass(frozen=True, slots=True)
class Pinged:
    """Not `acknowledged`: a synchronous wait was cancelled; a failover may lose the beat."""

    group_ids: frozenset[int]
    resign_ids: frozenset[int] = frozenset()
    acknowledged: bool = True


@dataclass(frozen=True, slots=True)
class Inspected:
    backends: dict[int, Backend]


@dataclass(frozen=True, slots=True)
class Done:
    """Release and Reap only have an end."""


Result = Sequence[Polled] | Taken | Blocked | Pinged | Inspected | Done


# Effects: what the runner must do now, in this order.


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
    """A living runner of the cluster, as the registry shows it."""

    runner_id: str
    campaigning: bool
    campaigning_seconds: float
