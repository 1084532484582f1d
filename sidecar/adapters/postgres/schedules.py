"""The table of schedules: ticks for the leader, operations for API calls and config files.

Guarantees:
- ticks become runs in one statement under the leader's term, once each (G3, G4), even if
  several callers claim them at once;
- an operation locks its schedule while it decides: the leader claims ticks before or after it;
- an older configuration file is never applied over a newer one that a runner may still have;
- a damaged row is logged and affects no other schedule; it can be replaced and deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row, Transaction
from sidecar.adapters.postgres.schedule_rows import locked, stored, upcoming
from sidecar.adapters.postgres.schedule_writes import make, write_all, written
from sidecar.adapters.postgres.triggers import Trigger, Triggers
from sidecar.model.errors import AlreadyExists, Fenced, NotFound
from sidecar.model.identity import Identity
from sidecar.model.load import cron_ticks_per_second
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
from sidecar.slices import in_slices

T = TypeVar("T")
APPLY_SECONDS = 60.0
CREATE_MAX = 500
_ROWS_AT_ONCE = 100
CONFIG_KEEP_SECONDS = 30 * 86_400.0  # then an unused config file is forgotten


class PostgresSchedules:
    """Queries of the ticker, the catalogue and the config sync."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity
        self._triggers = Triggers(database, identity)

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        """The database's time, and the schedules due within the horizon, soonest first."""
        rows = await self._database.fetch(
            "schedules/upcoming",
            {"group_id": term.group_id, "horizon_seconds": horizon_seconds, "limit": limit},
        )
        found = (row for row in rows if row["id"] is not None)
        read = [upcoming(row, term.group) async for row in in_slices(found, _ROWS_AT_ONCE)]
        return rows[0]["now"], [known for known in read if known]

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        identity = await self._identity()
        parameters = {
            "group_id": term.group_id,
            "epoch": term.epoch,
            "runner_id": identity.runner_id,
            **_plans(due),
            **_steps(due),
        }
        rows = await self._database.fetch("schedules/claim_ticks", parameters)
        if not rows[0]["is_current"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        made = {row["reason"]: row for row in rows if row["rows"]}
        return ClaimedTicks(
            now=rows[0]["now"],
            moved=frozenset(rows[0]["moved"]),
            skipped=tuple((SkipReason(why), int(row["ticks"])) for why, row in made.items() if why),
            queued=made[None]["rows"] if None in made else 0,
        )

    async def now(self) -> datetime:
        row = await self._database.fetch_one("schedules/now")
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        return datetime.fromisoformat(row["now"].isoformat())

    async def get(self, name: str) -> StoredSchedule:
        """The schedule of this name, even if it is retired."""
        identity = await self._identity()
        row = await self._database.fetch_one("schedules/get", _named(identity, name))
        if row is None:
            raise NotFound(f"there is no schedule {name!r}")
        return stored(row)

    async def page(
        self,
        *,
        after: str,
        limit: int,
        include_retired: bool,
        name_prefix: str = "",
        paused: bool | None = None,
    ) -> Sequence[StoredSchedule]:
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "after": after,
            "limit": limit,
            "include_retired": include_retired,
            "name_prefix": name_prefix,
            "paused": paused,
        }
        return [stored(row) for row in await self._database.fetch("schedules/list", parameters)]

    async def create(self, name: str, decide: Callable[[datetime], Change]) -> None:
        """Create a schedule, or restore a retired one; `decide` gets the time to count ticks from.

        A retired one has rows for the ticks that it skipped: ticks count after its watermark.
        """
        identity = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(identity, name))
            if not rows:
                now = (await transaction.fetch("schedules/now"))[0]["now"]
                made = await make(
                    transaction, identity, [written(decide(now).after, identity, identity.groups)]
                )
            elif made := rows[0]["retired_at"] is not None:
                change = decide(max(rows[0]["now"], locked(rows[0]).watermark))
                back = replace(change, after=replace(change.after, id=rows[0]["id"]))
                await write_all(transaction, [back], identity, {})
        if not made:
            raise AlreadyExists(f"there is a schedule {name!r} already")

    async def change(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Change | None]
    ) -> None:
        """Lock a schedule that is not retired, and write what `decide` returns."""
        identity = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(identity, name))
            known = bool(rows) and rows[0]["retired_at"] is None
            if known and (change := decide(locked(rows[0]), rows[0]["now"])):
                own_groups = {rows[0]["id"]: _own_group(rows[0])}
                await write_all(transaction, [change], identity, own_groups)
        if not known:  # after the commit, when its deletion is replicated
            raise NotFound(f"there is no schedule {name!r}")

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int:
        return await self._triggers(Trigger(name, payload, request_id))

    async def declared_load(self, group: str) -> float:
        """How many ticks per second the schedules of a group declare, about."""
        identity = await self._identity()
        parameters = {"cluster_id": identity.cluster_id, "group": group}
        rows = await self._database.fetch("schedules/declared", parameters)
        crons = (
            cron_ticks_per_second(row["cron"]) * row["schedules"] for row in rows if row["cron"]
        )
        return float(sum(row["ticks_per_second"] for row in rows) + sum(crons))

    async def backfill(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Sequence[datetime]]
    ) -> list[int]:
        """Create runs for the ticks that `decide` returns and that have no row yet."""
        identity = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(identity, name))
            if not rows or rows[0]["retired_at"] is not None:
                raise NotFound(f"there is no schedule {name!r}")
            known = stored(rows[0])
            ticks = decide(known, rows[0]["now"])
            parameters = _named(identity, name) | {
                "group_id": rows[0]["group_id"],
                "schedule_id": known.id,
                "overlap": known.definition.overlap,
                "runner_id": identity.runner_id,
                "ticks": list(ticks),
            }
            created = await transaction.fetch("schedules/backfill", parameters)
        return sorted(row["id"] for row in created)

    async def apply_config(
        self,
        load: ConfigLoad,
        decide: Callable[[Sequence[StoredSchedule], datetime], Sequence[Change]],
    ) -> datetime | None:
        """Apply a config file. If a newer one is applied, change nothing and return when a runner
        last had that one.

        Raises AlreadyExists and changes nothing if one of its names was taken meanwhile: retry.
        """
        identity = await self._identity()
        mine = {
            "cluster_id": identity.cluster_id,
            "source": load.source,
            "digest": load.digest,
            "revision": load.revision,
            "anew": load.anew,
        }
        async with self._database.transaction(seconds=APPLY_SECONDS) as transaction:
            # First: otherwise two runners could each find that its file is the newest.
            await transaction.fetch("schedules/config_lock", mine)
            seen = (await transaction.fetch("schedules/config_seen", mine))[0]
            newest = await transaction.fetch("schedules/config_newest", mine)
            again = bool(newest) and newest[0]["seen_at"] == load.abandoned
            if newest and not again and _rank(newest[0]) > _rank(seen):
                return datetime.fromisoformat(newest[0]["seen_at"].isoformat())
            rows = await transaction.fetch(
                "schedules/config_lock_all", mine | {"names": list(load.names)}
            )
            own_groups = {row["id"]: _own_group(row) for row in rows}
            now = (await transaction.fetch("schedules/now"))[0]["now"]
            changes, new = await _in_thread(
                transaction, lambda: _decided(decide, rows, now, identity)
            )
            for start in range(0, len(new), CREATE_MAX):
                if not await make(transaction, identity, new[start : start + CREATE_MAX]):
                    # The next try sees it, and reports the name clash.
                    raise AlreadyExists("a schedule that the file names is being made elsewhere")
            await write_all(transaction, changes, identity, own_groups)
            await transaction.fetch("schedules/config_apply", mine | {"again": again})
            await transaction.fetch(
                "schedules/config_prune", mine | {"keep_seconds": CONFIG_KEEP_SECONDS}
            )
        return None

    async def config_seen(self, source: Source, digest: str, revision: int) -> bool:
        """Record that this runner has the file; returns whether it is the applied one."""
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "source": source,
            "digest": digest,
            "revision": revision,
            "anew": False,
        }
        row = await self._database.fetch_one("schedules/config_seen", parameters)
        return bool(row and row["applied"])

    async def names_of(self, sources: Collection[Source], names: Collection[str]) -> frozenset[str]:
        """The names that belong to a schedule of these sources."""
        if not names:
            return frozenset()
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "names": list(names),
            "sources": list(sources),
        }
        rows = await self._database.fetch("schedules/config_clashing", parameters)
        return frozenset(row["name"] for row in rows)


