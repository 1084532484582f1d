"""The types of state: records, requests and results."""

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
    """The entry of a key. A value of None is a tombstone: the entry was deleted or has expired."""

    key: str
    version: int
    value: bytes | None
    updated_at: datetime
    expires_at: datetime | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Put:
    """A requested write. `expected_version`: None always writes, 0 only if there is no entry."""

    key: str
    value: bytes
    expected_version: int | None = None
    ttl_seconds: float | None = None
    run: RunRef | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """A requested deletion."""

    key: str
    expected_version: int | None = None
    run: RunRef | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """A key, and for an owned key the `state_version` of its entry; None means the newest."""

    key: str
    state_version: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a read of one key; `record` is None if the key never had an entry."""

    record: Record | None
    as_of: datetime  # database time, no later than the snapshot that was read
    current: bool = True  # False: an earlier response, which may have been overwritten since


@dataclass(frozen=True, slots=True)
class Cached:
    """A record as it was in Postgres at `as_of`."""

    address: Address
    record: Record
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order of key; `more` if others follow."""

    records: list[Record]
    more: bool


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    """A snapshot of Postgres, and the database time at which it was taken, in microseconds."""

    snapshot: str
    at: int
    server_started: int  # identifies the server: transaction ids of two servers can be equal


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """Selects changes that became visible after `since` or, if that is None, `resume_version`."""

    prefix: str
    since: str | None
    resume_version: int
    low: int  # all selected changes have a higher version
    after: tuple[int, str]  # version and key of the last change of the previous page
    until: str  # the snapshot up to which changes are returned


@dataclass(frozen=True, slots=True)
class OwnedRecord:
    """Owned state of one state.version; a value of None means deleted or expired."""

    state_version: int
    version: int
    value: bytes | None


class HistoryGone(FailedPrecondition):
    """A watch tried to resume from before the oldest kept deletion: list again."""


class CacheError(Exception):
    """Redis did not answer, or answered with an error; it never fails a call."""
