"""What scheduling needs from outside: the table of schedules, and hints."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from sidecar.config.work import Schedule
from sidecar.model.stored_schedule import Change, ClaimedTicks, ConfigLoad, DueTicks, StoredSchedule
from sidecar.model.term import Term

Stored = StoredSchedule[Schedule]


class Subscription(Protocol):
    async def wait(self, timeout: float) -> bool: ...


class Hints(Protocol):
    def notify(self, topic: str, detail: str = "") -> None: ...
    def subscribe(self, topic: str) -> Subscription: ...
    def unsubscribe(self, topic: str, subscription: Any) -> None: ...


class TickStore(Protocol):
    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[Stored]]: ...
    async def claim_ticks(self, term: Term, due: Sequence[DueTicks[Schedule]]) -> ClaimedTicks: ...


class ScheduleStore(Protocol):
    async def now(self) -> datetime: ...
    async def get(self, name: str) -> Stored: ...
    async def page(self, *, after: str, limit: int, include_retired: bool) -> Sequence[Stored]: ...
    async def create(self, name: str, decide: Callable[[datetime], Change[Schedule]]) -> None: ...
    async def change(
        self, name: str, decide: Callable[[Stored, datetime], Change[Schedule] | None]
    ) -> None: ...
    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int: ...
    async def backfill(
        self, name: str, decide: Callable[[Stored, datetime], Sequence[datetime]]
    ) -> list[int]: ...


class ConfigStore(Protocol):
    async def apply_config(
        self,
        load: ConfigLoad,
        decide: Callable[[Sequence[Stored], datetime], Sequence[Change[Schedule]]],
    ) -> datetime | None:
        """Apply a file; if a newer one stands, change nothing and tell its last sign of life."""

    async def config_seen(self, digest: str, revision: int) -> bool:
        """Say that this runner has the file; whether it is the one that stands."""

    async def names_of_api(self, names: Collection[str]) -> frozenset[str]:
        """Those of these names under which the API has a schedule."""
