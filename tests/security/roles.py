"""Databases as docs/security.md wants them: tables of an owner, and a role that may only use them.

The SQL is taken from that page: what is proven is what users copy.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from sidecar.adapters.postgres.migrate import migrate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
OWNER, RUNTIME = "baton_owner", "baton_runtime"
_PASSWORD = "least-privilege-of-the-tests"


# Tests that need more than a sidecar does: they take tables away, make some of their own, or change
# the settings of a database. All others pass with the least of roles.
NEED_OWNER = frozenset(
    {
        "test_a_store_that_breaks_in_an_unknown_way_turns_red_and_ends_nothing",
        "test_a_missing_table_is_refused_with_its_name",
        "test_an_answer_waits_for_tables_that_are_refused_for_a_while",
        "test_deferreds_read_at_once_are_told_apart",
        "test_without_tables_it_says_what_to_do",
        "test_the_life_of_a_troubled_pod",
        "test_two_schemas_never_meet",
        "test_a_read_only_server_is_refused",
        "test_tables_without_an_installation_are_told",
        "test_files_that_name_the_groups_in_another_order_do_not_deadlock",
        "test_silence_holds_back_and_heal_delivers",
        "test_a_lost_answer_to_commit",
        "test_lost_bytes_stay_lost",
        "test_instants_are_in_utc_whatever_the_zone_of_the_server",
        "test_odd_defaults_of_a_database_reach_no_statement",
        "test_what_is_pinned_holds",
        "test_nor_do_they_where_a_database_sorts_otherwise",
    }
)


def statements(who: str) -> list[str]:
    """What the page tells this one to do: `an administrator` or `the owner`."""
    (text,) = re.findall(rf"```sql\n-- as {who}[^\n]*\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [each.strip() for each in text.split(";") if each.strip()]


def least_url(administrator_url: str) -> str:
    """Do all that the page says in this database, and give the URL for the sidecars."""
    with psycopg.connect(administrator_url, autocommit=True) as administrator:
        row = administrator.execute("SELECT current_database()").fetchone()
        assert row
        # Nothing comes by being one of the public.
        administrator.execute(f'REVOKE ALL ON DATABASE "{row[0]}" FROM PUBLIC'.encode())
        administrator.execute(b"REVOKE ALL ON SCHEMA public FROM PUBLIC")
        for statement in statements("an administrator"):
            text = statement.replace("DATABASE app", f'DATABASE "{row[0]}"')
            # Roles are the server's, and other databases of these tests have made them already.
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                administrator.execute(text.replace("…", _PASSWORD).encode())
    owner_url = _as(OWNER, administrator_url)
    run_migrations(owner_url)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for statement in statements("the owner"):
            owner.execute(statement.encode())
    return _as(RUNTIME, administrator_url)


def _as(role: str, url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{role}:{_PASSWORD}@{parts.hostname}:{parts.port}").geturl()


def run_migrations(url: str) -> None:
    """In a thread of its own: a test may have a loop running already."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(migrate(url, "baton"))).result()
