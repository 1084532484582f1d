"""Every statement that writes under a term, against a takeover that is under way.

Comparing the epoch is not enough: a statement sees the rows as they were when it began. Only one
that locks the term's row FOR SHARE waits for the takeover and then finds itself fenced; a plain
SELECT and FOR KEY SHARE both let the stale write through.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import sidecar.adapters.postgres
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.job_admission import PostgresJobAdmission
from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.state import PostgresState
from sidecar.model.definitions import Singleton
from sidecar.model.errors import Fenced
from sidecar.model.run import Outcome, Run, RunRef
from sidecar.model.run_records import Completion, Step
from sidecar.model.schedule import SkipReason, timing_of
from sidecar.model.state_types import Delete, Put
from sidecar.model.stored_schedule import DueTicks, due_ticks
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from sidecar.scheduling import Schedules
from tests.integration.runs_lab import EVERY_HOUR, Lab, laboratory

QUERIES = Path(sidecar.adapters.postgres.__file__).parent / "queries"
_EVERYTHING = (
    *("run", "checkpoint", "execution", "schedule", "state", "deferred"),
    *("job", "job_body", "job_batch"),
)


@dataclass
class Leader:
    """A leader with one run under way, one that waits, and a tick that is due."""

    lab: Lab
    term: Term
    run: Run
    queued: int
    due: DueTicks

    @property
    def ref(self) -> RunRef:
        return self.run.ref

    @property
    def records(self) -> PostgresRunRecords:
        return PostgresRunRecords(self.lab.database, self.lab.who)

    @property
    def state(self) -> PostgresState:
        return PostgresState(self.lab.database, self.lab.who, heartbeat_seconds=30.0)

    @property
    def admission(self) -> PostgresJobAdmission:
        return PostgresJobAdmission(self.lab.database, self.lab.who)

    async def add_jobs(self) -> None:
        """One to admit, one to park, and a batch that is complete."""
        await self.lab.sql(
            """SELECT baton.enqueue('test', 'work', key => 'k'),
                      baton.enqueue('test', 'work', queue => 'limited')"""
        )
        await self.lab.sql(
            """INSERT INTO baton.job_batch (cluster_id, batch, closed, on_complete)
               SELECT id, 'b', true, '{"name": "work"}' FROM baton.cluster"""
        )

    async def complete(self, state: bytes | None = None) -> object:
        verdict = Verdict(Outcome.SUCCEEDED, state=state, cause="succeeded")
        return await self.lab.runs.complete(self.term, [Completion(self.run, verdict)])

    async def checkpoint(self) -> object:
        return await self.records.checkpoint(self.ref, "charge", b"1")

    async def checkpoint_all(self) -> None:
        nobody = replace(self.ref, run_id=self.ref.run_id + 1_000_000)
        steps = [Step(ref, "charge", b"1") for ref in (self.ref, nobody)]
        _refuse_unless(any(await self.records.checkpoint_all(steps)))

    async def report_life(self) -> None:
        _refuse_unless(await self.records.heartbeat(self.ref, 0.5, "half"))

    async def beat(self) -> None:
        singletons = [Singleton(name="coordinator")]
        heartbeats = Heartbeats(self.lab.database, lambda: self.lab.identity, singletons)
        _refuse_unless(await heartbeats.beat(self.term, 30.0))

    async def put(self) -> object:
        return await self.state.put_fenced(Put("new", b"1"), self.ref, 0)

    async def delete(self) -> object:
        return await self.state.delete_fenced(Delete("old"), self.ref, 0)

    async def promise(self) -> object:
        deferreds = PostgresDeferreds(self.lab.database, self.lab.who)
        return await deferreds.create("approval", self.ref, None)

    async def everything(self) -> dict[str, object]:
        """All that a write could have changed."""
        return {table: await self.lab.sql(f"SELECT * FROM baton.{table}") for table in _EVERYTHING}  # noqa: S608


def _refuse_unless(stands: bool) -> None:
    if not stands:
        raise Fenced("as its answer says")


Write = Callable[[Leader], Awaitable[object]]
WRITES: dict[str, Write] = {
    "deferreds/create": Leader.promise,
    "heartbeats/beat": Leader.beat,
    "jobs/admit": lambda x: x.admission.admit(x.term, {"limited": 9}),
    "jobs/complete_batches": lambda x: x.admission.complete_batches(x.term),
    "jobs/park": lambda x: x.admission.park(x.term, ["limited"]),
    "runs/checkpoint": Leader.checkpoint,
    "runs/checkpoint_all": Leader.checkpoint_all,
    "runs/claim": lambda x: x.lab.runs.claim(x.term, limit=9),
    "runs/complete": Leader.complete,
    "runs/end_abandoned_singletons": lambda x: x.lab.runs.end_abandoned_singletons(x.term, limit=9),
    "runs/expire": lambda x: x.lab.runs.expire(x.term),
    "runs/heartbeat": Leader.report_life,
    "runs/replace": lambda x: x.lab.runs.ask_replacement(x.term, [x.ref.run_id]),
    "runs/requeue": lambda x: x.lab.runs.requeue(x.term, known=[]),
    "runs/skip": lambda x: x.lab.runs.skip(x.term, [x.queued], SkipReason.OVERLAP, "busy"),
    "runs/start_singleton": lambda x: x.lab.runs.start_singleton(x.term, "coordinator"),
    "schedules/claim_ticks": lambda x: x.lab.schedules.claim_ticks(x.term, [x.due]),
    "state/delete_fenced": Leader.delete,
    "state/put_fenced": Leader.put,
}

# Sent by the app, which may not know yet that its attempt is over.
FOR_A_RUN = (
    "deferreds/create",
    "runs/checkpoint",
    "runs/checkpoint_all",
    "runs/heartbeat",
    "state/delete_fenced",
    "state/put_fenced",
)


@pytest.fixture
async def leader(database_url: str) -> AsyncIterator[Leader]:
    async with laboratory(database_url) as lab:
        await lab.add(EVERY_HOUR, behind=timedelta(hours=2))
        term = await lab.term()
        now, (stored,) = await lab.schedules.upcoming(term, horizon_seconds=0, limit=9)
        due = due_ticks(stored, timing_of(stored.definition, "test"), now)
        assert due is not None
        catalogue = Schedules(lab.schedules, lab.hints, cluster="test")
        await catalogue.trigger(EVERY_HOUR.name, payload=None, request_id="")
        (run,) = (await lab.runs.claim(term, limit=1)).runs
        queued = await catalogue.trigger(EVERY_HOUR.name, payload=None, request_id="")
        leader = Leader(lab, term, run, queued, due)
        await leader.state.put([Put("old", b"1")])
        await leader.add_jobs()
        yield leader


def test_every_fenced_statement_is_among_those_tested() -> None:
    files = [path for path in QUERIES.rglob("*.sql") if path.parent.name != "shared"]
    everything = {path.relative_to(QUERIES).with_suffix("").as_posix() for path in files}
    queries = Queries("baton")
    names = {name for name in everything if "epoch = %(epoch)s" in queries[name]}
    # They write the term itself, and the holder of its lock does; or they only read.
    assert names - {"election/release", "runs/cancellations"} == WRITES.keys()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_waits_for_a_takeover_under_way_and_is_refused(
    leader: Leader, write: Write
) -> None:
    """G3: nothing is committed under an old epoch, not even by who began before the new one."""
    before = await leader.everything()
    async with await psycopg.AsyncConnection.connect(leader.lab.url) as successor:
        await successor.execute("UPDATE baton.term SET epoch = epoch + 1")
        writing = asyncio.ensure_future(write(leader))
        await leader.lab.until_waiting(1)
        await successor.commit()
    with pytest.raises(Fenced):
        await writing
    assert await leader.everything() == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_under_an_old_epoch_is_refused(leader: Leader, write: Write) -> None:
    """G3: the run's own row does not know yet that its term is over."""
    before = await leader.everything()
    await leader.lab.term()
    with pytest.raises(Fenced):
        await write(leader)
    assert await leader.everything() == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_of_an_epoch_that_is_not_there_yet_is_refused(
    leader: Leader, write: Write
) -> None:
    """G3: equal, not merely not older: a server that lost a takeover knows no later term."""
    await leader.lab.sql("UPDATE baton.term SET epoch = epoch - 1")
    before = await leader.everything()
    with pytest.raises(Fenced):
        await write(leader)
    assert await leader.everything() == before


