"""The table of schedules: ticks for the leader, operations for API calls and config files.

Guarantees:
- ticks become runs in one statement under the leader's term, once each (G3, G4), even if
  several callers claim them at once;
- an operation locks its schedule while it decides: the leader claims ticks before or after it;
- an older configuration file is never applied over a newer one that a runner may still have;
- a damaged row is logged and affects no other schedule; it can be replaced and deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from psycopg.types.json import Jsonb

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row, Transaction
from sidecar.adapters.postgres.definitions import to_json
from sidecar.adapters.postgres.schedule_rows import locked, stored, upcoming
from sidecar.model.errors import AlreadyExists, Fenced, InvalidArgument, NotFound
from sidecar.model.identity import Identity
from sidecar.model.schedule import SkipReason, TickPlan
from sidecar.model.stored_schedule import (
    Change,
    ClaimedTicks,
    ConfigLoad,
    DueTicks,
    StoredSchedule,
)
from sidecar.model.term import Term

T = TypeVar("T")
APPLY_SECONDS = 60.0
CREATE_MAX = 500
CONFIG_KEEP_SECONDS = 30 * 86_400.0  # then an unused config file is forgotten
_CREATED = (
    "group_id",
    "name",
    "source",
    "definition",
    "payload",
    "watermark",
    "next_tick",
    "next_due_at",
)


class PostgresSchedules:
    """Queries of the ticker, the catalogue and the config sync."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        """The database's time, and the schedules due within the horizon, soonest first."""
        rows = await self._database.fetch(
            "schedules/upcoming",
            {"group_id": term.group_id, "horizon_seconds": horizon_seconds, "limit": limit},
        )
        found = (upcoming(row, term.group) for row in rows if row["id"] is not None)
        return rows[0]["now"], [known for known in found if known]

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
                made = await _make(
                    transaction, identity, [_written(decide(now).after, identity, identity.groups)]
                )
            elif made := rows[0]["retired_at"] is not None:
                change = decide(max(rows[0]["now"], locked(rows[0]).watermark))
                back = replace(change, after=replace(change.after, id=rows[0]["id"]))
                await _write(transaction, back, identity, {})
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
                await _write(transaction, change, identity, _own_group(rows[0]))
        if not known:  # after the commit, when its deletion is replicated
            raise NotFound(f"there is no schedule {name!r}")

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int:
        identity = await self._identity()
        parameters = _named(identity, name) | {
            "payload": payload,
            "request_id": request_id,
            "runner_id": identity.runner_id,
        }
        row = await self._database.fetch_one("schedules/trigger", parameters)
        if row is None or not row["known"]:
            raise NotFound(f"there is no schedule {name!r}")
        if row["id"] is None:  # a repeated request
            row = await self._database.fetch_one("schedules/triggered", parameters)
        if row is None:
            raise NotFound(f"the run of request {request_id!r} was pruned meanwhile")
        return int(row["id"])

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
                if not await _make(transaction, identity, new[start : start + CREATE_MAX]):
                    # The next try sees it, and reports the name clash.
                    raise AlreadyExists("a schedule that the file names is being made elsewhere")
            for change in changes:
                await _write(transaction, change, identity, own_groups[change.after.id])
            await transaction.fetch("schedules/config_apply", mine | {"again": again})
            await transaction.fetch(
                "schedules/config_prune", mine | {"keep_seconds": CONFIG_KEEP_SECONDS}
            )
        return None

    async def config_seen(self, digest: str, revision: int) -> bool:
        """Record that this runner has the file; returns whether it is the applied one."""
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "digest": digest,
            "revision": revision,
            "anew": False,
        }
        row = await self._database.fetch_one("schedules/config_seen", parameters)
        return bool(row and row["applied"])

    async def names_of_api(self, names: Collection[str]) -> frozenset[str]:
        """The names that belong to a schedule made by the API."""
        if not names:
            return frozenset()
        parameters = {"cluster_id": (await self._identity()).cluster_id, "names": list(names)}
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
        _written(change.after, identity, identity.groups)
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


async def _make(
    transaction: Transaction, identity: Identity, new: Sequence[Mapping[str, Any]]
) -> bool:
    """Create schedules whose names are free; returns whether all were."""
    columns = {key: [each[key] for each in new] for key in _CREATED}
    made = await transaction.fetch(
        "schedules/create", {"cluster_id": identity.cluster_id, **columns}
    )
    return len(made) == len(new)


async def _write(
    transaction: Transaction,
    change: Change,
    identity: Identity,
    own_group: Mapping[str, int],
) -> None:
    """`own_group`: a schedule may stay in a group that this runner does not have."""
    written = _written(change.after, identity, {**identity.groups, **own_group})
    if change.skipped:
        await transaction.fetch("schedules/skip_range", written | _range(change.skipped))
    if change.retire:
        await transaction.fetch("schedules/retire", written)
    else:
        await transaction.fetch("schedules/change", written | {"recount": change.recount})


def _named(identity: Identity, name: str) -> dict[str, Any]:
    return {"cluster_id": identity.cluster_id, "name": name}


def _written(
    stored: StoredSchedule, identity: Identity, groups: Mapping[str, int]
) -> dict[str, Any]:
    group = stored.definition.group
    if group not in groups:
        raise InvalidArgument(
            "schedule.group", f"{group!r} is not one of {', '.join(sorted(identity.groups))}"
        )
    return {
        "id": stored.id,
        "schedule_id": stored.id,
        "cluster_id": identity.cluster_id,
        "runner_id": identity.runner_id,
        "group_id": groups[group],
        "name": stored.name,
        "source": stored.source,
        "definition": Jsonb(to_json(stored.definition)),
        "payload": stored.definition.payload,
        "paused": stored.paused,
        "pause_note": stored.pause_note,
        "watermark": stored.watermark,
        "next_tick": stored.next_tick,
        "next_due_at": stored.next_due_at,
    }


def _range(step: TickPlan) -> dict[str, Any]:
    return {
        "tick": step.first,
        "tick_last": step.last if step.count > 1 else None,
        "tick_count": step.count,
        "reason": step.reason.value if step.reason else None,
    }


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
