"""The sidecar's ends of the modelled tables: what the ports of the leader's work fit.

Each call is one request on a connection of the pool, with the errors of `Database`:
StoreUnavailable when it was surely not executed, AnswerLost when nobody knows.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

from sidecar.model.errors import AnswerLost, StoreUnavailable
from sidecar.model.health import VitalsReading
from sidecar.model.run import Checkpoint, Run, RunRef
from sidecar.model.run_records import (
    Cancellation,
    Claim,
    Completion,
    Contender,
    Recorded,
    Redelivered,
    Step,
    StoredStep,
)
from sidecar.model.schedule import SkipReason
from sidecar.model.stored_schedule import ClaimedTicks, DueTicks, StoredSchedule
from sidecar.model.term import Term
from tests.simulation.loop import Process
from tests.simulation.postgres_client import Connection
from tests.simulation.postgres_model import Call, Server
from tests.simulation.run_statements import RunStatements
from tests.simulation.schedule_statements import ScheduleStatements
from tests.simulation.tables import RunRow
from tests.simulation.world import Link

T = TypeVar("T")
POOL_MAX = 4


class ModelPool:
    """Connections that are kept; at most so many statements at once."""

    def __init__(self, process: Process, server: Server, link: Link, seconds: float) -> None:
        self.world = server.world
        self._process = process
        self._server = server
        self._link = link
        self._seconds = seconds
        self._slots = asyncio.Semaphore(POOL_MAX)
        self._idle: list[Connection] = []
        self._busy: list[Connection] = []

    async def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Execute `act` on the server, when the statement is executed there."""
        if self._process.dead:
            raise StoreUnavailable("dead")
        connection = await self._taken()
        try:
            name = getattr(act, "__name__", str(act))
            self.world.detail(self._process.name, name)
            self._stutter(connection, name)
            result: T = await connection.ask(Call(act, arguments), self._seconds)
            return result
        finally:
            self._give_back(connection)

    def _stutter(self, connection: Connection, statement: str) -> None:
        stutter = self._link.stutter
        if stutter and statement in stutter.statements and self.world.chance(stutter.probability):
            connection.stand_still(self.world.between(stutter.seconds))

    async def _taken(self) -> Connection:
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"all {POOL_MAX} connections busy") from None
        connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = Connection(self._process, self._server, self._link, pooled=True)
        self._busy.append(connection)
        if not connection.opened:
            try:
                await connection.open(None, self._seconds)
            except AnswerLost as error:
                self._give_back(connection)
                raise StoreUnavailable(str(error)) from None
            except BaseException:
                self._give_back(connection)
                raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        with suppress(ValueError):
            self._busy.remove(connection)
        if connection.opened and not connection.broken:
            self._idle.append(connection)
        elif not self._process.dead:
            connection.hang_up()
        self._slots.release()

    def cut(self, *, server_notices: bool) -> None:
        """All its connections are torn."""
        connections = [*self._idle, *self._busy]
        self._idle.clear()
        for connection in connections:
            connection.cut(server_notices=server_notices)


