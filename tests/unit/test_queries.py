"""The SQL files: read once, and short enough for psycopg to parse each of them only once."""

from pathlib import Path

import pytest
from psycopg import _queries as psycopg_queries

import sidecar.adapters.postgres
from sidecar.adapters.postgres.queries import Queries

FOLDER = Path(sidecar.adapters.postgres.__file__).parent / "queries"
NAMES = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.sql")
)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_is_parsed_once(name: str) -> None:
    queries = Queries("baton")
    assert len(queries[name]) <= psycopg_queries.MAX_CACHED_STATEMENT_LENGTH
    assert queries[name] is queries[name]


def test_the_schema_is_put_in_quoted() -> None:
    text = Queries('my "own"')["runs/claim"]
    assert '"my ""own""".run' in text
    assert " baton." not in text


def test_no_query_is_read_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: a process that has no descriptor left for a file still answers as it should."""
    queries = Queries("baton")

    def refuse(*_: object, **__: object) -> str:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert all(queries[name] for name in NAMES)
