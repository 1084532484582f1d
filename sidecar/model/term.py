"""Leadership is a term, not a flag: which one, and until when it can be trusted.

`Term` is what a fenced write carries. `Tenure` is a term while it lasts, as the leader's work
sees it: work runs inside it, winds down when `draining` is set, and is cancelled when the term
ends.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class LossReason(Enum):
    """Why a term ended; the app is told."""

    RESIGNED = "resigned"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"
    APP_UNHEALTHY = "app_unhealthy"
    STALE = "stale"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Term:
    """One unbroken leadership of a group by a runner."""

    group: str
    group_id: int
    epoch: int  # the fencing token: storage refuses writes that carry an older one


@dataclass(slots=True)
class Tenure:
    """A term in progress on this runner.

    `trusted_seconds` is asked anew before each step: what is left of the trust, never negative.
    `fenced` is called when a write stamped with this very term was refused.
    """

    term: Term
    trusted_seconds: Callable[[], float]
    fenced: Callable[[], None]
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    # When draining: the work must have ended by then (boottime); OnLoseLeadership comes after it.
    work_until: float = 0.0

    @property
    def trusted(self) -> bool:
        return self.trusted_seconds() > 0
