"""Deferreds in Postgres. Every write is one statement, hence one transaction, within its deadline.

Guarantees: one deferred per run and name, even if several callers create it at once; it is created
for a run only while that run is live under the current term (G3); the first completion of a
deferred wins; what an earlier request created or completed is acknowledged only once it is
replicated (G7). No statement and no parameter holds a token, so the server's log cannot either.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from secrets import token_bytes
from typing import Any

from sidecar.adapters.postgres.database import Database, Row
from sidecar.model.deferred import SALT_BYTES, Deferred, DeferredState, Ending, id_of, token_of
from sidecar.model.errors import DamagedRow, Fenced, StoreRefused
from sidecar.model.identity import Identity
from sidecar.model.run import RunRef

_STATES = frozenset(DeferredState)
_COLUMNS = tuple(field.name for field in fields(Deferred))


class PostgresDeferreds:
    """The deferreds of one cluster."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity
        self._key = b""

    async def create(self, name: str, run: RunRef | None, ttl_seconds: float | None) -> str:
        """The token of the run's deferred with this name, which is created if missing."""
        key = await self._installation_key()
        salt = token_bytes(SALT_BYTES)
        rows = await self._fetch(
            "create",
            id=id_of(token_of(key, salt)),
            salt=salt,
            name=name,
            run_id=run and run.run_id,
            attempt=run and run.attempt,
            epoch=run and run.epoch,
            ttl_seconds=ttl_seconds,
        )
        if run and not rows:
            raise Fenced(
                f"attempt {run.attempt} of run {run.run_id} (epoch {run.epoch}) is not live"
            )
        return token_of(key, rows[0]["salt"])

    async def get(self, ids: Sequence[bytes]) -> list[Deferred | DamagedRow | None]:
        """The deferred of each id, in the order of `ids`."""
        if len(ids) == 1:
            rows = await self._fetch("get_one", id=ids[0])
        else:
            rows = await self._fetch("get", ids=list(ids))
        if due := [row["id"] for row in rows if row["due"]]:
            rows = [row for row in rows if not row["due"]]
            rows += await self._fetch("read", ids=due, ended_only=False, limit=len(due))
        found = {row["id"]: _deferred_or_damaged(row) for row in rows}
        return [found.get(id_) for id_ in ids]

    async def ended(self, ids: Sequence[bytes], limit: int) -> list[Deferred]:
        """Those of `ids` that are no longer pending, at most `limit`."""
        rows = await self._fetch("read", ids=list(ids), ended_only=True, limit=limit)
        return [deferred_of(row) for row in rows if row["state"] in _STATES]

    async def end(self, id_: bytes, ending: Ending) -> Deferred | None:
        """The deferred, ended by this call, an earlier one or its expiry. None: unknown id."""
        rows = await self._fetch(
            "end", id=id_, state=ending.state.value, value=ending.value, error=ending.error
        )
        if not rows:  # ended meanwhile: only a new statement sees how
            rows = await self._fetch("get_replicated", id=id_)
        return deferred_of(rows[0]) if rows else None

    async def prune(self, older_than_seconds: float, limit: int) -> int:
        rows = await self._fetch("prune", older_than_seconds=older_than_seconds, limit=limit)
        return int(rows[0]["pruned"])

    async def _installation_key(self) -> bytes:
        if not self._key:
            row = await self._database.fetch_one("deferreds/key")
            if row is None:
                raise StoreRefused("the table deferred_key is empty: restore its row")
            self._key = bytes(row["key"])
        return self._key

    async def _fetch(self, query: str, **parameters: Any) -> list[Row]:
        identity = await self._identity()
        parameters["cluster_id"] = identity.cluster_id
        return await self._database.fetch(f"deferreds/{query}", parameters)


def _deferred_or_damaged(row: Row) -> Deferred | DamagedRow:
    try:
        return deferred_of(row)
    except DamagedRow as error:
        return error


def deferred_of(row: Row) -> Deferred:
    damage = f"deferred {row['name']!r} is damaged in the database:"
    if row["run_id"] < 0:
        raise DamagedRow(f"{damage} its run_id is negative")
    columns = {name: row[name] for name in _COLUMNS}
    try:
        return Deferred(**columns | {"state": DeferredState(row["state"])})
    except ValueError as error:
        raise DamagedRow(f"{damage} {error}") from None
