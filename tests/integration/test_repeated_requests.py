"""A request whose answer was lost is repeated: it is acknowledged only once the standby has it.

The first attempt commits on the primary alone: its wait for the standby is cancelled, and the
caller gets `AnswerLost`. The repeat finds what the first one stored and writes nothing, and a
commit that wrote nothing waits for no standby.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from devtools.servers import PostgresServer
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.state import PostgresState
from sidecar.deferreds import Deferreds
from sidecar.execution.runs import Runs
from sidecar.model.errors import AlreadyExists, AnswerLost, NotFound
from sidecar.model.run import Outcome, Run
from sidecar.model.run_records import Completion
from sidecar.model.state_types import Delete, Put
from sidecar.model.stored_schedule import Change
from sidecar.model.verdict import Verdict
from tests.integration.runs_lab import EVERY_HOUR, Lab, soon
from tests.lab.processes import wait_until
from tests.lab.standby import HotStandby

Request = Callable[[], Awaitable[Any]]
STATEMENT_SECONDS = 3.0
_CANCEL_WAITS = (
    "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
)


@pytest.fixture(scope="module")
def standby() -> Iterator[HotStandby]:
    with PostgresServer(settings={"fsync": "off"}) as primary:
        asyncio.run(migrate(primary.url, "baton"))
        with HotStandby(primary) as standby:
            standby.synchronize()
            yield standby


@pytest.fixture
async def cluster(standby: HotStandby) -> AsyncIterator[Cluster]:
    async with _cluster(standby.primary.url) as cluster:
        yield cluster
    standby.wire.heal()
    wait_until(standby.is_synchronous, 20, "the standby to be back")


class Cluster(Lab):
    """A cluster of one schedule, whose name no other test uses."""

    @property
    def state(self) -> PostgresState:
        return PostgresState(self.database, self.who, heartbeat_seconds=30.0)

    @property
    def deferreds(self) -> Deferreds:
        return Deferreds(PostgresDeferreds(self.database, self.who), self.hints)

    @property
    def records(self) -> PostgresRunRecords:
        return PostgresRunRecords(self.database, self.who)

    async def running(self) -> tuple[Run, Request]:
        """A run under way, and what completes it."""
        term = await self.term()
        await self.schedules.trigger(EVERY_HOUR.name, payload=None, request_id=None)
        (run,) = (await self.runs.claim(term, limit=1)).runs
        report = Completion(run, Verdict(Outcome.SUCCEEDED, result=b"done"))
        return run, lambda: self.runs.complete(term, [report])


@asynccontextmanager
async def _cluster(url: str) -> AsyncIterator[Cluster]:
    database = Database(lambda: url, schema="baton", size=3, statement_seconds=STATEMENT_SECONDS)
    membership = Membership(database, runner_id="runner-1", host="host", version="0")
    try:
        identity = await membership.join(f"test-{uuid4()}", "", ["default"])
        cluster = Cluster(url, database, identity)
        await cluster.add()
        yield cluster
    finally:
        await database.close()


async def _put(cluster: Cluster) -> Request:
    return lambda: cluster.state.put([Put("key", b"value", request_id="one")])


async def _put_compared(cluster: Cluster) -> Request:
    put = Put("key", b"value", expected_version=0, request_id="one")
    return lambda: cluster.state.put([put])


async def _puts(cluster: Cluster) -> Request:
    puts = [Put(f"key-{n}", b"value", request_id="one") for n in range(3)]
    return lambda: cluster.state.put(puts)


async def _put_by_run(cluster: Cluster) -> Request:
    run, _ = await cluster.running()
    put = Put("key", b"value", request_id="one", run=run.ref)
    return lambda: cluster.state.put_fenced(put, run.ref, 0)


async def _delete(cluster: Cluster) -> Request:
    await cluster.state.put([Put("key", b"value")])
    return lambda: cluster.state.delete(Delete("key"))


async def _delete_by_run(cluster: Cluster) -> Request:
    run, _ = await cluster.running()
    await cluster.state.put([Put("key", b"value")])
    return lambda: cluster.state.delete_fenced(Delete("key"), run.ref, 0)


async def _clear(cluster: Cluster) -> Request:
    await cluster.state.put([Put("key", b"value"), Put("another", b"value")])
    return lambda: cluster.state.clear("", "", 10)


async def _create_deferred(cluster: Cluster) -> Request:
    return lambda: cluster.deferreds.create("payment")


async def _create_deferred_of_a_run(cluster: Cluster) -> Request:
    run, _ = await cluster.running()
    return lambda: cluster.deferreds.create("payment", run=run.ref)


async def _complete_deferred(cluster: Cluster) -> Request:
    token = await cluster.deferreds.create("payment")
    return lambda: cluster.deferreds.complete(token, b"paid")


async def _fail_deferred(cluster: Cluster) -> Request:
    token = await cluster.deferreds.create("payment")
    return lambda: cluster.deferreds.fail(token, "refused")


async def _checkpoint(cluster: Cluster) -> Request:
    run, _ = await cluster.running()
    runs = Runs(cluster.records, cluster.hints)
    return lambda: runs.checkpoint(run.ref, "charge", b"receipt")


async def _trigger(cluster: Cluster) -> Request:
    return lambda: cluster.schedules.trigger(EVERY_HOUR.name, payload=None, request_id="one")


async def _backfill(cluster: Cluster) -> Request:
    tick = soon(-1800.0)
    return lambda: cluster.schedules.backfill(EVERY_HOUR.name, lambda *_: [tick])


async def _pause(cluster: Cluster) -> Request:
    """As Schedules.Pause does: one that is paused already is left as it is."""

    def paused(stored: Any, _: Any) -> Any:
        after = replace(stored, paused=True)
        return None if stored.paused else Change(after)

    return lambda: cluster.schedules.change(EVERY_HOUR.name, paused)


REQUESTS = {
    "State.Put": _put,
    "State.Put, compared": _put_compared,
    "State.Put, several in a batch": _puts,
    "State.Put by a run": _put_by_run,
    "State.Delete": _delete,
    "State.Delete by a run": _delete_by_run,
    "State.Clear": _clear,
    "Deferreds.Create": _create_deferred,
    "Deferreds.Create by a run": _create_deferred_of_a_run,
    "Deferreds.Complete": _complete_deferred,
    "Deferreds.Fail": _fail_deferred,
    "Runs.Checkpoint": _checkpoint,
    "Schedules.Trigger": _trigger,
    "Schedules.Backfill": _backfill,
    "Schedules.Pause": _pause,
}


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
async def test_a_repeated_request_waits_for_the_standby(
    cluster: Cluster, standby: HotStandby, request_of: Callable[[Cluster], Awaitable[Request]]
) -> None:
    """G7: what is acknowledged is on the standby, also if an earlier attempt wrote it."""
    request = await request_of(cluster)
    await _committed_on_the_primary_alone(standby, request)
    with pytest.raises(AnswerLost):
        await request()
    await _standby_back(standby)
    answer = await request()
    assert _comparable(answer) == _comparable(await request())


async def test_a_completion_found_after_a_lost_answer_waits_for_the_standby(
    cluster: Cluster, standby: HotStandby
) -> None:
    """G4 G7: what is announced as completed is not delivered again after a failover."""
    run, complete = await cluster.running()
    await _committed_on_the_primary_alone(standby, complete)
    report = Completion(run, Verdict(Outcome.SUCCEEDED))
    with pytest.raises(AnswerLost):
        await cluster.runs.find_lost_completions([report])
    await _standby_back(standby)
    found = await cluster.runs.find_lost_completions([report])
    assert found[run.ref.run_id].outcome is Outcome.SUCCEEDED


async def test_a_refusal_that_names_what_stands_waits_for_the_standby(
    cluster: Cluster, standby: HotStandby
) -> None:
    """G7: the value that is said to stand must not be gone after a failover."""
    token = await cluster.deferreds.create("payment")
    await _committed_on_the_primary_alone(
        standby, lambda: cluster.deferreds.complete(token, b"paid")
    )
    with pytest.raises(AnswerLost):
        await cluster.deferreds.complete(token, b"another")
    await _standby_back(standby)
    with pytest.raises(AlreadyExists):
        await cluster.deferreds.complete(token, b"another")


async def test_a_schedule_is_not_found_only_once_its_deletion_is_replicated(
    cluster: Cluster, standby: HotStandby
) -> None:
    """G7: whoever repeats a deletion takes NOT_FOUND for its success."""

    def delete() -> Awaitable[None]:
        return cluster.schedules.change(
            EVERY_HOUR.name, lambda stored, _: Change(stored, retire=True)
        )

    await _committed_on_the_primary_alone(standby, delete)
    with pytest.raises(AnswerLost):
        await delete()
    await _standby_back(standby)
    with pytest.raises(NotFound):
        await delete()


async def test_a_write_that_a_failover_loses_was_not_acknowledged() -> None:
    """G7: the whole story. The primary crashes and restarts while a put waits for the standby: what
    it recovers is visible, and nobody waits for it any more. Then it is gone for good."""
    with PostgresServer(settings={"fsync": "off"}) as primary:
        await migrate(primary.url, "baton")
        with HotStandby(primary) as standby:
            await asyncio.to_thread(standby.synchronize)
            async with _cluster(primary.url) as cluster:
                request = await _put(cluster)
                standby.wire.silence()
                waiting = asyncio.ensure_future(request())
                await _crash_while_waiting(primary)
                with pytest.raises(AnswerLost):
                    await waiting
                await asyncio.to_thread(wait_until, lambda: _answers(primary), 20, "the recovery")
                assert _entries(primary) == [(b"value",)]
                with pytest.raises(AnswerLost):
                    await request()
            primary.kill()
            standby.promote()
            assert _entries(standby) == []


async def _crash_while_waiting(server: PostgresServer) -> None:
    """A backend that is killed makes Postgres restart all others."""
    async with await psycopg.AsyncConnection.connect(server.url, autocommit=True) as connection:
        await asyncio.to_thread(wait_until, lambda: _waits(server), 10, "the wait for the standby")
        os.kill(connection.info.backend_pid, signal.SIGKILL)


def _answers(server: PostgresServer) -> bool:
    try:
        psycopg.connect(server.url).close()
    except psycopg.OperationalError:
        return False
    return True


def _waits(server: PostgresServer) -> bool:
    with psycopg.connect(server.url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        return connection.execute(query).fetchone() == (1,)


def _entries(server: PostgresServer) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.url) as connection:
        return connection.execute("SELECT value FROM baton.state").fetchall()


async def _committed_on_the_primary_alone(standby: HotStandby, request: Request) -> None:
    standby.wire.silence()
    waiting = asyncio.ensure_future(request())
    await _cancel_the_wait(standby.primary)
    with pytest.raises(AnswerLost, match="the wait for the standby was cancelled"):
        await waiting


async def _cancel_the_wait(server: PostgresServer) -> None:
    async with asyncio.timeout(10), await psycopg.AsyncConnection.connect(server.url) as connection:
        while True:
            row = await (await connection.execute(_CANCEL_WAITS)).fetchone()
            await connection.rollback()
            if row and row[0]:
                return
            await asyncio.sleep(0.02)


async def _standby_back(standby: HotStandby) -> None:
    standby.wire.heal()
    await asyncio.to_thread(wait_until, standby.is_synchronous, 20, "the standby to be back")


def _comparable(answer: Any) -> Any:
    """Without the time at which it was asked for."""
    if isinstance(answer, list):
        return [_comparable(each) for each in answer]
    return getattr(answer, "record", answer)
