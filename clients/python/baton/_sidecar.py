"""Everything the sidecar offers, over one connection."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from baton._connection import Connection
from baton._deferreds import Deferreds
from baton._ids import Ids
from baton._jobs import Jobs
from baton._leadership import Leadership
from baton._runs import Runs
from baton._schedules import Schedules
from baton._singletons import Singletons
from baton._state import State
from baton._tokens import TokenFile

API_ADDRESS = "127.0.0.1:9401"


class Sidecar(Connection):
    """The sidecar's services; usable once connected, from any pod, leader or not."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State(self)
        self.schedules = Schedules(self)
        self.singletons = Singletons(self)
        self.runs = Runs(self)
        self.leadership = Leadership(self)
        self.deferreds = Deferreds(self)
        self.jobs = Jobs(self, {})
        self._ids = Ids(self)

    async def next_id(self) -> int:
        """A new id, unique across the cluster and above those this process was given before."""
        return await self._ids.next()

    @asynccontextmanager
    async def connected(
        self, sidecar: str | None = None, *, api_token_file: str | Path | None = None
    ) -> AsyncIterator[Self]:
        """A connection for the block, as in a script that only calls the sidecar.

        Defaults: BATON_API_ADDRESS, else 127.0.0.1:9401; BATON_API_TOKEN_FILE, else no token.
        """
        token = token_file(api_token_file, "BATON_API_TOKEN_FILE")
        self.connect(sidecar or os.environ.get("BATON_API_ADDRESS") or API_ADDRESS, token)
        self._ids = Ids(self)  # a block of another sidecar, or a lock of another loop, is no use
        try:
            yield self
        finally:
            await self.close()


def token_file(path: str | Path | None, variable: str) -> TokenFile | None:
    """The token file given, else the one named by the environment, else none."""
    path = path or os.environ.get(variable)
    return TokenFile(path) if path else None
