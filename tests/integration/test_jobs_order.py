"""Priorities, keys, queues and their limits on a real Postgres."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from sidecar.jobs.claimer import JobSettings
from sidecar.model.definitions import Retry
from sidecar.model.job import JobSpec, Priority
from sidecar.model.run import Answer, Failed, Run, Succeeded
from tests.integration.jobs_lab import JobsLab, jobs_laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[JobsLab]:
    async with jobs_laboratory(database_url) as lab:
        yield lab


async def test_starts_follow_the_weights_while_all_priorities_have_a_backlog(lab: JobsLab) -> None:
    """G15: within 10 %, by two workers that know nothing of each other."""
    for priority in Priority:
        await lab.submit(*[JobSpec("work", priority=priority) for _ in range(400)])
    started: list[int] = []

    async def handler(run: Run) -> Answer:
        assert run.job is not None
        started.append(run.job.priority)
        await asyncio.sleep(0.001)
        return Succeeded()

    settings = JobSettings(reserve=0.0)
    async with (
        lab.pod(handler, name="a", capacity=7, settings=settings),
        lab.pod(handler, name="b", capacity=20, settings=settings),
    ):
        await lab.ended(1600, seconds=90)
    # Critical jobs, the most frequent ones, are used up after 1,000 starts.
    counts = Counter(started[:800])
    for priority, weight in zip(Priority, (4, 3, 2, 1), strict=True):
        assert counts[priority] == pytest.approx(80 * weight, rel=0.1)


async def test_critical_jobs_start_while_long_low_ones_take_all_other_slots(lab: JobsLab) -> None:
    critical: list[float] = []

    async def handler(run: Run) -> Answer:
        if run.job and run.job.priority == Priority.CRITICAL:
            critical.append(run.late_seconds)
            return Succeeded()
        await asyncio.sleep(60)
        return Succeeded()

    async with lab.pod(handler, capacity=20) as pod:
        await lab.submit(*[JobSpec("work", priority=Priority.LOW) for _ in range(64)])
        await pod.running(18)
        await asyncio.sleep(0.2)
        assert pod.app.running == 18
        await lab.submit(JobSpec("work", priority=Priority.CRITICAL))
        lab.lab.hints.notify("jobs")
        await lab.ended(1, seconds=5)
    assert len(critical) == 1


async def test_jobs_of_a_key_run_one_at_a_time_and_in_order(lab: JobsLab) -> None:
    """G16: across workers, retries included."""
    running: Counter[str] = Counter()
    done: dict[str, list[bytes]] = {"a": [], "b": [], "c": []}

    async def handler(run: Run) -> Answer:
        assert run.job is not None
        key = run.job.key
        running[key] += 1
        assert running[key] == 1
        await asyncio.sleep(0.003)
        running[key] -= 1
        if run.payload == b"3" and run.ref.attempt == 1:
            return Failed("again", retryable=True)
        done[key].append(run.payload)
        return Succeeded()

    retry = Retry(attempts=2, initial_seconds=0.05, max_seconds=0.05)
    async with lab.pod(handler, name="a"), lab.pod(handler, name="b"), lab.leader():
        for number in range(12):
            text = str(number).encode()
            await lab.submit(*[JobSpec("work", text, key=key, retry=retry) for key in done])
        lab.lab.hints.notify("jobs")
        rows = await lab.ended(36, seconds=60)
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert all(texts == [str(n).encode() for n in range(12)] for texts in done.values())


async def test_a_job_without_a_key_never_waits_for_a_leader(lab: JobsLab) -> None:
    async with lab.pod():
        await lab.submit(JobSpec("work", key="k"), JobSpec("work"))
        lab.lab.hints.notify("jobs")
        (row,) = await lab.ended(1, seconds=5)
    assert row["key"] is None


async def test_a_big_queue_does_not_hold_up_a_small_one(lab: JobsLab) -> None:
    lease = await lab.workers.register()
    await lab.submit(*[JobSpec("work", queue="big") for _ in range(500)])
    await lab.submit(*[JobSpec("work", queue="small") for _ in range(5)])
    runs = (await lab.claim(lease, (0, 0, 10, 0))).runs
    queues = Counter(run.job.queue for run in runs if run.job)
    assert queues == {"big": 5, "small": 5}


async def test_a_paused_queue_starts_nothing(lab: JobsLab) -> None:
    await lab.sql(
        "INSERT INTO baton.job_queue (cluster_id, name, paused) VALUES (%(id)s, 'mail', true)",
        id=lab.identity.cluster_id,
    )
    lease = await lab.workers.register()
    await lab.submit(JobSpec("work", queue="mail"), JobSpec("work"))
    assert [run.job.queue for run in (await lab.claim(lease)).runs if run.job] == ["default"]


async def test_a_queue_with_a_limit_per_pod(lab: JobsLab) -> None:
    await lab.sql(
        "INSERT INTO baton.job_queue (cluster_id, name, max_running) VALUES (%(id)s, 'mail', 3)",
        id=lab.identity.cluster_id,
    )

    async def handler(run: Run) -> Answer:
        await asyncio.sleep(0.02)
        return Succeeded()

    await lab.submit(*[JobSpec("work", queue="mail", priority=p) for p in Priority for _ in "abc"])
    async with lab.pod(handler) as pod:
        await lab.ended(12)
    assert pod.app.running_most == 3


async def test_a_queue_with_limits_in_the_cluster(lab: JobsLab) -> None:
    await lab.sql(
        """INSERT INTO baton.job_queue (cluster_id, name, cluster_max_running)
           VALUES (%(id)s, 'mail', 2)""",
        id=lab.identity.cluster_id,
    )
    running = most = 0

    async def handler(run: Run) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return Succeeded()

    await lab.submit(*[JobSpec("work", queue="mail") for _ in range(10)])
    async with lab.pod(handler, name="a"), lab.pod(handler, name="b"), lab.leader():
        await lab.ended(10)
    assert most == 2


async def test_a_rate(lab: JobsLab) -> None:
    await lab.sql(
        "INSERT INTO baton.job_queue (cluster_id, name, rate) VALUES (%(id)s, 'mail', 10)",
        id=lab.identity.cluster_id,
    )
    await lab.submit(*[JobSpec("work", queue="mail") for _ in range(100)])
    async with lab.pod(), lab.leader():
        await asyncio.sleep(2.0)
    ended = [row for row in await lab.rows() if row["state"] == "ended"]
    assert 8 <= len(ended) <= 25
