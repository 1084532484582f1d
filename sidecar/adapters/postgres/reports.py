"""Reads what people look at. Every query is bounded, and none of them writes.

It is given a database of its own, so that no page takes a connection from a tick.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.deferreds import deferred_of
from sidecar.adapters.postgres.membership import ALIVE_SECONDS
from sidecar.model.deferred import Deferred, DeferredState
from sidecar.model.identity import Identity
from sidecar.model.reports import (
    STATS_PARTS,
    STATS_RUNS_MAX,
    Counts,
    NameStats,
    RunnerRecord,
    RunStats,
    RunStep,
    TermRecord,
)

_UNREAD = {"id": b"", "expires_in_seconds": None}  # columns of a deferred that are not listed


class PostgresReports:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def terms(
        self, group: str | None, *, before: tuple[int, int] | None, limit: int
    ) -> Sequence[TermRecord]:
        """Newest first, those before an epoch and group id."""
        epoch, group_id = before or (None, None)
        rows = await self._fetch("terms", group=group, epoch=epoch, group_id=group_id, limit=limit)
        return [
            TermRecord(
                group=row["group_name"],
                group_id=row["group_id"],
                epoch=row["epoch"],
                runner_id=row["runner_id"],
                host=row["host"],
                taken_at=row["taken_at"],
                ended_at=row["ended_at"],
                why=row["why"],
            )
            for row in rows
        ]

    async def runners(self, *, after: str, limit: int) -> Sequence[RunnerRecord]:
        rows = await self._fetch("runners", after=after, limit=limit, alive_seconds=ALIVE_SECONDS)
        return [RunnerRecord(**row | {"leads": tuple(row["leads"])}) for row in rows]

    async def deferreds(
        self,
        run_id: int | None,
        state: DeferredState | None,
        *,
        before: tuple[int, str] | None,
        limit: int,
    ) -> Sequence[Deferred]:
        """Of the newest runs first, those before a run and name; without values."""
        before_run, before_name = before or (None, None)
        rows = await self._fetch(
            "deferreds",
            run_id=run_id,
            state=state and state.value,
            before_run=before_run,
            before_name=before_name,
            limit=limit,
        )
        return [deferred_of(row | _UNREAD) for row in rows]

    async def steps(self, run_id: int) -> Sequence[RunStep]:
        rows = await self._database.fetch("reports/steps", {"run_id": run_id})
        return [
            RunStep(row["step"], row["stored_at"], row["attempt"] or 0, row["size"]) for row in rows
        ]

    async def stats(self, name: str | None, *, seconds: float) -> RunStats:
        """Of the window that ends now."""
        (window,) = await self._fetch(
            "stats_window", name=name, seconds=seconds, runs_max=STATS_RUNS_MAX
        )
        sample = {
            "name": name,
            "since": window["since"],
            "until": window["until"],
            "runs_max": STATS_RUNS_MAX,
        }
        names = await self._fetch("stats_names", **sample)
        found = {
            row["part"]: _counts(row)
            for row in await self._fetch("stats_buckets", **sample, parts=STATS_PARTS)
        }
        return RunStats(
            since=window["since"],
            until=window["until"],
            truncated=window["truncated"],
            names=tuple(_name_stats(row) for row in names),
            parts=tuple(found.get(part, Counts()) for part in range(STATS_PARTS)),
        )

    async def _fetch(self, query: str, **parameters: Any) -> list[Row]:
        identity = await self._identity()
        return await self._database.fetch(
            f"reports/{query}", {"cluster_id": identity.cluster_id, **parameters}
        )


def _counts(row: Row) -> Counts:
    return Counts(row["succeeded"], row["failed"], row["skipped"], row["live"])


def _name_stats(row: Row) -> NameStats:
    return NameStats(
        row["name"], _counts(row), _percentiles(row["lateness"]), _percentiles(row["duration"])
    )


def _percentiles(values: list[float | None] | None) -> tuple[float, ...] | None:
    """None if nothing was measured; a start before its due time, by a clock that stepped, is 0."""
    measured = tuple(max(0.0, value) for value in values or () if value is not None)
    return measured or None
