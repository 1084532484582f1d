"""Databases that do not fit: refused by `check --connect`, `migrate` and the start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from sidecar.adapters.postgres.session import unfit
from tests.conftest import NewDatabase
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Setup

ROLE = "baton_without_rights"


def _latin1(new_database: NewDatabase) -> str:
    return new_database("template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")


def _sql_ascii(new_database: NewDatabase) -> str:
    return new_database("template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")


def _read_only(new_database: NewDatabase) -> str:
    url = new_database()
    _execute(url, 'ALTER DATABASE "{name}" SET default_transaction_read_only = on', url)
    return url


def _without_rights(new_database: NewDatabase) -> str:
    """May connect, and no more."""
    url = new_database()
    _execute(url, f"DROP ROLE IF EXISTS {ROLE}", url)
    _execute(url, f"CREATE ROLE {ROLE} LOGIN PASSWORD 'pw'", url)
    return _as_role(url)


def _as_role(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{ROLE}:pw@{parts.hostname}:{parts.port}").geturl()


def _execute(url: str, statement: str, database: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        name = urlsplit(database).path.lstrip("/")
        connection.execute(statement.format(name=name).encode())


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_latin1, "the database has the encoding LATIN1, Baton needs UTF8: make another one"),
        (_sql_ascii, "the database has the encoding SQL_ASCII, Baton needs UTF8"),
        (_read_only, "default_transaction_read_only off"),
        (_without_rights, "docs/security.md"),
    ],
)
def test_it_is_refused_everywhere_with_what_to_do(
    tmp_path: Path,
    new_database: NewDatabase,
    make: Callable[[NewDatabase], str],
    expected: str,
) -> None:
    """G11: and the sidecar stays not ready, though a lost Postgres alone would not do that."""
    cluster = Cluster(tmp_path / "lab", 1, Setup(make(new_database)))
    (replica,) = cluster.replicas
    with cluster:
        config = str(replica.config_file)
        for command in (["check", "--connect"], ["migrate"]):
            code, text = _baton(*command, "--config", config)
            assert code == (2 if "check" in command else 1), text
            assert expected in text
            assert len(text.splitlines()) <= 2, text
        wait_until(lambda: expected in replica.http("/readyz")[1], 30, replica.describe)
        assert replica.http("/readyz")[0] == 503
        assert any(expected in reason for reason in _reasons(replica.http("/health")[1]))
        events = ("postgres_refused", "migration_failed")
        told = [line["problem"] for line in replica.log() if line["event"] in events]
        assert any(expected in problem for problem in told), told
        assert replica.sidecar.running


def _reasons(body: str) -> list[str]:
    return list(json.loads(body)["reasons"])


def _baton(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "sidecar", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_table_that_the_role_may_not_write_is_named(
    tmp_path: Path, new_database: NewDatabase
) -> None:
    """Before, the start went well, and the first statement that needed it failed."""
    url = new_database()
    role_url = _without_rights(lambda: url)
    cluster = Cluster(
        tmp_path / "lab", 1, Setup(role_url, config={"postgres": {"migrate": "never"}})
    )
    (replica,) = cluster.replicas
    owner = tmp_path / "owner.yaml"
    owner.write_text(f"cluster: lab\npostgres: {{url: '{url}'}}\n")
    assert "applied" in baton("migrate", "--config", str(owner))
    _execute(url, f"GRANT USAGE ON SCHEMA baton TO {ROLE}", url)
    grant = f"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO {ROLE}"
    _execute(url, f"GRANT {grant}", url)
    _execute(url, f"REVOKE UPDATE ON baton.run FROM {ROLE}", url)
    expected = f"the role {ROLE} may not read and write the tables run: grant it what"
    with cluster:
        code, text = _baton("check", "--connect", "--config", str(replica.config_file))
        assert (code, expected in text) == (2, True), text
        wait_until(lambda: expected in replica.http("/readyz")[1], 30, replica.describe)
        _execute(url, f"GRANT {grant}", url)
        cluster.wait_for_leader()
        assert _baton("check", "--connect", "--config", str(replica.config_file)) == (0, "")


def test_versions_before_14_are_refused() -> None:
    assert "the server is Postgres 13.4, Baton needs 14 or newer" in unfit(130004, "UTF8")
    assert unfit(140000, "UTF8") == ""