@pytest.mark.parametrize("name", FOR_A_RUN)
async def test_a_write_of_an_attempt_before_the_live_one_is_refused(
    leader: Leader, name: str
) -> None:
    """G3, G5: the run lives, the term stands, but the app has been called again since."""
    again = Verdict(wait_seconds=0.0, used_retry=True, error="no", cause="retry")
    await leader.lab.runs.complete(leader.term, [Completion(leader.run, again)])
    deliveries = (await leader.lab.runs.claim(leader.term, limit=9)).runs
    assert RunRef(leader.ref.run_id, 2, leader.term.epoch) in [each.ref for each in deliveries]
    before = await leader.everything()
    with pytest.raises(Fenced):
        await WRITES[name](leader)
    assert await leader.everything() == before


async def test_state_and_outcome_of_one_answer_wait_together(leader: Leader) -> None:
    """G3, G6: a completion that carries state is refused as a whole."""
    before = await leader.everything()
    async with await psycopg.AsyncConnection.connect(leader.lab.url) as successor:
        await successor.execute("UPDATE baton.term SET epoch = epoch + 1")
        writing = asyncio.ensure_future(leader.complete(state=b"{}"))
        await leader.lab.until_waiting(1)
        await successor.commit()
    with pytest.raises(Fenced):
        await writing
    assert await leader.everything() == before


async def test_a_repeated_put_is_answered_while_a_takeover_is_under_way(leader: Leader) -> None:
    """G3, G7: it writes nothing, so it takes no fence, and its answer is the earlier one."""
    put = Put("new", b"1", request_id="one")
    first = await leader.state.put_fenced(put, leader.ref, 0)
    async with await psycopg.AsyncConnection.connect(leader.lab.url) as successor:
        await successor.execute("UPDATE baton.term SET epoch = epoch + 1")
        again = await leader.state.put_fenced(put, leader.ref, 0)
    assert again.record == first.record
