"""The SQL files: read once, and short enough for psycopg to parse each of them only once."""

import re
from pathlib import Path

import pytest
from psycopg import _queries as psycopg_queries

import sidecar.adapters.postgres
from sidecar.adapters.postgres.queries import Queries

FOLDER = Path(sidecar.adapters.postgres.__file__).parent / "queries"
SHARED = FOLDER / "shared"
FILES = {
    path.relative_to(FOLDER).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in FOLDER.rglob("*.sql")
    if path.parent != SHARED
}
NAMES = sorted(FILES)


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


def test_every_include_is_resolved_and_every_shared_file_is_used() -> None:
    texts = [*FILES.values(), *(path.read_text(encoding="utf-8") for path in SHARED.glob("*.sql"))]
    included = {name for text in texts for name in re.findall("-- include: (.*)", text)}
    assert included == {path.stem for path in SHARED.glob("*.sql")}
    queries = Queries("baton")
    assert not any("include:" in queries[name] for name in NAMES)


def test_a_shared_rule_is_put_in_without_its_comments() -> None:
    text = Queries("mine")["runs/heartbeat"]
    assert "run.attempt = ref.attempt AND run.epoch = %(epoch)s AND run.state = 'running'" in text
    assert 'FROM "mine".term' in text
    assert "--" not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_takes_its_fence_from_the_shared_rule(name: str) -> None:
    """G3: which term is the current one, and which attempt is live, is written in one place."""
    own = re.sub(r"\s+", " ", FILES[name])
    assert not re.search(r"FROM baton\.term\b.{0,200}FOR SHARE", own)
    assert not re.search(r"attempt = (%\(attempt\)s|\w+\.attempt)(?!\w)", own)
