"""Applies the migrations: numbered files, forward only, one runner at a time.

Guarantees:
- each file is one transaction, recorded with it: no crash leaves the schema between two versions;
- `lock_timeout` of 500 ms and retries: no ping and no claim ever queues behind a migration;
- a binary that finds tables too old or too new for it raises `IncompatibleSchema` and changes
  nothing.

A file may begin with `-- oldest-reader: N`: binaries that know only versions below N cannot work
with the tables any more. Without it the change is an expansion that older binaries may ignore.
"""

import asyncio
import re
from dataclasses import dataclass
from importlib.resources import files
from time import monotonic
from typing import Any

import psycopg
import structlog

from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.session import Connection, bounded, connect, discard, fetch
from sidecar.model.errors import IncompatibleSchema, StoreUnavailable

log = structlog.get_logger()

_LOCK_NUMBER = 0x6261746F  # "bato": one migration at a time per database
_RETRY_SECONDS = 0.5
_STATEMENT_SECONDS = 60.0

_CREATE_META = """
CREATE TABLE IF NOT EXISTS baton.meta (
    one              boolean PRIMARY KEY DEFAULT true CHECK (one),
    schema_version   integer NOT NULL DEFAULT 0,
    oldest_reader    integer NOT NULL DEFAULT 0,
    installation_id  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO baton.meta DEFAULT VALUES ON CONFLICT DO NOTHING
"""
_READ_META = "SELECT schema_version, oldest_reader FROM baton.meta"
_WRITE_META = "UPDATE baton.meta SET schema_version = %(version)s, oldest_reader = %(oldest)s"


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    text: str
    oldest_reader: int | None


def migrations() -> list[Migration]:
    """All migrations that this binary knows, in order."""
    folder = files("sidecar.adapters.postgres") / "migrations"
    found = [_parsed(entry.name, entry.read_text()) for entry in folder.iterdir()]
    return sorted((m for m in found if m), key=lambda m: m.version)


def newest_version() -> int:
    return migrations()[-1].version


def check_compatible(*, schema_version: int, oldest_reader: int) -> None:
    """Raise IncompatibleSchema unless this binary can work with these tables."""
    mine = newest_version()
    if schema_version < mine:
        raise IncompatibleSchema(
            f"the schema is at version {schema_version}, this release needs {mine}:"
            " run 'baton migrate'"
        )
    if oldest_reader > mine:
        raise IncompatibleSchema(
            f"the schema (version {schema_version}) needs a release that knows version"
            f" {oldest_reader}; this one knows {mine}: use a newer release"
        )


async def migrate(url: str, schema: str, *, seconds: float = 120.0) -> list[str]:
    """Apply the missing migrations; returns their names. Safe to run from many pods at once.

    Raises WrongServer behind a pooler, where a session's advisory lock protects nothing.
    """
    connection = await connect(lambda: url, purpose="migrate", settings={"lock_timeout": "500ms"})
    try:
        return await _migrate(connection, Queries(schema), monotonic() + seconds)
    finally:
        await discard(connection)


async def _migrate(connection: Connection, queries: Queries, deadline: float) -> list[str]:
    await _wait_for_turn(connection, deadline)
    applied: list[str] = []
    if not await _has_meta(connection, queries):
        # Checked first: even IF NOT EXISTS needs the right to create schemas, which the owner of
        # this schema may not have.
        if not await _has_schema(connection, queries):
            await _execute(connection, f'CREATE SCHEMA IF NOT EXISTS "{queries.schema}"')
        await _execute(connection, queries.qualified(_CREATE_META))
    rows = await fetch(connection, queries.qualified(_READ_META), None, _STATEMENT_SECONDS)
    if not rows:
        raise IncompatibleSchema(
            f"the table {queries.schema}.meta is empty, and nobody else knows the version of the"
            " tables: restore its row"
        )
    meta, oldest = rows[0], rows[0]["oldest_reader"]
    if oldest > newest_version():
        check_compatible(schema_version=meta["schema_version"], oldest_reader=oldest)
    for migration in migrations():
        if migration.version <= meta["schema_version"]:
            continue
        oldest = max(oldest, migration.oldest_reader or 0)
        await _apply(connection, queries, migration, oldest, deadline)
        applied.append(migration.name)
    return applied


async def _wait_for_turn(connection: Connection, deadline: float) -> None:
    """Try the lock in a loop: a blocking wait would hold a snapshot on the server."""
    while True:
        rows = await fetch(
            connection,
            f"SELECT pg_try_advisory_lock({_LOCK_NUMBER}) AS mine",
            None,
            _STATEMENT_SECONDS,
        )
        if rows[0]["mine"]:
            return
        if monotonic() > deadline:
            raise StoreUnavailable("another migration has been running for too long")
        await asyncio.sleep(_RETRY_SECONDS)


async def _apply(
    connection: Connection, queries: Queries, migration: Migration, oldest: int, deadline: float
) -> None:
    async def attempt() -> None:
        async with connection.transaction():
            await connection.execute(queries.qualified(migration.text).encode())
            await connection.execute(
                queries.qualified(_WRITE_META), {"version": migration.version, "oldest": oldest}
            )

    while True:
        try:
            return await bounded(connection, attempt(), _STATEMENT_SECONDS)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            if monotonic() > deadline:
                raise StoreUnavailable(f"{migration.name}: a table stayed locked") from None
            log.info("migration_waits_for_lock", migration=migration.name)
            await asyncio.sleep(_RETRY_SECONDS)


async def _has_meta(connection: Connection, queries: Queries) -> bool:
    name = queries.qualified("baton.meta")
    rows = await fetch(connection, "SELECT to_regclass(%(name)s) AS found", {"name": name}, 10.0)
    return rows[0]["found"] is not None


async def _has_schema(connection: Connection, queries: Queries) -> bool:
    found = "SELECT oid FROM pg_namespace WHERE nspname = %(name)s"
    return bool(await fetch(connection, found, {"name": queries.schema}, 10.0))


async def _execute(connection: Connection, text: Any) -> None:
    await fetch(connection, text, None, _STATEMENT_SECONDS)


def _parsed(filename: str, text: str) -> Migration | None:
    match = re.fullmatch(r"(\d{4})_(\w+)\.sql", filename)
    if not match:
        return None
    marker = re.search(r"^-- oldest-reader: (\d+)$", text, re.MULTILINE)
    return Migration(
        version=int(match[1]),
        name=filename.removesuffix(".sql"),
        text=text,
        oldest_reader=int(marker[1]) if marker else None,
    )
