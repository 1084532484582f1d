"""A term of leadership: its group and epoch, and why it ended."""

from dataclasses import dataclass
from enum import Enum

# OnLoseLeadership with this epoch ends any term that the app knows.
ANY_EPOCH = 0


class LossReason(Enum):
    """Why a term ended; OnLoseLeadership carries it."""

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
    epoch: int  # the fencing token: the database refuses writes with an older one
