"""A cluster without sidecars: the real tables, and the leader's steps driven by a test."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.listener import HintSubscription
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.adapters.postgres.schedules import PostgresSchedules
from sidecar.execution.authority import Authority
from sidecar.execution.pipeline import Pipeline
from sidecar.model.definitions import Schedule
from sidecar.model.identity import Identity
from sidecar.model.run import Answer, Checkpoint, Run, Succeeded
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.stored_schedule import created
from sidecar.model.term import Term
from sidecar.scheduling.dispatcher import Dispatcher
from sidecar.scheduling.ticker import Ticker
from tests.lab.execution import NoStates, a_pipeline, an_authority, under

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
        self._subscriptions: dict[str, list[HintSubscription]] = defaultdict(list)

    def notify(self, topic: str, detail: str = "") -> None:
        for subscription in self._subscriptions[topic]:
            subscription.wake(detail)

    def subscribe(self, topic: str) -> HintSubscription:
        subscription = HintSubscription()
        self._subscriptions[topic].append(subscription)
        return subscription

    def unsubscribe(self, topic: str, subscription: HintSubscription) -> None:
        self._subscriptions[topic].remove(subscription)


@dataclass
class FakeApp:
    """The app at the gRPC edge: records every call, answers as `handler` says."""

    handler: Callable[[Run], Awaitable[Answer]] | None = None
    calls: list[Run] = field(default_factory=list)
    cancelled: list[Run] = field(default_factory=list)
    running: int = 0
    running_most: int = 0

    async def execute(self, run: Run) -> Answer:
        self.calls.append(run)
        self.running += 1
        self.running_most = max(self.running_most, self.running)
        try:
            return await self.handler(run) if self.handler else Succeeded()
        except asyncio.CancelledError:
            self.cancelled.append(run)
            raise
        finally:
            self.running -= 1


class StoredCheckpoints(NoStates):
    """No state, and the checkpoints that are stored."""

    def __init__(self, runs: PostgresRuns) -> None:
        self._runs = runs

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        return await self._runs.checkpoints(run_ids)


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

    async def authority(self, group: str = "default") -> Authority:
        term = await self.term(group)
        return an_authority(term, revoked=lambda: self.fenced.append(term))

    async def add(
        self, definition: Schedule = EVERY_HOUR, *, behind: timedelta | None = None
    ) -> None:
        """Store a schedule; `behind` puts its watermark that far into the past."""
        early = behind or timedelta()
        await self.schedules.create(
            definition.name,
            lambda now: created(definition, "api", self.identity.cluster, now - early),
        )

    def pipeline(self, app: FakeApp, **parts: Any) -> Pipeline:
        runs = self.runs
        parts.setdefault("loader", StoredCheckpoints(runs))
        return a_pipeline(app, parts.pop("store", runs), **parts)

    def dispatcher(self, store: Any = None) -> Dispatcher:
        chance = random.Random(1).random
        return Dispatcher(store or self.runs, self.hints, boottime=boottime, chance=chance)

    @asynccontextmanager
    async def leading(
        self, app: FakeApp, group: str = "default", **parts: Any
    ) -> AsyncIterator[Authority]:
        """Ticker and dispatcher of one group, for the length of a term."""
        authority, dispatcher = await self.authority(group), self.dispatcher()
        ticker = Ticker(
            self.schedules, self.hints, cluster=self.identity.cluster, queued=dispatcher.wake
        )
        runs = under(self.pipeline(app, **parts), authority, dispatcher.lead)
        tasks = [asyncio.create_task(runs), asyncio.create_task(ticker.lead(authority))]
        try:
            yield authority
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def until_waiting(self, count: int) -> None:
        """Wait until so many statements wait for a lock."""
        async with asyncio.timeout(60):
            while await self.sql(_WAITING) != [{"count": count}]:  # noqa: ASYNC110 - the server knows
                await asyncio.sleep(0.01)

    async def complete(self, term: Term, completions: Sequence[Completion]) -> dict[int, Recorded]:
        """As the leader does: what is locked is written later."""
        written: dict[int, Recorded] = {}
        left = list(completions)
        while left:
            written |= await self.runs.complete(term, left)
            locked = await self.runs.still_running(left)
            left = [completion for completion in left if completion.run.ref.run_id in locked]
            await asyncio.sleep(0.02)
        return written

    async def rows(self, name: str | None = None) -> list[Row]:
        return await self.sql(
            """SELECT * FROM baton.run
               WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY tick, id""",
            name=name,
        )

    async def until(self, found: Callable[[list[Row]], bool], seconds: float = 60.0) -> list[Row]:
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

    async def ended(self, count: int = 1, seconds: float = 60.0) -> list[Row]:
        rows = await self.until(
            lambda rows: sum(r["state"] == "ended" for r in rows) >= count, seconds
        )
        return [row for row in rows if row["state"] == "ended"]


@asynccontextmanager
async def laboratory(
    url: str, groups: tuple[str, ...] = ("default", "other"), cluster: str = "test"
) -> AsyncIterator[Lab]:
    await migrate(url, "baton")
    database = Database(lambda: url, schema="baton", size=8, statement_seconds=120.0)
    membership = Membership(database, runner_id="runner-1", host="host", version="0")
    try:
        yield Lab(url, database, await membership.join(cluster, "", groups))
    finally:
        await database.close()


def soon(seconds: float = 0.3) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
