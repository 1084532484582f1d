"""What the state step needs of the world. Adapters fit these; `app.py` joins them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from sidecar.model.errors import SidecarError
from sidecar.model.run import RunRef
from sidecar.model.state_schema import StatePolicy
from sidecar.model.state_words import (
    Address,
    Cached,
    ChangeQuery,
    Delete,
    Moment,
    OwnedRecord,
    Owner,
    Page,
    Put,
    Reading,
    Record,
)


class Truth(Protocol):
    """Postgres. All raise StoreUnavailable while it is away."""

    async def get(self, addresses: Sequence[Address]) -> list[Reading]: ...
    async def put(self, puts: Sequence[Put]) -> list[Reading | SidecarError]:
        """For different keys that nobody owns: what was written, or why not, each on its own."""
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

    async def moment(self) -> Moment: ...
    async def changes(self, query: ChangeQuery) -> Sequence[Record]:
        """The next changes, in the order of versions and keys; none: that was all."""
        ...

    async def load(self, owner: Owner, state_version: int) -> OwnedRecord | None: ...
    async def set_aside(self, owner: Owner, record: OwnedRecord, problem: str) -> None: ...
    async def sweep(self, limit: int) -> int:
        """Expire and forget what is due, at most `limit` of each kind; how many there were."""
        ...

    async def installation(self) -> str:
        """What sets this cluster's keys in a shared Redis apart from all others."""
        ...


class Cache(Protocol):
    """Redis. All raise CacheError, in bounded time; what it returns is intact, though maybe old."""

    async def get(self, space: str, addresses: Sequence[Address]) -> list[Cached | None]: ...
    async def put(self, space: str, entries: Sequence[Cached], seconds: Sequence[float]) -> None:
        """Keep each for so many seconds, unless something newer is there."""
        ...


class Subscription(Protocol):
    async def wait(self, timeout: float | None = None) -> bool: ...


S = TypeVar("S", bound=Subscription)


class Notifier(Protocol):
    """Tells the watches of all pods that something changed, soon; losing a hint only costs time."""

    def notify(self, topic: str, detail: str = "") -> None: ...


class Hints(Protocol[S]):
    def subscribe(self, topic: str) -> S: ...
    def unsubscribe(self, topic: str, subscription: S) -> None: ...


# What the owner of a key declares about its state; None if this pod does not know the owner.
Policies = Callable[[Owner], Awaitable[StatePolicy | None]]
