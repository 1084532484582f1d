"""Leases, fences and rescue: the jobs of a dead worker move on, its late answers are refused."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

import sidecar.adapters.postgres
from sidecar.adapters.postgres.queries import Queries
from sidecar.model.errors import Fenced
from sidecar.model.job import RESCUES_MAX, JobSpec
from sidecar.model.run import Answer, Outcome, Run, Succeeded
from sidecar.model.run_records import Completion
from sidecar.model.verdict import Verdict
from sidecar.model.worker_lease import TRUST_SECONDS, Beat, Lease
from tests.integration.jobs_lab import JobsLab, jobs_laboratory

QUERIES = Path(sidecar.adapters.postgres.__file__).parent / "queries"
DONE = Verdict(Outcome.SUCCEEDED, cause="succeeded")


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[JobsLab]:
    async with jobs_laboratory(database_url) as lab:
        yield lab


async def sleeps(run: Run) -> Answer:
    await asyncio.sleep(60)
    return Succeeded()


async def test_the_jobs_of_a_worker_that_died_run_elsewhere_within_6_seconds(lab: JobsLab) -> None:
    """G14: with a higher attempt and no retry used."""
    async with lab.pod(sleeps, name="dead") as dead:
        await lab.submit(*[JobSpec("work") for _ in range(20)])
        await dead.running(20)
        async with lab.pod(name="heir") as heir:
            await asyncio.sleep(1.1)  # it has seen a beat
            dead.crash()
            died = time.monotonic()
            rows = await lab.ended(20, seconds=30)
            took = time.monotonic() - died
    assert {(r["attempt"], r["failures"], r["rescues"]) for r in rows} == {(2, 0, 1)}
    assert len(heir.app.calls) == 20
    assert took < 6.0
    print(f"rescued after {took:.2f} s")


async def test_a_worker_that_cannot_beat_cancels_its_jobs_before_it_is_fenced(lab: JobsLab) -> None:
    """G14: the old attempt is cancelled before another one may start."""
    async with lab.pod(sleeps, name="cut off") as cut_off:
        await lab.submit(JobSpec("work"))
        await cut_off.running()
        async with await psycopg.AsyncConnection.connect(lab.lab.url) as blocker:
            await blocker.execute("SELECT 1 FROM baton.worker_beat FOR UPDATE")
            began = time.monotonic()
            while not cut_off.app.cancelled:
                (row,) = await lab.sql("SELECT fenced_at FROM baton.worker ORDER BY id LIMIT 1")
                assert row["fenced_at"] is None or cut_off.app.cancelled
                await asyncio.sleep(0.01)
            assert time.monotonic() - began < TRUST_SECONDS


async def test_a_silent_worker_is_fenced_only_with_the_beat_that_was_seen(lab: JobsLab) -> None:
    lease, watcher = await lab.workers.register(), await lab.workers.register()
    (beat,) = await lab.workers.beat(watcher, neighbours=None) or [Beat(0, 0)]
    assert beat == Beat(lease.worker_id, 0)
    await lab.workers.beat(lease, neighbours=0)
    assert not await lab.workers.fence(lease.worker_id, sequence=beat.sequence)
    assert await lab.workers.fence(lease.worker_id, sequence=beat.sequence + 1)
    assert await lab.workers.beat(lease, neighbours=0) is None


async def test_workers_watch_each_other_in_a_ring(lab: JobsLab) -> None:
    leases = [await lab.workers.register() for _ in range(5)]
    ids = [lease.worker_id for lease in leases]
    seen = [
        [beat.worker_id for beat in await lab.workers.beat(lease, neighbours=2) or ()]
        for lease in leases
    ]
    assert seen == [
        [ids[1], ids[2]],
        [ids[2], ids[3]],
        [ids[3], ids[4]],
        [ids[4], ids[0]],
        [ids[0], ids[1]],
    ]


async def test_a_job_that_was_rescued_too_often_is_a_dead_letter(lab: JobsLab) -> None:
    await lab.submit(JobSpec("work", b"deadly"))
    for _ in range(RESCUES_MAX):
        lease = await lab.workers.register()
        assert len((await lab.claim(lease)).runs) == 1
        await lab.workers.fence(lease.worker_id)
        await lab.workers.return_jobs(lease.worker_id, rescued=True, cause="died")
    (dead,) = await lab.sql("SELECT * FROM baton.dead_jobs")
    assert bytes(dead["payload"]) == b"deadly"
    assert f"after {RESCUES_MAX} rescues" in dead["error"]
    assert not await lab.sql("SELECT * FROM baton.worker")


async def test_a_job_that_was_cancelled_ends_with_its_dead_worker(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    job_id = await lab.enqueue()
    await lab.claim(lease)
    await lab.sql("SELECT baton.cancel_job('test', %(id)s)", id=job_id)
    await lab.workers.fence(lease.worker_id)
    await lab.workers.return_jobs(lease.worker_id, rescued=True, cause="died")
    (row,) = await lab.rows()
    assert (row["outcome"], row["reason"]) == ("skipped", "operator")


async def test_jobs_of_a_worker_that_was_not_fenced_are_not_returned(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    await lab.enqueue()
    await lab.claim(lease)
    await lab.workers.return_jobs(lease.worker_id, rescued=True, cause="died")
    (row,) = await lab.rows()
    assert row["state"] == "running"


# ── fences ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Held:
    """A worker with one job under way and one that waits."""

    lab: JobsLab
    lease: Lease
    run: Run

    async def everything(self) -> dict[str, object]:
        tables = ("job", "job_ended", "job_dead", "job_checkpoint", "job_unique", "state")
        return {table: await self.lab.sql(f"SELECT * FROM baton.{table}") for table in tables}  # noqa: S608

    async def complete(self) -> object:
        verdict = Verdict(Outcome.SUCCEEDED, cause="succeeded", state=b"1", jobs=(JobSpec("n"),))
        return await self.lab.jobs.complete(self.lease, [Completion(self.run, verdict)])

    async def checkpoint(self) -> object:
        return await self.lab.records.checkpoint(self.run.ref, "charge", b"1")

    async def heartbeat(self) -> None:
        if not await self.lab.records.heartbeat(self.run.ref, 0.5, None):
            raise Fenced("as its answer says")


Write = Callable[[Held], Awaitable[object]]
WRITES: dict[str, Write] = {
    "jobs/claim": lambda held: held.lab.claim(held.lease),
    "jobs/complete": Held.complete,
    "jobs/checkpoint": Held.checkpoint,
    "jobs/heartbeat": Held.heartbeat,
    "jobs/take_back": lambda held: held.lab.jobs.take_back(held.lease, []),
}


@pytest.fixture
async def held(lab: JobsLab) -> Held:
    lease = await lab.workers.register()
    await lab.enqueue("'work', unique_key => 'u', attempts => 2")
    (run,) = (await lab.claim(lease)).runs
    await lab.enqueue()
    return Held(lab, lease, run)


def test_every_statement_under_a_worker_lease_is_among_those_tested() -> None:
    queries = Queries("baton")
    names = {
        path.relative_to(QUERIES).with_suffix("").as_posix()
        for path in (QUERIES / "jobs").glob("*.sql")
    }
    fenced = {name for name in names if "fenced_at IS NULL FOR SHARE" in queries[name]}
    assert fenced == WRITES.keys()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_waits_for_a_fence_under_way_and_is_refused(held: Held, write: Write) -> None:
    """G3, G14: not even by a worker that began before the rescuer had committed."""
    before = await held.everything()
    async with await psycopg.AsyncConnection.connect(held.lab.lab.url) as rescuer:
        await rescuer.execute("UPDATE baton.worker SET fenced_at = now()")
        writing = asyncio.ensure_future(write(held))
        await held.lab.lab.until_waiting(1)
        await rescuer.commit()
    with pytest.raises(Fenced):
        await writing
    assert await held.everything() == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_late_write_of_a_fenced_worker_is_refused(held: Held, write: Write) -> None:
    """G14: its job runs on another worker already."""
    await held.lab.workers.fence(held.lease.worker_id)
    await held.lab.workers.return_jobs(held.lease.worker_id, rescued=True, cause="died")
    heir = await held.lab.workers.register()
    assert held.run.ref.run_id in [r.ref.run_id for r in (await held.lab.claim(heir)).runs]
    before = await held.everything()
    with pytest.raises(Fenced):
        await write(held)
    assert await held.everything() == before


async def test_a_completion_of_an_attempt_before_the_live_one_is_refused(held: Held) -> None:
    """G5: by the same worker, whose lease is current."""
    again = Verdict(wait_seconds=0.0, used_retry=True, cause="again")
    await held.lab.jobs.complete(held.lease, [Completion(held.run, again)])
    runs = (await held.lab.claim(held.lease)).runs
    assert held.run.ref.run_id in [run.ref.run_id for run in runs]
    assert not await held.complete()
    assert not await held.lab.sql("SELECT * FROM baton.job_ended")
