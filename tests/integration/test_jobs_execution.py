"""Jobs are claimed, executed and recorded by real workers on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.model.definitions import Retry
from sidecar.model.job import JobSpec, Priority
from sidecar.model.run import (
    Answer,
    Declined,
    Failed,
    Outcome,
    Run,
    Snoozed,
    Succeeded,
)
from sidecar.model.run_records import Completion
from sidecar.model.verdict import Verdict
from tests.integration.jobs_lab import JobsLab, jobs_laboratory

DONE = Verdict(Outcome.SUCCEEDED, cause="succeeded")
QUICK = Retry(attempts=3, initial_seconds=0.02, max_seconds=0.02)


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[JobsLab]:
    async with jobs_laboratory(database_url) as lab:
        yield lab


async def test_every_job_has_one_outcome(lab: JobsLab) -> None:
    """G13: submitted by the API, by SQL and by an answer; executed by two workers."""

    async def handler(run: Run) -> Answer:
        jobs = (JobSpec("work"),) if run.payload == b"first" else ()
        return Succeeded(b"result", jobs=jobs)

    async with lab.pod(handler, name="a") as a, lab.pod(handler, name="b") as b:
        await lab.submit(*[JobSpec("work", b"first") for _ in range(50)])
        for _ in range(50):
            await lab.enqueue()
        rows = await lab.ended(150)
        assert {row["outcome"] for row in rows} == {"succeeded"}
        assert len({row["job_id"] for row in rows}) == len(rows) == 150
        assert len(a.app.calls) + len(b.app.calls) == 150
    assert not await lab.sql("SELECT * FROM baton.job")
    assert not await lab.sql("SELECT * FROM baton.worker")
    assert not await lab.sql("SELECT * FROM baton.worker_beat")


async def test_what_the_app_is_given(lab: JobsLab) -> None:
    async with lab.pod() as pod:
        (submitted,) = await lab.submit(
            JobSpec("work", b"{}", queue="mail", priority=Priority.HIGH, labels={"a": "b"})
        )
        await lab.ended()
    (run,) = pod.app.calls
    assert run.job is not None
    assert (run.ref.run_id, run.ref.attempt) == (submitted.job_id, 1)
    assert (run.kind, run.name, run.payload, run.group) == ("job", "work", b"{}", "")
    assert (run.job.queue, run.job.priority, run.job.labels) == ("mail", 2, {"a": "b"})


async def test_a_pod_without_the_handler_claims_nothing_until_it_has_it(lab: JobsLab) -> None:
    async with lab.pod(names=frozenset({"other"})) as pod:
        await lab.enqueue()
        await asyncio.sleep(0.3)
        assert not pod.app.calls
        pod.app.become("other", "work")
        await lab.ended()


async def test_a_failed_job_is_tried_again_and_then_a_dead_letter(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        return Failed(f"no {run.ref.attempt}", code="E", retryable=True)

    async with lab.pod(handler) as pod:
        (submitted,) = await lab.submit(JobSpec("work", b"1", retry=QUICK))
        (row,) = await lab.ended()
    assert (row["outcome"], row["attempt"], row["failures"]) == ("failed", 3, 3)
    assert [run.failures for run in pod.app.calls] == [0, 1, 2]
    (dead,) = await lab.sql("SELECT * FROM baton.dead_jobs")
    assert (dead["job_id"], bytes(dead["payload"])) == (submitted.job_id, b"1")
    assert [event["cause"] for event in dead["history"]] == ["no 1", "no 2", "no 3"]
    assert {event["runner_id"] for event in dead["history"]} == {"pod"}


async def test_a_final_error_is_not_retried(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        return Failed("no")

    async with lab.pod(handler):
        await lab.submit(JobSpec("work", retry=QUICK))
        (row,) = await lab.ended()
    assert (row["outcome"], row["attempt"]) == ("failed", 1)


async def test_a_snoozed_job_comes_back_and_uses_no_retry(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        match run.ref.attempt:
            case 1:
                return Snoozed(after_seconds=0.05)
            case 2:
                return Snoozed(at=datetime.now(UTC) + timedelta(seconds=0.05))
        return Succeeded()

    async with lab.pod(handler) as pod:
        await lab.submit(JobSpec("work", retry=Retry(attempts=1)))
        (row,) = await lab.ended()
    assert (row["outcome"], row["attempt"], row["failures"]) == ("succeeded", 3, 0)
    assert [run.deliveries for run in pod.app.calls] == [1, 1, 1]


async def test_a_declined_job_is_skipped(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        return Declined("not today")

    async with lab.pod(handler):
        await lab.enqueue()
        (row,) = await lab.ended()
    assert (row["outcome"], row["reason"]) == ("skipped", "app_declined")


async def test_a_timeout_ends_an_attempt(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        await asyncio.sleep(60)
        return Succeeded()

    async with lab.pod(handler) as pod:
        await lab.submit(JobSpec("work", timeout_seconds=0.05, retry=replace(QUICK, attempts=2)))
        (row,) = await lab.ended()
        assert len(pod.app.cancelled) == 2
    assert (row["outcome"], row["attempt"]) == ("failed", 2)
    assert "DEADLINE_EXCEEDED" in row["error"]


async def test_a_running_job_that_is_cancelled_stops(lab: JobsLab) -> None:
    async def handler(run: Run) -> Answer:
        await asyncio.sleep(60)
        return Succeeded()

    async with lab.pod(handler) as pod:
        job_id = await lab.enqueue()
        await pod.running()
        (row,) = await lab.sql("SELECT baton.cancel_job('test', %(id)s, 'why') AS done", id=job_id)
        assert row["done"] == "requested"
        lab.lab.hints.notify("jobs", "cancel")
        (row,) = await lab.ended(seconds=10)
        assert pod.app.cancelled
    assert (row["outcome"], row["reason"]) == ("skipped", "operator")


async def test_a_job_that_was_not_started_in_time_expires(lab: JobsLab) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    await lab.submit(JobSpec("work", expires_at=past), JobSpec("work", key="k", expires_at=past))
    async with lab.pod() as pod, lab.leader():
        rows = await lab.ended(2)
        assert not pod.app.calls
    assert {(row["outcome"], row["reason"]) for row in rows} == {("skipped", "expired")}


async def test_a_job_that_is_due_later_starts_then(lab: JobsLab) -> None:
    async with lab.pod() as pod:
        await lab.enqueue("'work', delay => '0.4 s'")
        await asyncio.sleep(0.2)
        assert not pod.app.calls
        await lab.ended(seconds=5)


async def test_state_of_a_key_and_outcome_commit_together(lab: JobsLab) -> None:
    """G6: the next job of the key gets what the last one returned."""

    async def handler(run: Run) -> Answer:
        return Succeeded(state=run.state + run.payload)

    async with lab.pod(handler) as pod, lab.leader():
        await lab.submit(*[JobSpec("work", text, key="k") for text in (b"a", b"b", b"c")])
        await lab.ended(3)
    assert [run.state for run in pod.app.calls] == [b"", b"a", b"ab"]
    (row,) = await lab.sql("SELECT key, value FROM baton.state")
    assert (row["key"], bytes(row["value"])) == ("job-state:work/k", b"abc")


async def test_follow_ups_are_submitted_only_with_an_accepted_completion(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    await lab.enqueue()
    (run,) = (await lab.claim(lease)).runs
    both = replace(DONE, jobs=(JobSpec("next"), JobSpec("next")))
    late = replace(run, ref=replace(run.ref, attempt=7))
    assert not await lab.jobs.complete(lease, [Completion(late, both)])
    assert [row["name"] for row in await lab.rows()] == ["work"]
    assert await lab.jobs.complete(lease, [Completion(run, both)])
    assert [row["name"] for row in await lab.rows()] == ["work", "next", "next"]


async def test_a_drained_pod_hands_back_what_it_could_not_finish(lab: JobsLab) -> None:
    """G18: at once, with no retry used."""

    async def handler(run: Run) -> Answer:
        await asyncio.sleep(60)
        return Succeeded()

    async with lab.pod(handler) as pod:
        await lab.submit(JobSpec("work", retry=Retry(attempts=1)))
        await pod.running()
    (row,) = await lab.rows()
    assert (row["state"], row["attempt"], row["failures"], row["rescues"]) == ("waiting", 1, 0, 0)
    async with lab.pod():
        (row,) = await lab.ended(seconds=5)
    assert (row["outcome"], row["attempt"]) == ("succeeded", 2)


async def test_a_lost_answer_to_a_completion_is_found(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    await lab.submit(JobSpec("work"), JobSpec("work"), JobSpec("work"))
    runs = (await lab.claim(lease)).runs
    wait = Verdict(wait_seconds=0.0, cause="again")
    failed = Verdict(Outcome.FAILED, error="no", cause="no")
    completions = [
        Completion(run, verdict) for run, verdict in zip(runs, (DONE, wait, failed), strict=True)
    ]
    assert not await lab.jobs.find_lost_completions(completions)
    assert await lab.jobs.still_running(completions) == {run.ref.run_id for run in runs}
    written = await lab.jobs.complete(lease, completions)
    assert await lab.jobs.find_lost_completions(completions) == written
    assert not await lab.jobs.still_running(completions)
    assert not await lab.jobs.complete(lease, completions)


async def test_a_claim_whose_answer_was_lost_is_taken_back(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    known, lost = [job.job_id for job in await lab.submit(JobSpec("work"), JobSpec("work"))]
    await lab.claim(lease)
    assert await lab.jobs.take_back(lease, [known]) == 1
    (run,) = (await lab.claim(lease)).runs
    assert (run.ref.run_id, run.ref.attempt, run.failures) == (lost, 2, 0)
