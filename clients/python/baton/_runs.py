"""Runs: reading and steering them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from baton._connection import Connection
from baton._paging import pages
from baton.v1 import runs_pb2 as pb
from baton.v1.runs_pb2_grpc import RunsStub


class Runs:
    """The runs of the cluster; works on any pod."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, run_id: int) -> pb.Run:
        """One run, with its history and result."""
        request = pb.RunsGetRequest(run_id=run_id)
        return (await self._connection.call(self._stub.Get, request)).run

    async def list(
        self,
        name: str = "",
        *,
        outcome: pb.Outcome = pb.OUTCOME_UNSPECIFIED,
        state: pb.RunState = pb.RUN_STATE_UNSPECIFIED,
    ) -> AsyncIterator[pb.Run]:
        """Runs, newest first, without history and result."""
        request = pb.RunsListRequest(name=name, outcome=outcome, state=state)
        async for page in pages(self._connection, self._stub.List, request):
            for run in page.runs:
                yield run

    async def cancel(self, run_id: int, note: str = "") -> pb.Run:
        """Asks for a run to be ended."""
        request = pb.RunsCancelRequest(run_id=run_id, note=note)
        response = await self._connection.call(self._stub.Cancel, request, repeatable=False)
        return response.run

    async def retry(self, run_id: int) -> pb.Run:
        """Gives a failed run a new life."""
        request = pb.RunsRetryRequest(run_id=run_id)
        response = await self._connection.call(self._stub.Retry, request, repeatable=False)
        return response.run

    @property
    def _stub(self) -> RunsStub:
        return self._connection.stub(RunsStub)
