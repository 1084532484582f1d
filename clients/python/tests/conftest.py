"""An app and a fake sidecar beside it, over real gRPC, fresh for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from baton import Baton
from baton.testing import FakeSidecar


@pytest.fixture
def app() -> Baton:
    """An app without handlers: a test registers its own before anything is called."""
    return Baton()


@pytest.fixture
async def sidecar(app: Baton) -> AsyncIterator[FakeSidecar]:
    """The fake beside `app`, leading nothing yet."""
    async with FakeSidecar.beside(app, groups=("default", "reports")) as fake:
        yield fake
