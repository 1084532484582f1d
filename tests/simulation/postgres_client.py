"""The sidecar's ends of the modelled Postgres: a connection, and the lock session on one.

`ModelLock` fits the port `sidecar.election.elector.LockSession` and behaves as `LeaderLock` does:
one round trip per statement, an error at once after `hang_up`, a deadline of its own on everything.
"""

import asyncio
from typing import Any

from sidecar.model.election_types import Done, Release, Result, Statement, Timers
from sidecar.model.errors import AnswerLost, SidecarError, StoreUnavailable
from tests.simulation.loop import Process
from tests.simulation.postgres_model import (
    MarkClean,
    Notify,
    Request,
    Server,
    Session,
    Unlock,
)
from tests.simulation.world import Link, Way


class Connection:
    """One connection of a process to the server."""

    def __init__(
        self, process: Process, server: Server, link: Link, *, pooled: bool = False
    ) -> None:
        self._pooled = pooled
        self.runner_id = process.name
        self.broken = False
        self._process = process
        self._server = server
        self._out = link.wire(Way.OUT)
        self._back = link.wire(Way.BACK)
        self._link = link
        self._session: Session | None = None
        self._waiting: asyncio.Future[Any] | None = None

    @property
    def opened(self) -> bool:
        return self._session is not None

    async def open(self, idle_seconds_max: float | None, seconds: float) -> None:
        if self._link.refuses:
            raise StoreUnavailable("connection refused")
        await self._round_trip(self._accept, idle_seconds_max, seconds=seconds)

    async def ask(self, request: Request, seconds: float) -> Any:
        if self.broken or self._session is None:
            raise StoreUnavailable("the connection is closed")
        return await self._round_trip(self._server.receive, self._session, request, seconds=seconds)

    async def _round_trip(self, act: Any, *arguments: Any, seconds: float) -> Any:
        self._waiting = asyncio.get_running_loop().create_future()
        self._out.send(act, *arguments)
        try:
            async with asyncio.timeout(seconds):
                result = await self._waiting
        except TimeoutError:
            self.hang_up()
            raise AnswerLost(f"no answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self.hang_up()
            raise
        finally:
            self._waiting = None
        return result

    def stand_still(self, seconds: float) -> None:
        self._out.stand_still(seconds)

    def hang_up(self) -> None:
        """Shut the socket down: the server hears of it if the network lets it."""
        if not self.broken:
            self._break("hung up")
            self._out.send(self._left)

    def cut(self, *, server_notices: bool) -> None:
        """The connection is torn: the client sees it at once, the server perhaps not."""
        if not self.broken:
            self._break("connection reset")
            if server_notices:
                self._left()
            else:
                self.vanish()

    # ── called by the server ────────────────────────────────────────────────────────────────────

    def answered(self, result: Any) -> None:
        loss = self._link.answer_loss
        if self._pooled and loss and self._server.world.chance(loss):
            self.cut(server_notices=True)
            return
        self._back.send(self._got, result)

    def reset(self) -> None:
        self._back.send(self._break, "connection reset by the server")

    def vanish(self) -> None:
        self._out.close()
        self._back.close()

    # ── arrivals ────────────────────────────────────────────────────────────────────────────────

    def _accept(self, idle_seconds_max: float | None) -> None:
        if self._server.frozen:  # The listening socket takes it; nobody answers yet.
            self._server.world.after(0.05, self._accept, idle_seconds_max)
            return
        try:
            self._session = self._server.connect(self, idle_seconds_max)
        except StoreUnavailable as error:
            self.answered(error)
        else:
            self.answered(True)

    def _left(self) -> None:
        self._out.close()
        if self._session:
            self._server.client_left(self._session)

    def _got(self, result: Any) -> None:
        if self._waiting and not self._waiting.done():
            if isinstance(result, SidecarError):
                self._waiting.set_exception(result)
            else:
                self._waiting.set_result(result)

    def _break(self, why: str) -> None:
        self.broken = True
        self._back.close()
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(AnswerLost(why))


class ModelLock:
    """The lock session of one process."""

    def __init__(self, process: Process, server: Server, link: Link, timers: Timers) -> None:
        self.connection: Connection | None = None
        self._process = process
        self._server = server
        self._link = link
        self._timers = timers

    async def open(self) -> None:
        await self.close()
        connection = Connection(self._process, self._server, self._link)
        # From the start, so that a cut or a crash reaches it while it is being opened too.
        self.connection = connection
        await connection.open(self._timers.server_lease, self._timers.lease)

    async def execute(self, statement: Statement) -> Result:
        detail = self._server.world.detail
        detail(self._process.name, statement)
        try:
            result = await self._execute(statement)
        except SidecarError as error:
            detail(self._process.name, repr(error))
            raise
        detail(self._process.name, result)
        return result

    async def _execute(self, statement: Statement) -> Result:
        if self._process.dead or self.connection is None:
            raise StoreUnavailable("the lock session is closed")
        seconds, ask = self._timers.lease + 1, self.connection.ask
        if not isinstance(statement, Release):
            result: Result = await ask(statement, seconds)
            return result
        if statement.clean:
            await ask(MarkClean(statement.group_id, statement.epoch), seconds)
        await ask(Unlock(statement.group_id), seconds)
        await ask(Notify(statement.group_id), seconds)
        return Done()

    def hang_up(self) -> None:
        if self.connection and not self._process.dead:
            self.connection.hang_up()

    async def close(self) -> None:
        self.hang_up()
        self.connection = None
