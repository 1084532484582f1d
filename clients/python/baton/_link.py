"""The way in which a run reached this process, and on which its steps and heartbeats go back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from baton.v1 import runs_pb2
from baton.v1.runs_pb2_grpc import RunsStub

if TYPE_CHECKING:
    from baton._context import Context
    from baton._sidecar import Sidecar


class Link:
    """For runs that came as a call of the sidecar: what they write are calls to its API."""

    cluster = runner_id = ""  # every call names them itself

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.loop = asyncio.get_running_loop()
        self.draining = asyncio.Event()  # the process is leaving

    def cancelled(self, attempt: Context) -> None:
        """An attempt is being cancelled: the call that it came with ends by itself."""

    async def checkpoint(self, run: runs_pb2.RunRef, step: str, value: bytes) -> None:
        """Stores a step of a run."""
        request = runs_pb2.RunsCheckpointRequest(run=run, step=step, value=value)
        await self.sidecar.call(self.sidecar.stub(RunsStub).Checkpoint, request)

    async def heartbeat(
        self, run: runs_pb2.RunRef, progress: float | None, message: str | None
    ) -> None:
        """Reports that a run is alive."""
        request = runs_pb2.RunsHeartbeatRequest(run=run, progress=progress, message=message)
        await self.sidecar.call(self.sidecar.stub(RunsStub).Heartbeat, request)
