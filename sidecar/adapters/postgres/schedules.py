"""The table of schedules: ticks for the leader, operations for everybody.

Guarantees:
- ticks become runs in one statement under the leader's term, once each (G3, G4), however many ask
  at once;
- an operation holds its schedule while it decides: the leader's claim sees it before or after,
  never half;
- an older configuration file is never applied over a newer one that a runner may still have;
- a damaged row is told and stops nobody else's ticks, nor a file; it can be replaced and deleted.
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
from sidecar.adapters.postgres.schedule_rows import standing, stored, upcoming
from sidecar.config.work import Schedule
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
Stored = StoredSchedule[Schedule]
APPLY_SECONDS = 60.0
CREATE_MAX = 500
CONFIG_KEEP_SECONDS = 30 * 86_400.0  # files that nobody has had for so long are forgotten
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
    """What the ticker, the catalogue and the config sync ask of the table of schedules."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[Stored]]:
        """The database's time, and what has to be looked at within the horizon, soonest first."""
        rows = await self._database.fetch(
            "schedules/upcoming",
            {"group_id": term.group_id, "horizon_seconds": horizon_seconds, "limit": limit},
        )
        found = (upcoming(row, term.group) for row in rows if row["id"] is not None)
        return rows[0]["now"], [known for known in found if known]

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks[Schedule]]) -> ClaimedTicks:
        who = await self._identity()
        parameters = {
            "group_id": term.group_id,
            "epoch": term.epoch,
            "runner_id": who.runner_id,
            **_plans(due),
            **_steps(due),
        }
        rows = await self._database.fetch("schedules/claim_ticks", parameters)
        if not rows[0]["stands"]:
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

    async def get(self, name: str) -> Stored:
        """Also a retired one."""
        who = await self._identity()
        row = await self._database.fetch_one("schedules/get", _named(who, name))
        if row is None:
            raise NotFound(f"there is no schedule {name!r}")
        return stored(row)

    async def page(self, *, after: str, limit: int, include_retired: bool) -> Sequence[Stored]:
        who = await self._identity()
        parameters = {
            "cluster_id": who.cluster_id,
            "after": after,
            "limit": limit,
            "include_retired": include_retired,
        }
        return [stored(row) for row in await self._database.fetch("schedules/list", parameters)]

    async def create(self, name: str, decide: Callable[[datetime], Change[Schedule]]) -> None:
        """Make a schedule, or bring back a retired one; `decide` is told from when ticks count.

        What was passed over by its retirement has its rows: ticks count from there at the earliest.
        """
        who = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(who, name))
            if not rows:
                now = (await transaction.fetch("schedules/now"))[0]["now"]
                made = await _make(transaction, who, [_written(decide(now).after, who, who.groups)])
            elif made := rows[0]["retired_at"] is not None:
                change = decide(max(rows[0]["now"], standing(rows[0]).watermark))
                back = replace(change, after=replace(change.after, id=rows[0]["id"]))
                await _write(transaction, back, who, {})
        if not made:
            raise AlreadyExists(f"there is a schedule {name!r} already")

    async def change(
        self, name: str, decide: Callable[[Stored, datetime], Change[Schedule] | None]
    ) -> None:
        """Hold a living schedule, let `decide` say what becomes of it, and write that."""
        who = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(who, name))
            if not rows or rows[0]["retired_at"] is not None:
                raise NotFound(f"there is no schedule {name!r}")
            if change := decide(standing(rows[0]), rows[0]["now"]):
                await _write(transaction, change, who, _own_group(rows[0]))

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int:
        who = await self._identity()
        parameters = _named(who, name) | {
            "payload": payload,
            "request_id": request_id,
            "runner_id": who.runner_id,
        }
        row = await self._database.fetch_one("schedules/trigger", parameters)
        if row is None or not row["known"]:
            raise NotFound(f"there is no schedule {name!r}")
        if row["id"] is None:  # the request was made before
            row = await self._database.fetch_one("schedules/triggered", parameters)
        if row is None:
            raise NotFound(f"the run of request {request_id!r} was pruned meanwhile")
        return int(row["id"])

    async def backfill(
        self, name: str, decide: Callable[[Stored, datetime], Sequence[datetime]]
    ) -> list[int]:
        """Runs for the ticks that `decide` names and that have no row yet, oldest first."""
        who = await self._identity()
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("schedules/lock", _named(who, name))
            if not rows or rows[0]["retired_at"] is not None:
                raise NotFound(f"there is no schedule {name!r}")
            known = stored(rows[0])
            ticks = decide(known, rows[0]["now"])
            parameters = _named(who, name) | {
                "group_id": rows[0]["group_id"],
                "schedule_id": known.id,
                "overlap": known.definition.overlap,
                "runner_id": who.runner_id,
                "ticks": list(ticks),
            }
            born = await transaction.fetch("schedules/backfill", parameters)
        return sorted(row["id"] for row in born)

    async def apply_config(
        self,
        load: ConfigLoad,
        decide: Callable[[Sequence[Stored], datetime], Sequence[Change[Schedule]]],
    ) -> datetime | None:
        """Apply a file; if a newer one stands, change nothing and tell its last sign of life.

        AlreadyExists, and nothing changed, if one of its names was taken meanwhile: ask again.
        """
        who = await self._identity()
        mine = {
            "cluster_id": who.cluster_id,
            "digest": load.digest,
            "revision": load.revision,
            "anew": load.anew,
        }
        async with self._database.transaction(seconds=APPLY_SECONDS) as transaction:
            # First of all: two runners could each believe that its file is the newest.
            await transaction.fetch("schedules/config_lock", mine)
            seen = (await transaction.fetch("schedules/config_seen", mine))[0]
            standing = await transaction.fetch("schedules/config_newest", mine)
            again = bool(standing) and standing[0]["seen_at"] == load.abandoned
            if standing and not again and _rank(standing[0]) > _rank(seen):
                return datetime.fromisoformat(standing[0]["seen_at"].isoformat())
            rows = await transaction.fetch(
                "schedules/config_lock_all", mine | {"names": list(load.names)}
            )
            own_groups = {row["id"]: _own_group(row) for row in rows}
            now = (await transaction.fetch("schedules/now"))[0]["now"]
            changes, new = await _beside_the_loop(
                transaction, lambda: _decided(decide, rows, now, who)
            )
            for start in range(0, len(new), CREATE_MAX):
                if not await _make(transaction, who, new[start : start + CREATE_MAX]):
                    # The next try sees it, and that its name clashes with one of the file's.
                    raise AlreadyExists("a schedule that the file names is being made elsewhere")
            for change in changes:
                await _write(transaction, change, who, own_groups[change.after.id])
            await transaction.fetch("schedules/config_apply", mine | {"again": again})
            await transaction.fetch(
                "schedules/config_prune", mine | {"keep_seconds": CONFIG_KEEP_SECONDS}
            )
        return None

    async def config_seen(self, digest: str, revision: int) -> bool:
        """Say that this runner has the file; whether it is the one that stands."""
        who = await self._identity()
        parameters = {
            "cluster_id": who.cluster_id,
            "digest": digest,
            "revision": revision,
            "anew": False,
        }
        row = await self._database.fetch_one("schedules/config_seen", parameters)
        return bool(row and row["applied"])

    async def names_of_api(self, names: Collection[str]) -> frozenset[str]:
        """Those of these names under which the API has a schedule."""
        if not names:
            return frozenset()
        parameters = {"cluster_id": (await self._identity()).cluster_id, "names": list(names)}
        rows = await self._database.fetch("schedules/config_clashing", parameters)
        return frozenset(row["name"] for row in rows)


