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


@pytest.fixture(params=[True, False], ids=["attached", "called"])
async def sidecar(app: Baton, request: pytest.FixtureRequest) -> AsyncIterator[FakeSidecar]:
    """The fake beside `app`, leading nothing yet; the app attaches, or is called."""
    groups = ("default", "reports")
    async with FakeSidecar.beside(app, attach=request.param, groups=groups) as fake:
        yield fake