class ModelRuns:
    """Fits the ports of the dispatcher, the pipeline, the singletons and the Runs service."""

    def __init__(self, pool: ModelPool, statements: RunStatements) -> None:
        self._call = pool.call
        self._do = statements

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered:
        return await self._call(self._do.requeue, term, known)

    async def expire(self, term: Term) -> list[Recorded]:
        return await self._call(self._do.expire, term)

    async def claim(self, term: Term, *, limit: int, admitted: Sequence[int] = ()) -> Claim:
        return await self._call(self._do.claim, term, limit, admitted)

    async def contended(self, term: Term) -> list[Contender]:
        return await self._call(self._do.contended, term)

    async def skip(
        self, term: Term, run_ids: Sequence[int], reason: SkipReason, cause: str
    ) -> list[Recorded]:
        return await self._call(self._do.skip, term, run_ids, reason)

    async def ask_replacement(self, term: Term, run_ids: Sequence[int]) -> None:
        await self._call(self._do.ask_replacement, term, run_ids)

    async def cancellations(self, term: Term) -> list[Cancellation]:
        return await self._call(self._do.cancellations, term)

    async def prune(self, term: Term, *, keep_seconds: float, limit: int) -> int:
        """History is short here: nothing is old enough."""
        return 0

    async def complete(
        self, term: Term, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        return await self._call(self._do.complete, term, completions)

    async def find_lost_completions(
        self, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        return await self._call(self._do.find_lost_completions, completions)

    async def still_running(self, completions: Sequence[Completion]) -> Collection[int]:
        """No statement of the model leaves a lock behind: what was not written came too late."""
        return ()

    async def start_singleton(self, term: Term, name: str) -> Run:
        return await self._call(self._do.start_singleton, term, name)

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        return await self._call(self._do.checkpoints, run_ids)

    def initial(self, run: Run) -> bytes | None:
        return None

    async def load(self, run: Run) -> bytes:
        return await self._call(self._do.state, run.state_key)

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep:
        return await self._call(self._do.checkpoint, run, step, value)

    async def checkpoint_all(self, steps: Sequence[Step]) -> list[StoredStep | None]:
        return await self._call(self._do.checkpoint_all, steps)

    async def get(self, run_id: int) -> RunRow:
        return await self._call(self._do.get, run_id)

    async def cancel(self, run_id: int, cause: str) -> bool:
        return await self._call(self._do.cancel, run_id)

    async def retry(self, run_id: int) -> bool:
        return await self._call(self._do.retry, run_id)


class ModelSchedules:
    """Fits scheduling's TickStore and ScheduleStore, and health's VitalsStore."""

    def __init__(self, pool: ModelPool, statements: ScheduleStatements) -> None:
        self.vitals_read_at = float("-inf")
        self._pool = pool
        self._call = pool.call
        self._do = statements

    async def upcoming(
        self, term: Term, *, horizon_seconds: float, limit: int
    ) -> tuple[datetime, list[StoredSchedule]]:
        return await self._call(self._do.upcoming, term, horizon_seconds, limit)

    async def claim_ticks(self, term: Term, due: Sequence[DueTicks]) -> ClaimedTicks:
        return await self._call(self._do.claim_ticks, term, due)

    async def get(self, name: str) -> StoredSchedule:
        return await self._call(self._do.get, name)

    async def change(self, name: str, decide: Callable[[StoredSchedule, datetime], Any]) -> None:
        await self._call(self._do.change, name, decide)

    async def trigger(self, name: str, *, payload: bytes | None, request_id: str | None) -> int:
        return await self._call(self._do.trigger, name)

    async def backfill(
        self, name: str, decide: Callable[[StoredSchedule, datetime], Sequence[datetime]]
    ) -> list[int]:
        return await self._call(self._do.backfill, name, decide)

    async def read(self, groups: Sequence[str], limit: int = 0) -> VitalsReading:
        reading = await self._call(self._do.vitals, groups)
        self.vitals_read_at = self._pool.world.now
        return reading

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        return await self._call(self._do.beat, term, older_than_seconds)


class Subscription:
    """Hints of one topic."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def details(self) -> list[str]:
        return []

    async def wait(self, timeout: float | None = None) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.event.wait()
        came = self.event.is_set()
        self.event.clear()
        return came


class ModelHints:
    """The hints of one process; `notify` tells everybody else through the cluster."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._subscriptions: dict[str, list[Subscription]] = {}

    def notify(self, topic: str, detail: str = "") -> None:
        self._tell(topic)

    def subscribe(self, topic: str) -> Subscription:
        subscription = Subscription()
        self._subscriptions.setdefault(topic, []).append(subscription)
        return subscription

    def unsubscribe(self, topic: str, subscription: Any) -> None:
        self._subscriptions[topic].remove(subscription)

    def arrived(self, topic: str) -> None:
        for subscription in self._subscriptions.get(topic, []):
            subscription.event.set()