def _rank(row: Row) -> tuple[int, datetime]:
    return row["revision"], row["first_loaded_at"]


def _decided(
    decide: Callable[[Sequence[Stored], datetime], Sequence[Change[Schedule]]],
    rows: list[Row],
    now: datetime,
    who: Identity,
) -> tuple[list[Change[Schedule]], list[dict[str, Any]]]:
    """What changes, and the new ones ready to be written many at a time; `rows` is used up."""
    rows.reverse()
    changes = decide([standing(rows.pop()) for _ in range(len(rows))], now)
    new = [_written(change.after, who, who.groups) for change in changes if not change.after.id]
    return [change for change in changes if change.after.id], new


async def _beside_the_loop(transaction: Transaction, work: Callable[[], T]) -> T:
    """In a thread, because ten thousand schedules take seconds and pings must not wait for them;
    the server is spoken to meanwhile, because it ends a transaction that is idle for long.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    while not thread.done():
        await asyncio.wait({thread}, timeout=1.0)
        await transaction.fetch("schedules/now")
    return thread.result()


def _own_group(row: Row) -> dict[str, int]:
    return {row["group_name"]: row["group_id"]}


async def _make(transaction: Transaction, who: Identity, new: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all their names were free; a schedule whose name was not is not made."""
    columns = {key: [each[key] for each in new] for key in _CREATED}
    made = await transaction.fetch("schedules/create", {"cluster_id": who.cluster_id, **columns})
    return len(made) == len(new)


async def _write(
    transaction: Transaction,
    change: Change[Schedule],
    who: Identity,
    own_group: Mapping[str, int],
) -> None:
    """Where it is, a schedule may stay: its group need not be one that this runner has."""
    written = _written(change.after, who, {**who.groups, **own_group})
    if change.skipped:
        await transaction.fetch("schedules/skip_range", written | _range(change.skipped))
    if change.retire:
        await transaction.fetch("schedules/retire", written)
    else:
        await transaction.fetch("schedules/change", written | {"recount": change.recount})


def _named(who: Identity, name: str) -> dict[str, Any]:
    return {"cluster_id": who.cluster_id, "name": name}


def _written(stored: Stored, who: Identity, groups: Mapping[str, int]) -> dict[str, Any]:
    group = stored.definition.group
    if group not in groups:
        raise InvalidArgument(
            "schedule.group", f"{group!r} is not one of {', '.join(sorted(who.groups))}"
        )
    return {
        "id": stored.id,
        "schedule_id": stored.id,
        "cluster_id": who.cluster_id,
        "runner_id": who.runner_id,
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


def _plans(due: Sequence[DueTicks[Schedule]]) -> dict[str, str]:
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


def _steps(due: Sequence[DueTicks[Schedule]]) -> dict[str, str]:
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
