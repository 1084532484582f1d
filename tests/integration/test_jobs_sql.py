"""Submitting by SQL: in the user's transaction, unique in all forms, by a role of its own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from sidecar.adapters.postgres.listener import channel_name
from sidecar.model.errors import AlreadyExists
from sidecar.model.job import JobSpec, OnConflict, Unique
from sidecar.model.run import Outcome
from sidecar.model.run_records import Completion
from sidecar.model.verdict import Verdict
from tests.integration.jobs_lab import JobsLab, jobs_laboratory

DONE = Verdict(Outcome.SUCCEEDED, cause="succeeded")
ENQUEUE = "SELECT baton.enqueue('test', 'work', unique_key => 'u')"


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[JobsLab]:
    async with jobs_laboratory(database_url) as lab:
        yield lab


async def connect(lab: JobsLab, **options: Any) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(lab.lab.url, **options)


async def one(connection: psycopg.AsyncConnection[Any], text: str, *values: object) -> Any:
    row = await (await connection.execute(text, values)).fetchone()
    return row and row[0]


async def end_all(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    for run in (await lab.claim(lease)).runs:
        await lab.jobs.complete(lease, [Completion(run, DONE)])


# ── the user's transaction ──────────────────────────────────────────────────────────────────────


async def test_a_rolled_back_transaction_submits_nothing(lab: JobsLab) -> None:
    """G13: the job and what the transaction did are one."""
    async with await connect(lab) as connection:
        await one(connection, ENQUEUE)
        await connection.rollback()
        first = await one(connection, ENQUEUE)  # its key is free
        await connection.commit()
    assert [row["job_id"] for row in await lab.rows()] == [first]


async def test_a_transaction_that_stays_open_holds_nothing_up(lab: JobsLab) -> None:
    """A duplicate, a new job and a new queue in it; other jobs are claimed and completed."""
    first = await lab.enqueue("'work', unique_key => 'u'")
    async with await connect(lab) as connection:
        assert await one(connection, ENQUEUE) == first
        await one(connection, "SELECT baton.enqueue('test', 'work', queue => 'new')")
        async with asyncio.timeout(10):
            await lab.enqueue("'work', queue => 'new'")
            async with lab.pod():
                assert len(await lab.ended(2)) == 2
                # The key is free again, although the open transaction has read it.
                assert await lab.enqueue("'work', unique_key => 'u'") != first
                await lab.ended(3)
                await connection.commit()
                lab.lab.hints.notify("jobs")
                await lab.ended(4)


async def test_a_job_that_became_visible_late_is_claimed(lab: JobsLab) -> None:
    async with await connect(lab) as connection, lab.pod():
        late = await one(connection, "SELECT baton.enqueue('test', 'work')")
        for _ in range(5):
            await lab.enqueue()
        await lab.ended(5)
        await connection.commit()
        lab.lab.hints.notify("jobs")
        rows = await lab.ended(6, seconds=4)  # long before the next poll
    assert late in {row["job_id"] for row in rows}


async def test_a_serialization_failure_is_the_callers_to_retry(lab: JobsLab) -> None:
    async with await connect(lab) as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await one(connection, "SELECT 1")
        await lab.enqueue("'work', unique_key => 'u'")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one(connection, ENQUEUE)
        await connection.rollback()
        await one(connection, ENQUEUE)
    assert len(await lab.rows()) == 1


# ── uniqueness ──────────────────────────────────────────────────────────────────────────────────


async def test_of_concurrent_submissions_one_wins(lab: JobsLab) -> None:
    job = JobSpec("work", unique=Unique("u"))
    answers = await asyncio.gather(*(lab.submit(job, JobSpec("work")) for _ in range(20)))
    assert len({answer[0].job_id for answer in answers}) == 1
    assert sum(not answer[0].duplicate for answer in answers) == 1
    assert len(await lab.rows()) == 21


@pytest.mark.parametrize("commits", [True, False])
async def test_a_second_transaction_waits_for_the_first(lab: JobsLab, commits: bool) -> None:
    async with await connect(lab) as first, await connect(lab, autocommit=True) as second:
        earlier = await one(first, ENQUEUE)
        waiting = asyncio.ensure_future(one(second, ENQUEUE))
        await lab.lab.until_waiting(1)
        await (first.commit() if commits else first.rollback())
        answer = await waiting
    assert (answer == earlier) == commits
    assert [row["job_id"] for row in await lab.rows()] == [answer]


async def test_keys_in_another_order_do_not_deadlock(lab: JobsLab) -> None:
    jobs = [JobSpec("work", unique=Unique(f"u{n}")) for n in range(30)]
    await asyncio.gather(*(lab.submit(*(jobs if n % 2 else reversed(jobs))) for n in range(8)))
    assert len(await lab.rows()) == 30


async def test_unique_while_the_earlier_job_is_live(lab: JobsLab) -> None:
    job = JobSpec("work", unique=Unique("u"))
    (first,) = await lab.submit(job)
    assert (await lab.submit(job))[0].duplicate
    await end_all(lab)
    (second,) = await lab.submit(job)
    assert (second.duplicate, second.job_id == first.job_id) == (False, False)


async def test_unique_within_a_window(lab: JobsLab) -> None:
    job = JobSpec("work", unique=Unique("u", window_seconds=0.5))
    await lab.submit(job)
    await end_all(lab)
    assert (await lab.submit(job))[0].duplicate  # it has ended, and still counts
    await asyncio.sleep(0.5)
    (second,) = await lab.submit(job)
    assert not second.duplicate
    await asyncio.sleep(0.5)
    (third,) = await lab.submit(job)  # the earlier one is live, and counts no more
    assert not third.duplicate
    assert (await lab.submit(JobSpec("work", unique=Unique("u"))))[0].job_id == third.job_id


async def test_the_payload_is_the_key_if_none_is_given(lab: JobsLab) -> None:
    first, second, third = await lab.submit(
        JobSpec("work", b"a", unique=Unique()),
        JobSpec("work", b"b", unique=Unique()),
        JobSpec("work", b"a", unique=Unique()),
    )
    assert (third.job_id, third.duplicate) == (first.job_id, True)
    assert not second.duplicate


async def test_a_conflict_may_replace_a_job_that_has_not_started(lab: JobsLab) -> None:
    def job(payload: bytes) -> JobSpec:
        return JobSpec("work", payload, unique=Unique("u", on_conflict=OnConflict.REPLACE))

    (first,) = await lab.submit(job(b"1"))
    (second,) = await lab.submit(job(b"2"))
    assert (second.job_id, second.duplicate) == (first.job_id, True)
    lease = await lab.workers.register()
    (run,) = (await lab.claim(lease)).runs
    assert run.payload == b"2"
    await lab.submit(job(b"3"))  # it has started: it stays as it is
    again = Verdict(wait_seconds=0.0, cause="again")
    await lab.jobs.complete(lease, [Completion(run, again)])
    (run,) = (await lab.claim(lease)).runs
    assert run.payload == b"2"


async def test_a_conflict_may_refuse_the_whole_call(lab: JobsLab) -> None:
    await lab.submit(JobSpec("work", unique=Unique("u")))
    rejecting = JobSpec("work", unique=Unique("u", on_conflict=OnConflict.REJECT))
    with pytest.raises(AlreadyExists, match="same unique key"):
        await lab.submit(JobSpec("work"), rejecting)
    assert len(await lab.rows()) == 1


async def test_a_job_may_submit_its_successor_with_its_own_unique_key(lab: JobsLab) -> None:
    job = JobSpec("work", unique=Unique("u"))
    await lab.submit(job)
    lease = await lab.workers.register()
    (run,) = (await lab.claim(lease)).runs
    verdict = Verdict(Outcome.SUCCEEDED, cause="succeeded", jobs=(job,))
    await lab.jobs.complete(lease, [Completion(run, verdict)])
    assert [row["state"] for row in await lab.rows()] == ["ended", "queued"]


async def test_a_key_that_was_locked_when_its_job_ended_is_released_later(lab: JobsLab) -> None:
    await lab.enqueue("'work', unique_key => 'u'")
    async with await connect(lab) as connection:
        await connection.execute("SELECT 1 FROM baton.job_unique FOR UPDATE")
        await end_all(lab)
    await lab.sql("UPDATE baton.job_unique SET job_id = 1")  # a minute has passed
    await lab.admission.sweep(keep_seconds=3600)
    assert not await lab.sql("SELECT * FROM baton.job_unique")


# ── bad input ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("''", "name: must have 1 to 255 bytes"),
        ("NULL", "name: is missing"),
        ("repeat('x', 256)", "name: must have"),
        ("E'a\\nb'", "name: must have"),
        ("'work', key => ''", "key: must have"),
        ("'work', priority => 'urgent'", "priority: must be critical, high, normal or low"),
        ("'work', due_at => 'infinity'", "due_at: is after the year 9999"),
        ("'work', due_at => now(), delay => '1 s'", "due_at: give either"),
        ("'work', delay => '-1 s'", "delay: must be 0 to ten years"),
        ("'work', unique_window => '0'", "unique_window: must be above zero"),
        ("'work', on_conflict => 'ignore'", "on_conflict: must be existing, replace or reject"),
        ("'work', attempts => 0", "attempts: must be 1"),
        ("'work', timeout => '-1 s'", "timeout: must be above zero"),
        ("'work', labels => '[]'", "labels: must be an object"),
        ("'work', labels => '{\"a\": 1}'", "labels: keys must have"),
        ("'work', to_jsonb(repeat('x', 262143))", "payload: has 262145 bytes"),
    ],
)
async def test_bad_input_is_refused_by_name(lab: JobsLab, arguments: str, problem: str) -> None:
    """G11"""
    async with await connect(lab) as connection:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=problem):
            await one(connection, f"SELECT baton.enqueue('test', {arguments})")
    assert not await lab.rows()


async def test_an_unknown_cluster_is_refused(lab: JobsLab) -> None:
    async with await connect(lab) as connection:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="no sidecar has joined"):
            await one(connection, "SELECT baton.enqueue('nobody', 'work')")


async def test_due_times_in_the_past_and_in_the_last_year_are_fine(lab: JobsLab) -> None:
    await lab.enqueue("'work', due_at => '-infinity'")
    await lab.enqueue("'work', due_at => '9999-12-31Z'")
    lease = await lab.workers.register()
    claim = await lab.claim(lease)
    assert len(claim.runs) == 1
    assert claim.next_due_at is not None


async def test_many_are_all_or_none(lab: JobsLab) -> None:
    text = "SELECT count(*) FROM baton.enqueue_many('test', %s::jsonb)"
    async with await connect(lab, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="priority"):
            await one(connection, text, '[{"name": "work"}, {"name": "work", "priority": "x"}]')
        assert not await lab.rows()
        assert await one(connection, text, '[{"name": "work"}, {"name": "work", "key": "k"}]') == 2
    assert len(await lab.rows()) == 2


# ── rights ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_role_for_submitting_can_do_nothing_else(lab: JobsLab) -> None:
    job_id = await lab.enqueue()
    async with await connect(lab, autocommit=True) as connection:
        await connection.execute("SET ROLE baton_enqueue")
        assert await one(connection, "SELECT baton.enqueue('test', 'work')")
        assert await one(connection, "SELECT baton.cancel_job('test', %s)", job_id) == "cancelled"
        for text in (
            "SELECT * FROM baton.jobs",
            "SELECT * FROM baton.job",
            "SELECT * FROM baton.job_body",
            "DELETE FROM baton.job",
            "UPDATE baton.job SET state = 'ready'",
            "INSERT INTO baton.job_ended SELECT * FROM baton.job_ended",
            "SELECT baton.skip_jobs(1, ARRAY[1::bigint], 'operator', '')",
            "SELECT * FROM baton.submit_jobs(1, ARRAY[(NULL::baton.job_spec)], false)",
            "SELECT * FROM baton.state",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(text)


async def test_the_functions_are_for_nobody_else(lab: JobsLab) -> None:
    rows = await lab.sql(
        """SELECT p.proname FROM pg_proc p, aclexplode(p.proacl) a
           WHERE p.pronamespace = 'baton'::regnamespace AND a.grantee = 0
             AND p.proname IN ('enqueue', 'enqueue_many', 'cancel_job')"""
    )
    assert not rows
    definers = await lab.sql(
        """SELECT proname, proconfig FROM pg_proc
           WHERE pronamespace = 'baton'::regnamespace AND prosecdef"""
    )
    assert len(definers) >= 4
    assert all("search_path=pg_catalog, pg_temp" in (row["proconfig"] or []) for row in definers)


# ── days ────────────────────────────────────────────────────────────────────────────────────────


async def test_old_days_are_dropped_and_live_jobs_keep_their_bodies(lab: JobsLab) -> None:
    partition = "baton.make_job_partition('job_body', '2026-01-05', {}::text, {}::text)"
    low, high = "baton.id_at('2026-01-05Z')", "baton.id_at('2026-01-06Z')"
    await lab.sql("SELECT " + partition.format(low, high))
    await lab.sql(
        "SELECT baton.make_job_partition('job_ended', '2026-01-05', '2026-01-05', '2026-01-06')"
    )
    await lab.enqueue("'work', '1'")
    await lab.sql(f"UPDATE baton.job_body SET id = {low} + 5; UPDATE baton.job SET id = {low} + 5")  # noqa: S608
    await lab.sql(f"INSERT INTO baton.job_body (id, payload) VALUES ({low} + 6, 'gone')")  # noqa: S608
    done = await lab.admission.partitions(keep_seconds=86_400)
    assert {"-job_body_p20260105", "-job_ended_p20260105"} <= set(done)
    rows = await lab.sql(
        """SELECT relname AS part, payload FROM baton.job_body AS b
           JOIN pg_class ON pg_class.oid = b.tableoid"""
    )
    assert [(row["part"], bytes(row["payload"])) for row in rows] == [("job_body_rest", b"1")]
    lease = await lab.workers.register()
    (run,) = (await lab.claim(lease)).runs
    assert run.payload == b"1"


# ── wake-up ─────────────────────────────────────────────────────────────────────────────────────


async def notices(connection: psycopg.AsyncConnection[Any]) -> list[str]:
    return [notice.payload async for notice in connection.notifies(timeout=0.3)]


async def test_a_commit_notifies_the_workers_once_and_waits_for_nobody(lab: JobsLab) -> None:
    """G17: the lock for the NOTIFY is held during the commit only, not during the transaction."""
    async with (
        await connect(lab, autocommit=True) as listener,
        await connect(lab) as first,
        await connect(lab, autocommit=True) as second,
    ):
        await listener.execute(f'LISTEN "{channel_name("baton", "test")}"'.encode())
        await one(first, "SELECT baton.enqueue('test', 'work') FROM generate_series(1, 50)")
        assert not await notices(listener)
        await one(second, "SELECT baton.enqueue('test', 'work')")
        assert await notices(listener) == ["jobs"]
        await first.commit()
        assert await notices(listener) == ["jobs"]


async def test_a_prepared_transaction_may_submit_without_a_notice(lab: JobsLab) -> None:
    async with await connect(lab, autocommit=True) as connection:
        await connection.execute("SET baton_jobs.notify = off")
        await connection.execute(b'LISTEN "%s"' % channel_name("baton", "test").encode())
        await one(connection, "SELECT baton.enqueue('test', 'work')")
        assert not await notices(connection)
