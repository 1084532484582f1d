"""What the state package needs from Postgres, from Redis and from the owners of state."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from sidecar.model.definitions import State
from sidecar.model.errors import SidecarError
from sidecar.model.run import RunRef
from sidecar.model.state_types import (
    Address,
    Cached,
    ChangeQuery,
    DatabaseSnapshot,
    Delete,
    OwnedRecord,
    Owner,
    Page,
    Put,
    Reading,
    Record,
)


class StateTable(Protocol):
    """The table of state in Postgres. All methods raise StoreUnavailable while it is down."""

    async def get(self, addresses: Sequence[Address]) -> list[Reading]: ...
    async def put(self, puts: Sequence[Put]) -> list[Reading | SidecarError]:
        """For different keys without an owner: what was written, or the error, for each key."""
        ...

    async def put_free(self, puts: Sequence[Put]) -> list[Reading | SidecarError]:
        """Like `put`, which also returns RowLocked, but it waits for no locked row."""
        ...

    async def put_fenced(self, put: Put, run: RunRef, state_version: int) -> Reading: ...
    async def delete(self, delete: Delete) -> Reading | None:
        """The tombstone; None if there was no such entry."""
        ...

    async def delete_fenced(
        self, delete: Delete, run: RunRef, state_version: int
    ) -> Reading | None: ...
    async def page(self, prefix: str, after: str, limit: int) -> Page: ...
    async def size(self, prefix: str) -> int: ...
    async def clear(self, prefix: str, after: str, limit: int) -> tuple[list[Reading], int]:
        """The next tombstones by key, and how many of them were live entries."""
        ...

    async def snapshot(self) -> DatabaseSnapshot: ...
    async def changes(self, query: ChangeQuery) -> Sequence[Record]:
        """The next changes, in the order of versions and keys; empty at the end."""
        ...

    async def load(self, owner: Owner, state_version: int) -> OwnedRecord | None: ...
    async def set_aside(self, owner: Owner, record: OwnedRecord, problem: str) -> None: ...
    async def sweep(self, limit: int) -> int:
        """Expire entries and delete old tombstones, at most `limit` of each; returns how many."""
        ...

    async def installation(self) -> str:
        """The prefix of this cluster's keys in a shared Redis."""
        ...


class Cache(Protocol):
    """Redis. All methods raise CacheError in bounded time; entries are intact but may be old."""

    async def get(self, space: str, addresses: Sequence[Address]) -> list[Cached | None]: ...
    async def put(self, space: str, entries: Sequence[Cached], seconds: Sequence[float]) -> None:
        """Store each entry for so many seconds, unless the cache has a newer one."""
        ...


# The state policy that the owner of a key declares; None if this pod does not know the owner.
Policies = Callable[[Owner], Awaitable[State | None]]