def _rank(row: Row) -> tuple[int, datetime]:
    return row["revision"], row["first_loaded_at"]


def _decided(
    decide: Callable[[Sequence[StoredSchedule], datetime], Sequence[Change]],
    rows: list[Row],
    now: datetime,
    identity: Identity,
) -> tuple[list[Change], list[dict[str, Any]]]:
    """The changes, and the rows of new schedules. Empties `rows` to save memory."""
    rows.reverse()
    changes = decide([locked(rows.pop()) for _ in range(len(rows))], now)
    new = [
        written(change.after, identity, identity.groups)
        for change in changes
        if not change.after.id
    ]
    return [change for change in changes if change.after.id], new


async def _in_thread(transaction: Transaction, work: Callable[[], T]) -> T:
    """In a thread, because ten thousand schedules take seconds and pings must not wait for them.
    Meanwhile it sends a query per second: the server ends transactions that are idle for long.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    while not thread.done():
        await asyncio.wait({thread}, timeout=1.0)
        await transaction.fetch("schedules/now")
    return thread.result()


def _own_group(row: Row) -> dict[str, int]:
    return {row["group_name"]: row["group_id"]}


def _named(identity: Identity, name: str) -> dict[str, Any]:
    return {"cluster_id": identity.cluster_id, "name": name}


def _plans(due: Sequence[DueTicks]) -> dict[str, str]:
    return {
        "ids": arrays.plain(d.before.id for d in due),
        "versions": arrays.plain(d.before.version for d in due),
        "watermarks": arrays.instants(d.before.watermark for d in due),
        "due_ats": arrays.instants(d.due_at for d in due),
        "new_watermarks": arrays.instants(d.after.watermark for d in due),
        "next_ticks": arrays.instants(d.after.next_tick for d in due),
        "next_due_ats": arrays.instants(d.after.next_due_at for d in due),
        "missed": arrays.plain(d.missed for d in due),
    }


def _steps(due: Sequence[DueTicks]) -> dict[str, str]:
    steps = [
        (d.before.id, step, starts)
        for d in due
        for step, starts in zip(d.steps, d.starts, strict=True)
    ]
    return {
        "step_ids": arrays.plain(schedule_id for schedule_id, _, _ in steps),
        "ticks": arrays.instants(step.first for _, step, _ in steps),
        "tick_lasts": arrays.instants(
            step.last if step.count > 1 else None for _, step, _ in steps
        ),
        "tick_counts": arrays.plain(step.count for _, step, _ in steps),
        "step_due_ats": arrays.instants(starts for _, _, starts in steps),
        "reasons": arrays.texts(step.reason for _, step, _ in steps),
    }
