"""The link to the app on real connections: whose word counts for a term."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from sidecar._proto.baton.v1 import callback_pb2, callback_pb2_grpc
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.tokens import Token
from sidecar.config.secret import SecretSource
from sidecar.model.errors import LeaderHandoffFailed
from sidecar.model.term import LossReason, Term

TERM = Term("default", 1, 42)
SECONDS = 20.0


class ToyApp(callback_pb2_grpc.AppCallbackServicer):
    """Says yes to everything, and notes what it lost."""

    def __init__(self) -> None:
        self.port = 0
        self.lost: list[int] = []
        self.ends_with_its_term = False
        self.link_broke = asyncio.Event()
        self.server = grpc.aio.server(options=(("grpc.so_reuseport", 1),))
        callback_pb2_grpc.add_AppCallbackServicer_to_server(self, self.server)

    async def OnBecomeLeader(
        self, request: callback_pb2.OnBecomeLeaderRequest, _: object
    ) -> callback_pb2.OnBecomeLeaderResponse:
        return callback_pb2.OnBecomeLeaderResponse()

    async def OnLoseLeadership(
        self, request: callback_pb2.OnLoseLeadershipRequest, _: object
    ) -> callback_pb2.OnLoseLeadershipResponse:
        self.lost.append(request.context.epoch)
        if self.ends_with_its_term:
            self.ending = asyncio.create_task(self.server.stop(SECONDS))
            await self.link_broke.wait()
        return callback_pb2.OnLoseLeadershipResponse()


@asynccontextmanager
async def _serving(port: int = 0) -> AsyncIterator[ToyApp]:
    app = ToyApp()
    app.port = app.server.add_insecure_port(f"127.0.0.1:{port}")
    await app.server.start()
    try:
        yield app
    finally:
        await app.server.stop(0)


@asynccontextmanager
async def _leading(app: ToyApp) -> AsyncIterator[AppLink]:
    """A link over which the app was told that it leads."""
    address = f"127.0.0.1:{app.port}"
    link = AppLink(address, Token(SecretSource()), cluster="c", runner_id="r")
    await link.wait_connected()
    await link.become_leader(TERM, boottime() + SECONDS, SECONDS)
    try:
        yield link
    finally:
        await link.close()


async def test_the_app_that_was_told_of_a_term_may_give_it_up() -> None:
    async with _serving() as app, _leading(app) as link:
        await link.lose_leadership(TERM, LossReason.RESIGNED, SECONDS)
        assert app.lost == [TERM.epoch]


async def test_an_app_that_ends_with_its_answer_has_given_it() -> None:
    """G8: its server takes leave before the answer is out; nobody else can have answered."""
    async with _serving() as app, _leading(app) as link:
        app.ends_with_its_term = True
        broken = asyncio.create_task(link.wait_disconnected())  # as the watch does
        broken.add_done_callback(lambda _: app.link_broke.set())
        await link.lose_leadership(TERM, LossReason.RESIGNED, SECONDS)
        assert broken.done()
        assert app.lost == [TERM.epoch]


async def test_another_process_does_not_speak_for_it() -> None:
    """G1: it listens where the old one did, which lives on and trusts its term."""
    async with _serving() as old, _leading(old) as link, _serving(old.port) as new:
        broken = asyncio.create_task(link.wait_disconnected())  # as the watch does
        await old.server.stop(0)
        async with asyncio.timeout(SECONDS):
            await broken
            await link.wait_connected()
        with pytest.raises(LeaderHandoffFailed, match="another process may have answered"):
            await link.lose_leadership(TERM, LossReason.APP_UNHEALTHY, SECONDS)
        assert new.lost == [TERM.epoch]  # it was told all the same


async def test_what_is_not_about_a_term_told_of_counts_from_whoever_says_it() -> None:
    """A fresh connection begins with the end of all terms; a new one is told of on it."""
    async with _serving() as old, _leading(old) as link, _serving(old.port) as new:
        broken = asyncio.create_task(link.wait_disconnected())
        await old.server.stop(0)
        async with asyncio.timeout(SECONDS):
            await broken
            await link.wait_connected()
        await link.lose_leadership(Term("default", 0, 0), LossReason.LEASE_LOST, SECONDS)
        later = Term("default", 1, 43)
        await link.become_leader(later, boottime() + SECONDS, SECONDS)
        await link.lose_leadership(later, LossReason.RESIGNED, SECONDS)
        assert new.lost == [0, 43]
