"""State in Postgres, the source of truth. Every method is one statement, hence one transaction,
within its deadline.

Guarantees: writes on behalf of a run lock its term and its row, so that they commit before a
takeover or a completion or not at all (G3); a request_id answered within the last hour is answered
again, not written again. An answer that repeats an earlier write is given only once that write
is replicated (G7).
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from psycopg.errors import LockNotAvailable, UniqueViolation

from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.state_rows import (
    allowed,
    put_answer,
    reading_of,
    record_of,
)
from sidecar.model.errors import AnswerLost, RowLocked, SidecarError, StoreUnavailable
from sidecar.model.identity import Identity
from sidecar.model.run import RunRef
from sidecar.model.state import (
    REQUEST_SECONDS,
    TOMBSTONE_SECONDS,
    led_seconds,
    owner_of,
    prefix_end,
)
from sidecar.model.state_types import (
    Address,
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

T = TypeVar("T")
# Below the 4 MiB of a message, with room for one more value of 1 MiB and the framing.
_PAGE_BYTES_MAX = 2 * 1024 * 1024
_CHANGES_MAX = 500


class PostgresState:
    """The tables state, state_request and state_set_aside of one cluster."""

    def __init__(
        self,
        database: Database,
        identity: Callable[[], Awaitable[Identity]],
        *,
        heartbeat_seconds: float,
    ) -> None:
        self._database = database
        self._identity = identity
        self._led_seconds = led_seconds(heartbeat_seconds)

    async def get(self, addresses: Sequence[Address]) -> list[Reading]:
        if len(addresses) == 1:
            one = addresses[0]
            parameters = {"key": one.key, "state_version": one.state_version}
            rows = await self._run("get_one", parameters)
            return [reading_of(rows[0], one.key)]
        rows = await self._fetch(
            "get",
            keys=[address.key for address in addresses],
            state_versions=[address.state_version for address in addresses],
        )
        rows.sort(key=lambda row: row["ordinal"])
        return [reading_of(row, address.key) for row, address in zip(rows, addresses, strict=True)]

    async def put(self, puts: Sequence[Put]) -> list[Reading | SidecarError]:
        try:
            by_key = {row["key"]: row for row in await self._put_rows(puts)}
        except StoreUnavailable as error:
            if isinstance(error.__cause__, LockNotAvailable):
                return await self.put_free(puts)
            raise
        if missing := [put for put in puts if put.request_id and put.key not in by_key]:
            rows = await _repeated(self._put_rows(missing))
            by_key |= {row["key"]: row for row in rows}
        return [put_answer(put, by_key.get(put.key), _digest) for put in puts]

    async def put_free(self, puts: Sequence[Put]) -> list[Reading | SidecarError]:
        rows = await self._fetch_once("put_free", **_columns(puts), **_requests(puts))
        by_key = {row["key"]: row for row in rows if not row["locked"]}
        locked = {row["key"] for row in rows if row["locked"]}
        return [
            RowLocked(f"{put.key} is locked by another session of Postgres")
            if put.key in locked
            else put_answer(put, by_key.get(put.key), _digest)
            for put in puts
        ]

    async def _put_rows(self, puts: Sequence[Put]) -> list[Row]:
        if len(puts) == 1 and not puts[0].request_id:
            one = puts[0]
            parameters = {
                "key": one.key,
                "value": one.value,
                "expected": one.expected_version,
                "ttl_seconds": one.ttl_seconds,
            }
            return await self._run("put_one", parameters)
        if any(put.request_id for put in puts):
            return await self._fetch_once("put_once", **_columns(puts), **_requests(puts))
        return await self._fetch("put", **_columns(puts))

    async def put_fenced(self, put: Put, run: RunRef, state_version: int) -> Reading:
        row = await self._put_fenced_row(put, run, state_version)
        if put.request_id and not row["version"]:
            row = await _repeated(self._put_fenced_row(put, run, state_version))
        if row["digest"] is None:
            allowed(row, run, put.key)
        answer = put_answer(put, row if row["version"] else None, _digest)
        if isinstance(answer, SidecarError):
            raise answer
        return answer

    async def _put_fenced_row(self, put: Put, run: RunRef, state_version: int) -> Row:
        rows = await self._fetch_once(
            "put_fenced",
            **_on_behalf(run, put.key),
            key=put.key,
            value=put.value,
            state_version=state_version,
            ttl_seconds=put.ttl_seconds,
            expected=put.expected_version,
            request_id=put.request_id or None,
            digest=_digest(put),
        )
        return rows[0]

    async def delete(self, delete: Delete) -> Reading | None:
        rows = await self._fetch("delete", key=delete.key, expected=delete.expected_version)
        return reading_of(rows[0], delete.key) if rows[0]["version"] else None

    async def delete_fenced(
        self, delete: Delete, run: RunRef, state_version: int
    ) -> Reading | None:
        rows = await self._fetch(
            "delete_fenced",
            **_on_behalf(run, delete.key),
            key=delete.key,
            state_version=state_version,
            expected=delete.expected_version,
        )
        allowed(rows[0], run, delete.key)
        return reading_of(rows[0], delete.key) if rows[0]["version"] else None

    async def page(self, prefix: str, after: str, limit: int) -> Page:
        # One more row than asked for shows whether there is another page.
        rows = await self._fetch(
            "list", **_range(prefix), after=after, limit=limit + 1, bytes_max=_PAGE_BYTES_MAX
        )
        records = [record_of(row, row["key"]) for row in rows[:limit]]
        return Page(records, more=bool(rows) and rows[0]["candidates"] > len(records))

    async def size(self, prefix: str) -> int:
        rows = await self._fetch("size", **_range(prefix))
        return int(rows[0]["size"])

    async def clear(self, prefix: str, after: str, limit: int) -> tuple[list[Reading], int]:
        found = await self._fetch("clear", **_range(prefix), after=after, limit=limit)
        rows = [row for row in found if row["key"] is not None]
        return [reading_of(row, row["key"]) for row in rows], sum(row["was_live"] for row in rows)

    async def snapshot(self) -> DatabaseSnapshot:
        rows = await self._fetch("snapshot")
        return DatabaseSnapshot(**rows[0])

    async def changes(self, query: ChangeQuery) -> list[Record]:
        mode = (
            {"resume_version": query.resume_version}
            if query.since is None
            else {"since": query.since}
        )
        rows = await self._fetch(
            "changes_after" if query.since is None else "changes",
            **mode,
            **_range(query.prefix),
            low=query.low,
            after_version=query.after[0],
            after_key=query.after[1],
            until=query.until,
            limit=_CHANGES_MAX,
            bytes_max=_PAGE_BYTES_MAX,
        )
        return [record_of(row, row["key"]) for row in rows]

    async def load(self, owner: Owner, state_version: int) -> OwnedRecord | None:
        rows = await self._fetch("load", key=owner.key, state_version=state_version)
        return OwnedRecord(**rows[0]) if rows else None

    async def set_aside(self, owner: Owner, record: OwnedRecord, problem: str) -> None:
        await self._fetch(
            "set_aside",
            key=owner.key,
            state_version=record.state_version,
            version=record.version,
            value=record.value,
            problem=problem,
        )

    async def sweep(self, limit: int) -> int:
        await self._fetch("extend", led_seconds=self._led_seconds)
        expired = await self._fetch("expire", limit=limit)
        pruned = await self._fetch(
            "prune",
            limit=limit,
            tombstone_seconds=TOMBSTONE_SECONDS,
            request_seconds=REQUEST_SECONDS,
        )
        return len(expired) + int(pruned[0]["pruned"])

    async def installation(self) -> str:
        identity = await self._identity()
        return f"{identity.installation_id}:{identity.cluster_id}"

    async def _fetch(self, query: str, **parameters: Any) -> list[Row]:
        """Shielded: a cancelled caller would cost a connection, so the statement may finish."""
        work = asyncio.create_task(self._run(query, parameters), name=f"state.{query}")
        work.add_done_callback(_end_quietly)
        return await asyncio.shield(work)

    async def _run(self, query: str, parameters: dict[str, Any]) -> list[Row]:
        identity = await self._identity()
        parameters["cluster_id"] = identity.cluster_id
        return await self._database.fetch(f"state/{query}", parameters)

    async def _fetch_once(self, query: str, **parameters: Any) -> list[Row]:
        """For writes with a request_id, which another connection may be writing right now."""
        for _ in range(3):
            try:
                return await self._fetch(query, **parameters)
            except UniqueViolation:
                continue
        raise StoreUnavailable("the same request_id is being written by too many callers")


async def _repeated(repeat: Awaitable[T]) -> T:
    """Another connection may have written the same request: only a new statement sees its answer.
    If that statement fails, the result of the request is unknown."""
    try:
        return await repeat
    except StoreUnavailable as error:
        raise AnswerLost(str(error)) from error


def _end_quietly(work: "asyncio.Task[list[Row]]") -> None:
    """Retrieve the exception, which asyncio would log otherwise: the caller may be gone."""
    if not work.cancelled():
        work.exception()


def _range(prefix: str) -> dict[str, str]:
    return {"prefix": prefix, "prefix_end": prefix_end(prefix)}


def _columns(puts: Sequence[Put]) -> dict[str, list[Any]]:
    return {
        "keys": [put.key for put in puts],
        "values": [put.value for put in puts],
        "expected": [put.expected_version for put in puts],
        "ttl_seconds": [put.ttl_seconds for put in puts],
    }


def _requests(puts: Sequence[Put]) -> dict[str, list[Any]]:
    return {
        "request_ids": [put.request_id or None for put in puts],
        "digests": [_digest(put) for put in puts],
    }


def _on_behalf(run: RunRef, key: str) -> dict[str, Any]:
    owner = owner_of(key)
    return {
        "run_id": run.run_id,
        "attempt": run.attempt,
        "epoch": run.epoch,
        "owner_kind": owner and owner.kind,
        "owner_name": owner and owner.name,
    }


def _digest(put: Put) -> bytes:
    return hashlib.blake2b(put.value, digest_size=16).digest()
