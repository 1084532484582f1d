"""Writes schedules inside a transaction that has locked them: created, changed or retired.

Guarantee: thousands are retired in a few statements. The leader's ticks wait while they are locked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Transaction
from sidecar.adapters.postgres.definitions import to_json
from sidecar.model.errors import InvalidArgument
from sidecar.model.identity import Identity
from sidecar.model.schedule import TickPlan
from sidecar.model.stored_schedule import Change, StoredSchedule

WRITTEN_MAX = 500  # retired by one statement
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


async def make(
    transaction: Transaction, identity: Identity, new: Sequence[Mapping[str, Any]]
) -> bool:
    """Create schedules whose names are free; returns whether all were."""
    columns = {key: [each[key] for each in new] for key in _CREATED}
    made = await transaction.fetch(
        "schedules/create", {"cluster_id": identity.cluster_id, **columns}
    )
    return len(made) == len(new)


async def write_all(
    transaction: Transaction,
    changes: Sequence[Change],
    identity: Identity,
    own_groups: Mapping[int, Mapping[str, int]],
) -> None:
    """`own_groups`, by schedule id: one may stay in a group that this runner does not have."""
    groups = _Groups(identity, own_groups)
    for start in range(0, len(changes), WRITTEN_MAX):
        await _write(transaction, changes[start : start + WRITTEN_MAX], identity, groups)


@dataclass(frozen=True, slots=True)
class _Groups:
    identity: Identity
    own: Mapping[int, Mapping[str, int]]

    def of(self, stored: StoredSchedule) -> Mapping[str, int]:
        return {**self.identity.groups, **self.own.get(stored.id, {})}


async def _write(
    transaction: Transaction,
    changes: Sequence[Change],
    identity: Identity,
    groups: _Groups,
) -> None:
    mine = {"cluster_id": identity.cluster_id, "runner_id": identity.runner_id}
    skipped = [(change.after, change.skipped) for change in changes if change.skipped]
    if skipped:
        await transaction.fetch("schedules/skip_range", mine | _skipped(skipped, groups))
    if retired := [change.after for change in changes if change.retire]:
        await transaction.fetch("schedules/retire", mine | _retired(retired))
    for change in changes:
        if not change.retire:
            row = written(change.after, identity, groups.of(change.after))
            await transaction.fetch("schedules/change", row | {"recount": change.recount})


def written(
    stored: StoredSchedule, identity: Identity, groups: Mapping[str, int]
) -> dict[str, Any]:
    """The columns of one schedule."""
    return {
        "id": stored.id,
        "cluster_id": identity.cluster_id,
        "group_id": _group_id(stored, identity, groups),
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


def _group_id(stored: StoredSchedule, identity: Identity, groups: Mapping[str, int]) -> int:
    group = stored.definition.group
    if group not in groups:
        raise InvalidArgument(
            "schedule.group", f"{group!r} is not one of {', '.join(sorted(identity.groups))}"
        )
    return groups[group]


def _retired(schedules: Sequence[StoredSchedule]) -> dict[str, str]:
    return {
        "ids": arrays.plain(each.id for each in schedules),
        "watermarks": arrays.instants(each.watermark for each in schedules),
    }


def _skipped(skipped: Sequence[tuple[StoredSchedule, TickPlan]], groups: _Groups) -> dict[str, str]:
    steps = [step for _, step in skipped]
    return {
        "group_ids": arrays.plain(
            _group_id(stored, groups.identity, groups.of(stored)) for stored, _ in skipped
        ),
        "names": arrays.texts(stored.name for stored, _ in skipped),
        "schedule_ids": arrays.plain(stored.id for stored, _ in skipped),
        "ticks": arrays.instants(step.first for step in steps),
        "tick_lasts": arrays.instants(step.last if step.count > 1 else None for step in steps),
        "tick_counts": arrays.plain(step.count for step in steps),
        "reasons": arrays.texts(step.reason for step in steps),
    }
