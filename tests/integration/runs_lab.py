"""A cluster without sidecars: the real tables, and the leader's steps driven by a test."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import Subscription
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.callback import Callback, Invocation
from sidecar.config.work import Schedule
from sidecar.dispatch import Dispatcher, Slots, Tools
from sidecar.model.breaker import Breaker
from sidecar.model.identity import Identity
from sidecar.model.run import Answer, Delivery, Succeeded
from sidecar.model.stored_schedule import created
from sidecar.model.term import Tenure, Term
from sidecar.scheduling import Ticker

Row = dict[str, Any]
_WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
# Its next tick is 55 minutes away whatever the time: none comes in the middle of a test.
EVERY_HOUR = Schedule(
    name="hourly",
    every_seconds=3600.0,
    start_at=datetime.now(UTC) - timedelta(days=365, minutes=5),
)


class LocalHints:
    """Hints within one process: what LISTEN and NOTIFY do between several."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, list[Subscription]] = defaultdict(list)

    def notify(self, topic: str, detail: str = "") -> None:
        for subscription in self._subscriptions[topic]:
            subscription.wake(detail)

    def subscribe(self, topic: str) -> Subscription:
        subscription = Subscription()
        self._subscriptions[topic].append(subscription)
        return subscription

    def unsubscribe(self, topic: str, subscription: Subscription) -> None:
        self._subscriptions[topic].remove(subscription)


@dataclass
class FakeApp:
    """The app at the gRPC edge: records every call, answers as `handler` says."""

    handler: Callable[[Invocation], Awaitable[Answer]] | None = None
    calls: list[Invocation] = field(default_factory=list)
    cancelled: list[Invocation] = field(default_factory=list)
    running: int = 0
    running_most: int = 0

    async def execute(self, invocation: Invocation) -> Answer:
        self.calls.append(invocation)
        self.running += 1
        self.running_most = max(self.running_most, self.running)
        try:
            return await self.handler(invocation) if self.handler else Succeeded()
        except asyncio.CancelledError:
            self.cancelled.append(invocation)
            raise
        finally:
            self.running -= 1


class NoStates:
    async def load(self, delivery: Delivery) -> bytes:
        return b""


@dataclass
class Lab:
    url: str
    database: Database
    identity: Identity
    hints: LocalHints = field(default_factory=LocalHints)
    fenced: list[Term] = field(default_factory=list)

    async def who(self) -> Identity:
        return self.identity

    @property
    def runs(self) -> PostgresRuns:
        return PostgresRuns(self.database, self.who)

    @property
    def schedules(self) -> PostgresSchedules:
        return PostgresSchedules(self.database, self.who)

    async def sql(self, text: str, **parameters: Any) -> list[Row]:
        async with self.database.transaction() as transaction:
            return await transaction.run(self.database.queries.qualified(text), parameters)

    async def term(self, group: str = "default") -> Term:
        """A new term: the epoch rises, as at a takeover."""
        group_id = self.identity.groups[group]
        rows = await self.sql(
            """INSERT INTO baton.term (group_id, epoch) VALUES (%(group_id)s, 1)
               ON CONFLICT (group_id) DO UPDATE SET epoch = term.epoch + 1 RETURNING epoch""",
            group_id=group_id,
        )
        return Term(group, group_id, rows[0]["epoch"])

    async def tenure(self, group: str = "default") -> Tenure:
        term = await self.term(group)
        return Tenure(term, trusted_seconds=lambda: 3.0, fenced=lambda: self.fenced.append(term))

    async def add(
        self, definition: Schedule = EVERY_HOUR, *, behind: timedelta | None = None
    ) -> None:
        """Store a schedule; `behind` puts its watermark that far into the past."""
        early = behind or timedelta()
        await self.schedules.create(
            definition.name,
            lambda now: created(definition, "api", self.identity.cluster, now - early),
        )

    def tools(self, app: FakeApp, **changes: Any) -> Tools:
        tools = Tools(
            store=self.runs,
            callback=Callback(app, NoStates(), self.runs),
            hints=self.hints,
            breaker=Breaker(failures_max=5, open_seconds=10.0),
            slots=Slots(64),
            chance=random.Random(1).random,
            boottime=boottime,
        )
        return replace(tools, **changes)

    @asynccontextmanager
    async def leading(
        self, app: FakeApp, group: str = "default", **changes: Any
    ) -> AsyncIterator[Tenure]:
        """Ticker and dispatcher of one group, for the length of a term."""
        tenure = await self.tenure(group)
        dispatcher = Dispatcher(self.tools(app, **changes))
        ticker = Ticker(
            self.schedules, self.hints, cluster=self.identity.cluster, queued=dispatcher.wake
        )
        tasks = [
            asyncio.create_task(dispatcher.lead(tenure)),
            asyncio.create_task(ticker.lead(tenure)),
        ]
        try:
            yield tenure
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def until_waiting(self, count: int) -> None:
        """Wait until so many statements wait for a lock."""
        async with asyncio.timeout(5):
            while await self.sql(_WAITING) != [{"count": count}]:  # noqa: ASYNC110 - the server knows
                await asyncio.sleep(0.01)

    async def rows(self, name: str | None = None) -> list[Row]:
        return await self.sql(
            """SELECT * FROM baton.run
               WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY tick, id""",
            name=name,
        )

    async def until(self, found: Callable[[list[Row]], bool], seconds: float = 10.0) -> list[Row]:
        """Wait until the runs are as told."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            rows = await self.rows()
            if found(rows):
                return rows
            if asyncio.get_running_loop().time() > deadline:
                brief = [
                    (r["name"], r["state"], r["outcome"], r["reason"], r["attempt"], r["error"])
                    for r in rows
                ]
                raise AssertionError(f"not in time: {brief}")
            await asyncio.sleep(0.02)

    async def ended(self, count: int = 1, seconds: float = 10.0) -> list[Row]:
        rows = await self.until(
            lambda rows: sum(r["state"] == "ended" for r in rows) >= count, seconds
        )
        return [row for row in rows if row["state"] == "ended"]


@asynccontextmanager
async def laboratory(
    url: str, groups: tuple[str, ...] = ("default", "other")
) -> AsyncIterator[Lab]:
    await migrate(url, "baton")
    database = Database(lambda: url, schema="baton", size=8, statement_seconds=5.0)
    membership = Membership(database, runner_id="runner-1", host="host", version="0")
    try:
        yield Lab(url, database, await membership.join("test", "", groups))
    finally:
        await database.close()


def soon(seconds: float = 0.3) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
