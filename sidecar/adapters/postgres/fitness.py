"""Checks that a database can be used, without changing anything: `baton check --connect`."""

from sidecar.adapters.postgres.membership import refuse_missing_rights
from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.session import Connection, connect, discard, fetch
from sidecar.model.errors import ReadOnlyServer, StoreRefused

_SECONDS = 5.0
_FACTS = """
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
       to_regclass(%(meta)s) IS NOT NULL AS has_tables,
       to_regnamespace(%(schema)s) IS NOT NULL AS has_schema,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       current_user AS role
"""


async def examine(url: str, schema: str) -> None:
    """Raise unless this database has the tables, or the role may create them."""
    connection = await connect(lambda: url, purpose="check", seconds=_SECONDS)
    try:
        await _examine(connection, Queries(schema))
    finally:
        await discard(connection)


async def _examine(connection: Connection, queries: Queries) -> None:
    parameters = {"meta": queries.qualified("baton.meta"), "schema": f'"{queries.schema}"'}
    (facts,) = await fetch(connection, _FACTS, parameters, _SECONDS)
    if facts["read_only"]:
        raise ReadOnlyServer(
            "leads to a read-only server; point it at the primary, with"
            " default_transaction_read_only off for this database and role"
        )
    if facts["has_tables"]:
        rows = await fetch(connection, queries["cluster/missing_rights"], None, _SECONDS)
        refuse_missing_rights(rows)
    elif not (facts["has_schema"] or facts["may_create"]):
        raise StoreRefused(
            f"the role {facts['role']} may not create the schema {queries.schema}: run 'baton"
            " migrate' as its owner, see docs/security.md"
        )
