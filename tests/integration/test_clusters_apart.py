"""Two clusters in one schema, with the same names in both: neither reaches what is the other's."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.state import PostgresState
from sidecar.model.deferred import completed, id_of
from sidecar.model.errors import Fenced, NotFound
from sidecar.model.run import Outcome, RunRef
from sidecar.model.run_records import Completion, RunFilter
from sidecar.model.state_types import Address, Delete, Put
from sidecar.model.verdict import Verdict
from sidecar.scheduling import Schedules
from tests.integration.runs_lab import EVERY_HOUR, Lab, laboratory

TABLES = ("run", "checkpoint", "execution", "schedule", "state", "state_request", "deferred")
KEY = f"schedule-state:{EVERY_HOUR.name}"


@dataclass
class Neighbours:
    """What is ours: one run under way, one that waits, one that failed, state and a promise."""

    ours: Lab
    theirs: Lab
    live: RunRef
    waiting: int
    failed: int
    promise: bytes

    @property
    def records(self) -> PostgresRunRecords:
        return PostgresRunRecords(self.theirs.database, self.theirs.who)

    @property
    def state(self) -> PostgresState:
        return _state(self.theirs)

    @property
    def deferreds(self) -> PostgresDeferreds:
        return PostgresDeferreds(self.theirs.database, self.theirs.who)

    @property
    def schedules(self) -> Schedules:
        return Schedules(self.theirs.schedules, self.theirs.hints, cluster="neighbour")

    async def belongings(self) -> dict[str, list[dict[str, Any]]]:
        return {
            table: await self.ours.sql(_ROWS[table], cluster=_cluster(self)) for table in TABLES
        }


_ROWS = {
    table: f"SELECT * FROM baton.{table} WHERE cluster_id = %(cluster)s ORDER BY {table}::text"  # noqa: S608
    for table in TABLES
} | {
    "checkpoint": "SELECT checkpoint.* FROM baton.checkpoint JOIN baton.run ON run.id = run_id"
    " WHERE cluster_id = %(cluster)s",
}


def _cluster(neighbours: Neighbours) -> int:
    return neighbours.ours.identity.cluster_id


def _state(lab: Lab) -> PostgresState:
    return PostgresState(lab.database, lab.who, heartbeat_seconds=30.0)


@pytest.fixture
async def neighbours(database_url: str) -> AsyncIterator[Neighbours]:
    async with laboratory(database_url) as ours:
        membership = Membership(ours.database, runner_id="runner-2", host="host", version="0")
        theirs = replace(ours, identity=await membership.join("neighbour", "", ("default",)))
        await ours.add(EVERY_HOUR)
        term, catalogue = await ours.term(), Schedules(ours.schedules, ours.hints, cluster="test")
        run_ids = [
            await catalogue.trigger(EVERY_HOUR.name, payload=None, request_id="") for _ in range(3)
        ]
        failed, live = (await ours.runs.claim(term, limit=2)).runs
        report = Completion(failed, Verdict(Outcome.FAILED, error="no", cause="failed"))
        await ours.runs.complete(term, [report])
        await _state(ours).put([Put("key", b"ours")])
        await _state(ours).put_fenced(Put(KEY, b"ours"), live.ref, 1)
        deferreds = PostgresDeferreds(ours.database, ours.who)
        token = await deferreds.create("approval", live.ref, None)
        yield Neighbours(ours, theirs, live.ref, run_ids[2], failed.ref.run_id, id_of(token))


Attempt = Callable[[Neighbours], Awaitable[object]]
REFUSED: dict[str, Attempt] = {
    "checkpoint": lambda n: n.records.checkpoint(n.live, "charge", b"1"),
    "put for a run": lambda n: n.state.put_fenced(Put("key", b"theirs"), n.live, 0),
    "put for an owner": lambda n: n.state.put_fenced(Put(KEY, b"theirs"), n.live, 1),
    "delete for a run": lambda n: n.state.delete_fenced(Delete("key"), n.live, 0),
    "deferred for a run": lambda n: n.deferreds.create("approval", n.live, None),
    "get a run": lambda n: n.records.get(n.live.run_id),
    "trigger": lambda n: n.schedules.trigger(EVERY_HOUR.name, payload=None, request_id=""),
    "pause": lambda n: n.schedules.pause(EVERY_HOUR.name, "note"),
    "delete a schedule": lambda n: n.schedules.delete(EVERY_HOUR.name),
    "get a schedule": lambda n: n.schedules.get(EVERY_HOUR.name),
}
NOTHING_THERE: dict[str, tuple[Attempt, object]] = {
    "cancel": (lambda n: n.records.cancel(n.waiting, "theirs"), False),
    "cancel what runs": (lambda n: n.records.cancel(n.live.run_id, "theirs"), False),
    "retry": (lambda n: n.records.retry(n.failed), False),
    "heartbeat": (lambda n: n.records.heartbeat(n.live, 0.5, "theirs"), False),
    "list runs": (lambda n: n.records.page(RunFilter(), before=None, limit=9), []),
    "read a promise": (lambda n: n.deferreds.get([n.promise]), [None]),
    "read promises": (lambda n: n.deferreds.get([n.promise, b""]), [None, None]),
    "end a promise": (lambda n: n.deferreds.end(n.promise, completed(b"theirs")), None),
    "forget promises": (lambda n: n.deferreds.prune(-60.0, 9), 0),
    "delete": (lambda n: n.state.delete(Delete("key")), None),
    "clear": (lambda n: n.state.clear("", "", 9), ([], 0)),
    "size": (lambda n: n.state.size(""), 0),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED.keys())
async def test_what_is_the_neighbours_is_not_there(
    neighbours: Neighbours, attempt: Attempt
) -> None:
    """G12: refused as if there were no such thing, and nothing changes."""
    before = await neighbours.belongings()
    with pytest.raises((Fenced, NotFound)):
        await attempt(neighbours)
    assert await neighbours.belongings() == before


@pytest.mark.parametrize("case", NOTHING_THERE.values(), ids=NOTHING_THERE.keys())
async def test_nothing_of_the_neighbours_is_found(
    neighbours: Neighbours, case: tuple[Attempt, object]
) -> None:
    """G12: not even by its number."""
    before = await neighbours.belongings()
    attempt, expected = case
    assert await attempt(neighbours) == expected
    assert await neighbours.belongings() == before


async def test_a_key_of_the_same_name_is_another_entry(neighbours: Neighbours) -> None:
    """G7, G12: what one writes, expires or sweeps, the other keeps."""
    before = await neighbours.belongings()
    (nothing,) = await neighbours.state.get([Address("key")])
    assert nothing.record is None
    assert not (await neighbours.state.page("", "", 9)).records
    await neighbours.state.put([Put("key", b"theirs", expected_version=0, request_id="r")])
    await neighbours.state.put([Put("key", b"theirs again")])
    await neighbours.state.clear("", "", 9)
    await neighbours.state.sweep(9)
    assert await neighbours.belongings() == before


async def test_heartbeats_of_the_same_name_are_others(neighbours: Neighbours) -> None:
    """G10: a schedule of theirs that lives does not make ours look alive."""
    before = await neighbours.belongings()
    await neighbours.theirs.add(EVERY_HOUR)
    theirs = Heartbeats(neighbours.theirs.database, lambda: neighbours.theirs.identity, [])
    assert await theirs.beat(await neighbours.theirs.term(), 0.0)
    assert await neighbours.belongings() == before
