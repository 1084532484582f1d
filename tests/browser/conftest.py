"""A real Chromium for these tests; where there is none, they are skipped with one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.chromium import browser, missing


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if problem := missing():
        pytest.skip(problem)
    with browser() as running:
        yield running
