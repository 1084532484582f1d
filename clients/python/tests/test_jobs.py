"""Jobs: submitting them, executing them, and what becomes of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from baton import (
    AlreadyExists,
    Baton,
    Context,
    DeadlineExceeded,
    Fail,
    InvalidArgument,
    JobSpec,
    NotFound,
    Result,
    Retry,
    RetryPolicy,
    Skip,
    Snooze,
    Unique,
)
from baton._specs import JobOptions
from baton.testing import FakeSidecar, eventually
from baton.v1 import job_types_pb2, jobs_pb2
from baton.v1 import runs_pb2 as pb


async def test_a_job_is_submitted_executed_and_read(app: Baton):
    """G17: no leader is needed; the handler sees what the job was submitted with."""
    seen: list[Context] = []

    @app.job("send-mail", queue="mails", priority="high")
    async def send_mail(context: Context) -> dict[str, str]:
        seen.append(context)
        await context.heartbeat(0.5, "half way")
        return {"sent": context.json()["to"]}

    async with FakeSidecar.beside(app) as sidecar:
        submitted = await app.jobs.submit("send-mail", {"to": "a"}, labels={"tenant": "x"})
        job = await app.jobs.wait(submitted.id, timeout=20)
        assert not submitted.duplicate
        assert (job.outcome, job.result) == (pb.OUTCOME_SUCCEEDED, b'{"sent":"a"}')
        assert (job.queue, job.progress, job.attempt) == ("mails", 0.5, 1)
        assert [job.job_id for job in sidecar.jobs()] == [submitted.id]
    (context,) = seen
    assert (context.queue, context.priority, context.labels) == ("mails", "high", {"tenant": "x"})
    assert (context.key, context.batch, context.rescues, context.attempt) == ("", "", 0, 1)
    assert (context.cluster.group, context.cluster.is_leader) == ("", False)
    assert (context.cluster.entity_type, context.cluster.cluster) == ("job", "test")


async def test_jobs_reach_an_app_that_is_called():
    app = Baton()
    app.job("send-mail")(lambda context: context.queue)
    async with FakeSidecar.beside(app, attach=False):
        job = await app.jobs.wait((await app.jobs.submit("send-mail")).id, timeout=20)
        assert job.result == b'"default"'


async def test_a_retry_waits_for_its_time_and_the_last_failure_is_a_dead_letter(app: Baton):
    """G13: after the last attempt it is kept, and may be replayed with all its retries."""
    mended = False

    @app.job("flaky", retry=2)
    async def flaky(context: Context) -> str:
        if not mended:
            raise ValueError(f"attempt {context.attempt}")
        return "at last"

    async with FakeSidecar.beside(app) as sidecar:
        job_id = (await app.jobs.submit("flaky")).id
        await sidecar.settle()
        assert (await app.jobs.get(job_id)).state == pb.RUN_STATE_WAITING
        await sidecar.advance("1s")
        (dead,) = [job async for job in app.jobs.dead(name="flaky")]
        assert (dead.job_id, dead.failures) == (job_id, 2)
        assert dead.error == "ValueError: attempt 2"
        mended = True
        assert await app.jobs.replay(name="flaky", dry_run=True) == 1
        assert await app.jobs.replay(job_id) == 1
        assert (await app.jobs.wait(job_id, timeout=20)).result == b'"at last"'
        assert [job async for job in app.jobs.dead()] == []


async def test_a_snoozed_job_comes_again_and_uses_no_retry(app: Baton):
    """After a time, or at one; its state is kept meanwhile."""
    until = datetime.now(UTC) + timedelta(hours=3)

    @app.job("poll", retry=1)
    async def poll(context: Context) -> int:
        tries = context.state.json({"tries": 0})["tries"] + 1
        if tries == 1:
            raise Snooze(after="1h", state={"tries": tries})
        if tries == 2:
            raise Snooze(until=until, state={"tries": tries})
        return tries

    async with FakeSidecar.beside(app) as sidecar:
        job_id = (await app.jobs.submit("poll", key="a")).id
        await sidecar.advance(timedelta(minutes=59))
        assert (await app.jobs.get(job_id)).attempt == 1
        await sidecar.advance(timedelta(minutes=1))
        await sidecar.advance(timedelta(hours=1))
        assert (await app.jobs.get(job_id)).attempt == 2
        await sidecar.advance(timedelta(hours=2))
        job = await app.jobs.get(job_id)
        assert (job.result, job.failures) == (b"3", 0)
    with pytest.raises(ValueError, match="either after or until"):
        Snooze()


async def test_final_failures_and_declined_jobs(app: Baton):
    """Fail is a dead letter at once; Skip is no error."""

    @app.job("mail")
    async def mail(context: Context) -> None:
        raise Fail("no address") if context.json() else Skip("nothing to send")

    async with FakeSidecar.beside(app):
        failed = await app.jobs.wait((await app.jobs.submit("mail", 1)).id, timeout=20)
        skipped = await app.jobs.wait((await app.jobs.submit("mail", 0)).id, timeout=20)
        assert (failed.outcome, failed.error) == (pb.OUTCOME_FAILED, "no address")
        assert skipped.reason == pb.SKIP_REASON_APP_DECLINED
        assert await app.jobs.discard(failed.job_id) == 1
        with pytest.raises(NotFound):
            await app.jobs.get(failed.job_id)


async def test_follow_up_jobs_are_submitted_with_the_outcome(app: Baton):
    """With the defaults that the app declared for them."""
    done: list[str] = []

    @app.job("order")
    async def order(context: Context) -> Result:
        return Result("ok", jobs=[JobSpec("mail", {"n": n}) for n in range(2)])

    @app.job("mail", queue="mails")
    async def mail(context: Context) -> None:
        done.append(f"{context.queue} {context.json()['n']}")

    async with FakeSidecar.beside(app) as sidecar:
        await app.jobs.submit("order")
        await sidecar.settle()
        await eventually(lambda: len(done) == 2)
    assert done == ["mails 0", "mails 1"]


async def test_jobs_of_one_key_run_one_at_a_time_and_share_state(app: Baton):
    """G16: in the order of submission; others overlap."""
    open_now: list[int] = []

    @app.job("count")
    async def count(context: Context) -> Result:
        assert open_now == []
        open_now.append(context.run_id)
        await asyncio.sleep(0.02)
        total = context.state.json({"sum": 0})["sum"] + context.json()
        open_now.clear()
        return Result(total, state={"sum": total})

    async with FakeSidecar.beside(app) as sidecar:
        specs = [JobSpec("count", n, key="a") for n in (1, 2, 3)]
        submitted = await app.jobs.submit_many(specs)
        await sidecar.settle()
        jobs = [await app.jobs.wait(one.id, timeout=20) for one in submitted]
        assert [job.result for job in jobs] == [b"1", b"3", b"6"]
        assert sidecar.state("job-state:count/a") == b'{"sum":6}'


async def test_put_state_of_a_keyed_job(app: Baton):
    @app.job("count")
    async def count(context: Context) -> None:
        await context.put_state({"now": context.key})

    async with FakeSidecar.beside(app) as sidecar:
        await app.jobs.wait((await app.jobs.submit("count", key="a")).id, timeout=20)
        assert sidecar.state("job-state:count/a") == b'{"now":"a"}'


async def test_a_job_whose_process_goes_is_taken_over_with_its_steps(app: Baton):
    """G14: no retry is used, and what was done is not done again."""
    charged: list[int] = []
    begun = asyncio.Event()

    @app.job("order", retry=1)
    async def order(context: Context) -> int:
        await context.step("charge", lambda: charged.append(1))
        begun.set()
        if context.rescues == 0:
            await asyncio.sleep(60)
        return context.attempt

    async with FakeSidecar.beside(app) as sidecar:
        submitted = await app.jobs.submit("order")
        await begun.wait()
        sidecar.detach()
        job = await app.jobs.wait(submitted.id, timeout=20)
        assert (job.result, job.rescues, job.failures) == (b"2", 1, 0)
    assert charged == [1]


async def test_unique_jobs(app: Baton):
    """The earlier one is found, gets the new payload, or refuses the call."""
    app.job("report")(lambda context: context.json())
    async with FakeSidecar.beside(app) as sidecar:
        first = await app.jobs.submit("report", 1, delay="1h", unique=Unique("daily"))
        again = await app.jobs.submit("report", 2, delay="1h", unique=Unique("daily"))
        assert (again.id, again.duplicate) == (first.id, True)
        replace = Unique("daily", on_conflict="replace")
        await app.jobs.submit("report", 3, delay="2h", unique=replace)
        with pytest.raises(AlreadyExists):
            await app.jobs.submit("report", 4, unique=Unique("daily", on_conflict="reject"))
        await sidecar.advance("2h")
        assert (await app.jobs.get(first.id)).result == b"3"
        after = await app.jobs.submit("report", 5, unique=Unique("daily"))
        assert not after.duplicate
    with pytest.raises(ValueError, match="on_conflict"):
        Unique(on_conflict="ignore")


async def test_a_repeated_submit_stores_once(app: Baton):
    async with FakeSidecar.beside(app) as sidecar:
        ids = [(await app.jobs.submit("x", request_id="one")).id for _ in range(2)]
        assert ids[0] == ids[1]
        assert len(sidecar.jobs()) == 1
        with pytest.raises(InvalidArgument):
            await app.jobs.submit_many([])


async def test_a_paused_queue_starts_nothing(app: Baton):
    app.job("mail")(lambda context: None)
    async with FakeSidecar.beside(app) as sidecar:
        assert (await app.jobs.pause_queue("default", "maintenance")).paused
        job_id = (await app.jobs.submit("mail")).id
        await sidecar.settle()
        (queue,) = await app.jobs.stats()
        assert (queue.name, queue.ready, queue.pause_note) == ("default", 1, "maintenance")
        with pytest.raises(DeadlineExceeded):
            await app.jobs.wait(job_id, timeout=0.2)
        assert not (await app.jobs.resume_queue("default")).paused
        await app.jobs.wait(job_id, timeout=20)


async def test_cancelled_and_expired_jobs_are_skipped(app: Baton):
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.job("slow")
    async def slow(context: Context) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async with FakeSidecar.beside(app) as sidecar:
        running = (await app.jobs.submit("slow")).id
        waiting = (await app.jobs.submit("slow", delay="1h", labels={"a": "b"})).id
        await begun.wait()
        changes = asyncio.create_task(_states(app, running))
        assert (await app.jobs.cancel(labels={"a": "b"})).cancelled == 1
        assert (await app.jobs.cancel(running, note="enough")).requested == 1
        await stopped.wait()
        for job_id in (running, waiting):
            job = await app.jobs.wait(job_id, timeout=20)
            assert job.reason == pb.SKIP_REASON_OPERATOR
        assert (await changes)[-1] == pb.RUN_STATE_ENDED
        late = sidecar._jobs.clock.now + timedelta(minutes=1)
        expiring = await app.jobs.submit("slow", delay="1h", expires_at=late)
        await sidecar.advance("1h")
        assert (await app.jobs.get(expiring.id)).reason == pb.SKIP_REASON_EXPIRED


async def _states(app: Baton, job_id: int) -> list[int]:
    return [job.state async for job in app.jobs.watch(job_id)]


async def test_a_batch_is_counted_and_completed(app: Baton):
    done: list[str] = []

    @app.job("part")
    @app.job("sum-up")
    async def part(context: Context) -> None:
        done.append(context.name)

    async with FakeSidecar.beside(app) as sidecar:
        specs = [JobSpec("part", n, batch="b1") for n in range(3)]
        await app.jobs.submit_many(specs, close_batch="b1", on_complete=JobSpec("sum-up"))
        await sidecar.settle()
        await eventually(lambda: len(done) == 4)
        batch = await app.jobs.batch("b1")
        assert (batch.total, batch.succeeded, batch.complete) == (3, 3, True)
    assert done == ["part", "part", "part", "sum-up"]


async def test_jobs_are_listed_by_what_they_have(app: Baton):
    async with FakeSidecar.beside(app):
        for n in range(3):
            await app.jobs.submit("mail", n, labels={"n": str(n)}, queue="q" if n else "")
        found = [job async for job in app.jobs.list(queue="q")]
        assert [job.labels["n"] for job in found] == ["2", "1"]
        (only,) = [job async for job in app.jobs.list(labels={"n": "1"})]
        assert not only.payload
        moved = await app.jobs.reschedule(only.job_id, datetime(2030, 1, 1, tzinfo=UTC))
        assert moved.due_at.ToDatetime(tzinfo=UTC).year == 2030


async def test_a_process_takes_no_more_jobs_than_its_capacity():
    app, open_now, most = Baton(capacity=2), 0, 0

    @app.job("work")
    async def work(context: Context) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.02)
        open_now -= 1

    async with FakeSidecar.beside(app) as sidecar:
        await app.jobs.submit_many([JobSpec("work", n) for n in range(10)])
        await sidecar.settle()
        await eventually(lambda: all(job.finished_at.seconds for job in sidecar.jobs()))
    assert most == 2


async def test_a_draining_process_tells_its_jobs(app: Baton):
    """G18: a job learns that the process leaves, and what does not end is handed back."""
    begun = asyncio.Event()

    @app.job("slow")
    async def slow(context: Context) -> str:
        begun.set()
        await context.wait_draining()
        return "stopped early"

    async with FakeSidecar() as sidecar:
        async with app.attached(sidecar.address, drain_seconds=10):
            job_id = (await app.jobs.submit("slow")).id
            await begun.wait()
        (job,) = sidecar.jobs()
        assert (job.job_id, job.result) == (job_id, b'"stopped early"')


def test_a_spec_takes_the_defaults_of_its_name():
    """What the job says itself wins; the rest is the app's."""
    options = JobOptions("mails", "high", 5, "10s")
    spec = JobSpec("mail", {"a": 1}, priority="low", delay=90).completed(options)
    message = spec.message()
    assert message == job_types_pb2.JobSpec(
        name="mail",
        payload=b'{"a":1}',
        queue="mails",
        priority=job_types_pb2.JOB_PRIORITY_LOW,
        delay=timedelta(seconds=90),
        retry=RetryPolicy(attempts=5),
        timeout=timedelta(seconds=10),
    )
    with pytest.raises(ValueError, match="exclude each other"):
        JobSpec("mail", due_at=datetime.now(UTC), delay=1)
    with pytest.raises(ValueError, match="priority"):
        JobSpec("mail", priority="urgent")
    with pytest.raises(ValueError, match="no duration"):
        JobSpec("mail", timeout="soon").message()


async def test_waiting_for_an_unknown_job_fails(app: Baton):
    async with FakeSidecar.beside(app):
        with pytest.raises(NotFound):
            await app.jobs.wait(7)
        assert isinstance(await app.jobs.cancel(7), jobs_pb2.JobsCancelResponse)


async def test_a_retry_may_say_when(app: Baton):
    @app.job("later")
    async def later(context: Context) -> int:
        if context.attempt == 1:
            raise Retry("busy", after="10m")
        return context.attempt

    async with FakeSidecar.beside(app) as sidecar:
        job_id = (await app.jobs.submit("later")).id
        await sidecar.advance("9m")
        assert (await app.jobs.get(job_id)).attempt == 1
        assert (await app.jobs.retry(job_id)).job_id == job_id
        assert (await app.jobs.wait(job_id, timeout=20)).result == b"2"
