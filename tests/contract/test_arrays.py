"""Array literals on a real Postgres: what goes in comes out."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.adapters.postgres import arrays

# What text can hold in Postgres: no NUL, no halves of characters.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
INSTANTS = st.integers(-(10**15), 10**15).map(
    lambda microseconds: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)
COLUMNS: dict[str, tuple[Any, Any]] = {
    "text": (arrays.texts, st.none() | TEXTS),
    "bytea": (arrays.blobs, st.binary()),
    "bigint": (arrays.plain, st.none() | st.integers(-(2**63), 2**63 - 1)),
    "float8": (arrays.plain, st.none() | st.floats(allow_nan=False)),
    "boolean": (arrays.plain, st.none() | st.booleans()),
    "timestamptz": (arrays.instants, st.none() | INSTANTS),
}


@pytest.fixture
def connection(database_url: str) -> Any:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("kind", COLUMNS)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_goes_in_comes_out(connection: Any, kind: str, data: st.DataObject) -> None:
    literal, values = COLUMNS[kind]
    column = data.draw(st.lists(values, max_size=8))
    query = f"SELECT %(column)s::{kind}[]"
    (found,) = connection.execute(query.encode(), {"column": literal(column)}).fetchone()
    assert found == column


def test_an_instant_of_any_zone_is_the_same_instant(connection: Any) -> None:
    instant = datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    literal = arrays.instants([instant])
    (found,) = connection.execute("SELECT %s::timestamptz[]", (literal,)).fetchone()
    assert found == [instant]
