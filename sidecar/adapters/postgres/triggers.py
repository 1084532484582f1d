"""Triggers of schedules: callers that come at once share a statement.

Guarantees: a repeated request id returns the run of the first request; a locked schedule delays
only its own triggers; at most about QUEUED_MAX triggered runs of a group wait, so that triggers
never delay the ticks of their group for long.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar.adapters.postgres.database import Database, Row
from sidecar.batching import Batcher
from sidecar.model.errors import NotFound, Overloaded, RowLocked, SidecarError
from sidecar.model.identity import Identity

QUEUED_MAX = 500  # about a second of work


@dataclass(frozen=True, slots=True)
class Trigger:
    name: str
    payload: bytes | None = field(default=None, repr=False)
    request_id: str | None = None


class Triggers:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity
        self._batch: Batcher[Trigger, int | SidecarError] = Batcher(
            self._send,
            name_of=lambda each: (each.name, each.request_id) if each.request_id else None,
            bytes_of=lambda each: len(each.payload or b""),
            lanes=1,  # the other connections are for other callers
        )

    async def __call__(self, trigger: Trigger) -> int:
        answer = await self._batch(trigger)
        if isinstance(answer, RowLocked):
            answer = await self._one(trigger)
        if isinstance(answer, SidecarError):
            raise answer
        return answer

    async def _send(self, triggers: Sequence[Trigger]) -> list[int | SidecarError]:
        if len(triggers) == 1:
            return [await self._one(triggers[0])]
        rows = await self._fetch(
            "schedules/trigger_all",
            names=[each.name for each in triggers],
            payloads=[each.payload for each in triggers],
            request_ids=[each.request_id for each in triggers],
        )
        return [await self._answer(*each) for each in zip(triggers, rows, strict=True)]

    async def _one(self, trigger: Trigger) -> int | SidecarError:
        (row,) = await self._fetch(
            "schedules/trigger",
            name=trigger.name,
            payload=trigger.payload,
            request_id=trigger.request_id,
        )
        return await self._answer(trigger, row)

    async def _answer(self, trigger: Trigger, row: Row) -> int | SidecarError:
        if row["id"] is not None:
            return int(row["id"])
        if not row["known"]:
            return NotFound(f"there is no schedule {trigger.name!r}")
        if row.get("locked"):
            return RowLocked(f"schedule {trigger.name!r} is locked by another session of Postgres")
        if trigger.request_id and (run_id := await self._earlier(trigger)):
            return run_id
        if row["is_full"]:
            return Overloaded(f"{QUEUED_MAX} triggered runs of the group wait to be started")
        return NotFound(f"the run of request {trigger.request_id!r} was pruned meanwhile")

    async def _earlier(self, trigger: Trigger) -> int | None:
        """The run of an earlier request with the same id."""
        found = await self._fetch(
            "schedules/triggered", name=trigger.name, request_id=trigger.request_id
        )
        return int(found[0]["id"]) if found else None

    async def _fetch(self, query: str, **parameters: Any) -> list[Row]:
        identity = await self._identity()
        parameters |= {
            "cluster_id": identity.cluster_id,
            "runner_id": identity.runner_id,
            "queued_max": QUEUED_MAX,
        }
        return await self._database.fetch(query, parameters)
