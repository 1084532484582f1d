"""The stores that scheduling depends on: the tables of schedules and of runs."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from sidecar.model.run_records import Cancellation, Claim, Contender, Recorded, Redelivered
from sidecar.model.schedule import SkipReason
from sidecar.model.stored_schedule import (
    Change,
    ClaimedTicks,
    ConfigLoad,
    DueTicks,
    Source,
    StoredSchedule,
)
from sidecar.model.term import Term


class RunStore(Protocol):
    """Methods raise Fenced if the epoch is old, StoreUnavailable if Postgres does not answer."""

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered: ...
    async def expire(self, term: Term) -> list[Recorded]: ...
    async def claim(self, term: Term, *, limit: int, admitted: Sequence[int] = ()) -> Claim: ...
    async def contended(self, term: Term) -> list[Contender]: ...
    async def skip(
        self, term: Term, run_ids: Sequence[int], reason: SkipReason, cause: str
    ) -> list[Recorded]: ...
    async def ask_replacement(self, term: Term, run_ids: Sequence[int]) -> None: ...
    async def cancellations(self, term: Term) -> list[Cancellation]: ...
    async def prune(self, term: Term, *, keep_seconds: float, limit: int) -> int: ...


class TickStore(Protocol):
    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]: ...
    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks: ...


class Backlogs(Protocol):
    """What the ticker and the dispatcher tell, and ask, about due work that has not started."""

    def suspect(self, group: str) -> None: ...
    def queued(self, group: str, count: int) -> None: ...
    def started(self, group: str, count: int) -> None: ...
    def is_full(self, group: str) -> bool: ...


class NoBacklogs:
    """Every due tick becomes a run at once, however many wait."""

    def suspect(self, group: str) -> None:
        pass

    def queued(self, group: str, count: int) -> None:
        pass

    def started(self, group: str, count: int) -> None:
        pass

    def is_full(self, group: str) -> bool:
        return False


class ScheduleStore(Protocol):
    async def now(self) -> datetime: ...
    async def get(self, name: str) -> StoredSchedule: ...
    async def page(
        self,
        *,
        after: str,
        limit: int,
        include_retired: bool,
        name_prefix: str,
        paused: bool | None,
    ) -> Sequence[StoredSchedule]: ...
    async def create(self, name: str, decide: Callable[[datetime], Change]) -> None: ...
    async def change(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Change | None]
    ) -> None: ...
    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int: ...
    async def declared_load(self, group: str) -> float: ...
    async def backfill(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Sequence[datetime]]
    ) -> list[int]: ...


class ConfigStore(Protocol):
    async def apply_config(
        self,
        load: ConfigLoad,
        decide: Callable[[Sequence[StoredSchedule], datetime], Sequence[Change]],
    ) -> datetime | None:
        """Apply a file; if a newer one is applied, change nothing and return its last mark."""

    async def config_seen(self, source: Source, digest: str, revision: int) -> bool:
        """Mark the file as seen by this runner; return whether it is the applied one."""

    async def names_of(self, sources: Collection[Source], names: Collection[str]) -> frozenset[str]:
        """Those of the names that belong to schedules of these sources."""
