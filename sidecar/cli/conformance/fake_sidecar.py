"""An in-memory sidecar for one app under test: the real API, and terms that the suite decides.

Serves Leadership, State, Runs, Deferreds and Ids where the app expects its sidecar. Schedules and
Singletons are missing: they need a configuration, which a suite for any app does not have.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sidecar._proto.baton.v1 import (
    deferreds_pb2_grpc,
    ids_pb2_grpc,
    leadership_pb2_grpc,
    runs_pb2_grpc,
    state_pb2_grpc,
    stream_pb2_grpc,
)
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_server.deferreds import DeferredsService
from sidecar.adapters.grpc_server.ids import IdsService
from sidecar.adapters.grpc_server.leadership import LeadershipService
from sidecar.adapters.grpc_server.runs import RunsService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.state import StateService
from sidecar.adapters.grpc_server.stream import AppStreamService
from sidecar.adapters.tokens import Token
from sidecar.cli.conformance.fake_services import LiveRuns, MemoryDeferreds, MemoryState, OneMachine
from sidecar.config import SecretSource
from sidecar.election.leadership import DEFAULT_GROUP, Leadership
from sidecar.ids import Ids
from sidecar.model.election_types import LeaderView, Timers
from sidecar.model.errors import NotFound
from sidecar.model.process import ProcessHello
from sidecar.model.term import LossReason, Term

RUNNER_ID = "conformance"
_TIMERS = Timers()
_STOP_SECONDS = 0.5


class FakeElection:
    """The leader of the default group, set by the suite."""

    def __init__(self) -> None:
        self.watched = False
        self._term: Term | None = None
        self._last_epoch = 0
        self._trusted_until = 0.0
        self._changed = asyncio.Event()

    def grant(self, term: Term) -> float:
        """This app leads from now on; returns until when it is trusted."""
        self._term, self._last_epoch = term, term.epoch
        self._renew()
        return self._trusted_until

    def end(self) -> None:
        self._term = None
        self._tell()

    async def keep(self) -> None:
        """Renew the trust as the election does, until cancelled."""
        while True:
            await asyncio.sleep(_TIMERS.ping)
            if self._term is not None:
                self._renew()
            else:
                self._tell()

    def view(self, group: str) -> LeaderView:
        leads = self._term is not None
        return LeaderView(
            group=group,
            is_leader=leads,
            runner_id=RUNNER_ID if leads else "",
            host="",
            epoch=self._last_epoch,
            trusted_until=self._trusted_until,
            draining=False,
            drain_deadline=None,
        )

    async def changed(self) -> None:
        self.watched = True
        await self._changed.wait()

    def resign(self, group: str, reason: LossReason) -> None:
        """The suite decides when a term ends; the call of an app changes nothing."""

    async def request_resign(self, group_id: int, epoch: int) -> None:
        raise NotFound("group: there is no other pod")

    def _renew(self) -> None:
        self._trusted_until = boottime() + _TIMERS.lease
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class FakeSidecar:
    """The API at one address; the suite controls `election` and `runs`."""

    def __init__(self, address: str, attached: AttachedProcesses | None = None) -> None:
        """`attached`: the processes that may attach; None: the app serves AppCallback."""
        self.election, self.runs = FakeElection(), LiveRuns()
        self._attached = attached
        self._server = ApiServer(address, Token(SecretSource()))
        self._ids = Ids(OneMachine(), boottime)
        self._add_services()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        await self._server.start()
        renewal = asyncio.create_task(self.election.keep(), name="conformance.trust")
        try:
            yield
        finally:
            renewal.cancel()
            with suppress(asyncio.CancelledError):
                await renewal
            await self._ids.close()
            await self._server.stop(_STOP_SECONDS)

    def _add_services(self) -> None:
        leadership = Leadership(
            self.election,
            self.election,
            lambda: {DEFAULT_GROUP: 1},
            lambda topic, detail: None,
            groups=(DEFAULT_GROUP,),
            host="localhost",
        )
        state = MemoryState(self.runs)
        for register, service, name in (
            (
                leadership_pb2_grpc.add_LeadershipServicer_to_server,
                LeadershipService(leadership),
                "Leadership",
            ),
            (state_pb2_grpc.add_StateServicer_to_server, StateService(state, state), "State"),
            (runs_pb2_grpc.add_RunsServicer_to_server, RunsService(self.runs), "Runs"),
            (
                deferreds_pb2_grpc.add_DeferredsServicer_to_server,
                DeferredsService(MemoryDeferreds(self.runs)),
                "Deferreds",
            ),
            (ids_pb2_grpc.add_IdsServicer_to_server, IdsService(self._ids), "Ids"),
        ):
            self._server.add(register, service, f"baton.v1.{name}")
        if self._attached:
            stream = AppStreamService(self._attached, self.runs, _accept)
            self._server.add(
                stream_pb2_grpc.add_AppStreamServicer_to_server, stream, "baton.v1.AppStream"
            )


async def _accept(hello: ProcessHello) -> None:
    """What the app declares is not applied: the suite decides what runs."""
