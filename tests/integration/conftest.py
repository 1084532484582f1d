"""The tests of this folder begin with all tables; migrating is the subject of tests/migration."""

from __future__ import annotations

import pytest


@pytest.fixture
def database_url(migrated_url: str) -> str:
    """A fresh database with all tables and no rows."""
    return migrated_url
