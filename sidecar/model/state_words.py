"""The words of state: what is stored, what is asked for, what is answered."""

from dataclasses import dataclass
from datetime import datetime

from sidecar.model.errors import FailedPrecondition
from sidecar.model.run import RunRef


@dataclass(frozen=True, slots=True)
class Owner:
    """The singleton or schedule that an owned key belongs to."""

    kind: str  # 'singleton' or 'schedule'
    name: str

    @property
    def key(self) -> str:
        return f"{self.kind}-state:{self.name}"


@dataclass(frozen=True, slots=True)
class Record:
    """What stands under a key; without a value a tombstone: it was deleted or has expired."""

    key: str
    version: int
    value: bytes | None
    updated_at: datetime
    expires_at: datetime | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Put:
    """A write asked for. `expected_version`: None in any case, 0 only if there is no entry."""

    key: str
    value: bytes
    expected_version: int | None = None
    ttl_seconds: float | None = None
    run: RunRef | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """A deletion asked for."""

    key: str
    expected_version: int | None = None
    run: RunRef | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """A key, and which of its entries: None for the newest (always, unless the key is owned)."""

    key: str
    state_version: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What Postgres said of one key, and when: `record` is None if nothing was ever there."""

    record: Record | None
    as_of: datetime  # the database's clock, no later than the moment that was read
    current: bool = True  # False: an answer given before, which may have been overwritten since


@dataclass(frozen=True, slots=True)
class Cached:
    """A record as it was in Postgres at `as_of`."""

    address: Address
    record: Record
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Entries by key; `more` if there are others behind them."""

    records: list[Record]
    more: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """What is visible at some moment, and the database's clock then, in microseconds."""

    snapshot: str
    at: int
    server_started: int  # tells one server from another: their transactions have the same numbers


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """Which changes: visible since a snapshot or, that being None, after `resume_version`."""

    prefix: str
    since: str | None
    resume_version: int
    low: int  # no change asked for has a version as low as this
    after: tuple[int, str]  # version and key of the last change of the page before
    until: str  # the snapshot up to which changes are told


@dataclass(frozen=True, slots=True)
class OwnedRecord:
    """Owned state as stored under one state.version; a value of None: deleted or expired."""

    state_version: int
    version: int
    value: bytes | None


class HistoryGone(FailedPrecondition):
    """A watch asked to resume from before what is still known of deletions: list again."""


class CacheError(Exception):
    """Redis did not answer, or not as it should: never a reason to fail a call."""
