"""Everything that the judge of the fault suite is given; plain data, no code of the product.

`Evidence` is what was seen from outside while the faults happened: the histories of the apps, their
calls, the rows that stand in the database at the end, the answers to a kubelet's probes, and what
the processes held before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.lab.history import Event
from tests.lab.ops import Op
from tests.lab.probes import Answer


@dataclass(frozen=True, slots=True)
class Tick:
    """One row of a schedule's ticks: one tick, or `count` consecutive ones skipped together."""

    name: str
    first: datetime
    last: datetime
    count: int
    run_id: int
    state: str
    outcome: str | None
    reason: str | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Something was committed for a run under an epoch, at a time of the database's clock."""

    at: datetime
    run_id: int
    epoch: int
    state: str
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Window:
    """One fault, from its injection until it was healed; `victim` is empty for a server's."""

    began_at: float
    healed_at: float
    victim: str = ""
    led: bool = True  # the victim led when it began; always true of a server's


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one sidecar process holds."""

    app: str
    pid: int
    connections: int  # to Postgres
    cache_connections: int  # to Redis
    descriptors: int
    megabytes: float


@dataclass(frozen=True, slots=True)
class Evidence:
    events: Sequence[Event] = ()
    ops: Sequence[Op] = ()
    ticks: Sequence[Tick] = ()
    settled_until: datetime | None = None  # what was due by then had the time to end
    commits: Sequence[Commit] = ()
    values: dict[str, int] = field(default_factory=dict)  # by key, as they stand at the end
    answers: Sequence[Answer] = ()
    windows: Sequence[Window] = ()
    before: Sequence[Footprint] = ()
    after: Sequence[Footprint] = ()
    stalls: Sequence[tuple[float, float]] = ()  # when the machine stood still, see `lab.stalls`
    broken: Sequence[str] = ()  # processes that ended by themselves, tracebacks in logs


@dataclass(frozen=True, slots=True)
class Terms:
    """What a fault is allowed to do, and what it must do; the rest is forbidden to all."""

    takeover_seconds: float | None = None  # from the fault to another app told; None: none asked
    clean: bool = False  # counted from the release: the end of the victim's OnLoseLeadership
    recovery_seconds: float | None = None  # from the healing until an app leads again
    steady: bool = False  # nobody may lose the leadership
    mutes: bool = False  # probes of the victim may stay without an answer
    red: str = ""  # what /readyz of the victim must say while the fault lasts
    red_seconds: float = 10.0  # within so much time
    lossy: bool = False  # a write acknowledged during the fault may be lost with the server
    behind: bool = False  # the victim reads from a server that was replaced
    exempt: frozenset[str] = frozenset()  # rules that cannot be judged here; see `verdict.RULES`
    cache_seconds: float = 3.0  # how old an answer from the cache may be
    every_second: tuple[str, ...] = ("each", "newest", "sum")  # schedules that tick each second
    all_succeed: tuple[str, ...] = ("each",)  # of them, those of which no tick may be skipped
    summed: str = "sum"  # the schedule that counts its successes in its state
    connections_max: int = 6  # pool of four, lock, LISTEN
    least: dict[str, Any] = field(default_factory=dict)  # what must have happened, at least
