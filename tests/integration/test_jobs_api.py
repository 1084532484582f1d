"""The Jobs service apart from Submit, over gRPC, on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import time
from typing import Any, cast

import pytest

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import runs_pb2
from tests.integration.jobs_api_lab import Api, Code, Spec, at, refused, seconds, serve

QUEUED, RUNNING = runs_pb2.RUN_STATE_QUEUED, runs_pb2.RUN_STATE_RUNNING
WAITING, ENDED = runs_pb2.RUN_STATE_WAITING, runs_pb2.RUN_STATE_ENDED
UNKNOWN = 4_000_000_000_000
LONG = "x" * 256


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(database_url, tmp_path) as api:
        yield api


# ── Get and Watch ───────────────────────────────────────────────────────────────────────────────


async def test_get_shows_each_state(api: Api) -> None:
    (job_id,) = await api.submit()
    assert (await api.get(job_id)).state == QUEUED
    await api.start(job_id)
    job = await api.get(job_id)
    assert (job.state, job.attempt, job.runner_id) == (RUNNING, 1, "pod-7")
    await api.wait_for_retry(job_id)
    job = await api.get(job_id)
    assert (job.state, job.failures, job.error) == (WAITING, 1, "boom")
    assert [(event.cause, event.runner_id) for event in job.history] == [("boom", "pod-7")]
    assert job.runner_id == "pod-7"
    await api.succeed(job_id, b"42")
    job = await api.get(job_id)
    assert (job.state, job.outcome, job.result) == (ENDED, runs_pb2.OUTCOME_SUCCEEDED, b"42")
    assert job.HasField("finished_at")


@pytest.mark.parametrize(
    ("job_id", "wait", "expected"),
    [
        (UNKNOWN, 0, (Code.NOT_FOUND, "")),
        (0, 0, (Code.INVALID_ARGUMENT, "job_id")),
        (2**63, 0, (Code.INVALID_ARGUMENT, "job_id")),
        (1, 61, (Code.INVALID_ARGUMENT, "wait")),
        (1, -1, (Code.INVALID_ARGUMENT, "wait")),
    ],
)
async def test_get_refuses(api: Api, job_id: int, wait: float, expected: tuple[Code, str]) -> None:
    assert await refused(api.get(job_id, wait)) == expected


async def test_get_waits_for_the_end(api: Api) -> None:
    job_id, other = await api.submit(Spec(name="a"), Spec(name="b"))
    waits = [asyncio.ensure_future(api.get(job_id, 60)) for _ in range(20)]
    await asyncio.sleep(0.2)
    await api.start(job_id)  # a change that is not the end
    await asyncio.sleep(0.2)
    assert not any(wait.done() for wait in waits)
    await api.succeed(job_id, b"done")
    async with asyncio.timeout(30):
        assert {job.result for job in await asyncio.gather(*waits)} == {b"done"}
    assert (await api.get(other, 0.3)).state == QUEUED  # the time is up


async def test_watch_shows_each_change_until_the_end(api: Api) -> None:
    (job_id,) = await api.submit()
    shown: list[pb.Job] = []
    stream = api.stub.Watch(pb.JobsWatchRequest(job_id=job_id))

    async def follow() -> None:
        async for message in stream:
            shown.append(message.job)  # noqa: PERF401 - seen one by one

    async def until(count: int) -> None:
        while len(shown) < count:  # noqa: ASYNC110 - the stream is what tells
            await asyncio.sleep(0.02)

    async with asyncio.timeout(60):
        following = asyncio.ensure_future(follow())
        await until(1)
        await api.start(job_id)
        await until(2)
        await api.sql("UPDATE baton.job SET progress = 0.5, progress_message = 'half'")
        await until(3)
        await api.succeed(job_id)
        await following
    assert [job.state for job in shown] == [QUEUED, RUNNING, RUNNING, ENDED]
    assert (shown[2].progress, shown[2].progress_message) == (0.5, "half")


async def test_watch_of_a_job_that_is_not_there(api: Api) -> None:
    async def first(job_id: int) -> None:
        async for _ in api.stub.Watch(pb.JobsWatchRequest(job_id=job_id)):
            return

    assert (await refused(first(UNKNOWN)))[0] is Code.NOT_FOUND
    assert await refused(first(0)) == (Code.INVALID_ARGUMENT, "job_id")


# ── List ────────────────────────────────────────────────────────────────────────────────────────


async def listed(api: Api, **wanted: Any) -> list[int]:
    request = pb.JobsListRequest(filter=pb.JobFilter(**wanted))
    return [job.job_id for job in (await api.stub.List(request)).jobs]


async def test_list_filters(api: Api) -> None:
    ids = await api.submit(
        Spec(name="a", queue="q1", key="k", labels={"t": "1", "u": "2"}, payload=b"p"),
        Spec(name="b", queue="q1", batch="x"),
        Spec(name="a", queue="q2", labels={"t": "2"}),
        Spec(name="c", labels={"t": "1"}),
        Spec(name="d"),
    )
    await api.start(ids[1])
    await api.wait_for_retry(ids[2])
    await api.bury(ids[3], "no such host")
    await api.succeed(ids[4])
    newest_first = list(reversed(ids))
    assert await listed(api) == newest_first
    assert await listed(api, name="a") == [ids[2], ids[0]]
    assert await listed(api, queue="q1") == [ids[1], ids[0]]
    assert await listed(api, key="k") == [ids[0]]
    assert await listed(api, batch="x") == [ids[1]]
    assert await listed(api, labels={"t": "1"}) == [ids[3], ids[0]]
    assert await listed(api, labels={"t": "1", "u": "2"}) == [ids[0]]
    for state, expected in ((QUEUED, [0]), (RUNNING, [1]), (WAITING, [2]), (ENDED, [4, 3])):
        assert await listed(api, state=state) == [ids[n] for n in expected]
    assert await listed(api, outcome=runs_pb2.OUTCOME_FAILED) == [ids[3]]
    assert await listed(api, outcome=runs_pb2.OUTCOME_SUCCEEDED) == [ids[4]]
    assert await listed(api, error_contains="such") == [ids[3]]
    assert await listed(api, error_contains="%") == []
    assert await listed(api, since=at(time() - 60), until=at(time() + 60)) == newest_first
    assert await listed(api, until=at(time() - 60)) == []
    assert await listed(api, since=at(time() + 60)) == []
    found = await api.stub.List(pb.JobsListRequest(filter=pb.JobFilter(key="k")))
    assert (found.jobs[0].payload, dict(found.jobs[0].labels)) == (b"", {"t": "1", "u": "2"})


@pytest.mark.parametrize("method", ["List", "ListDead"])
async def test_pages(api: Api, method: str) -> None:
    ids = await api.submit(*[Spec(name="m")] * 7)
    for job_id in ids if method == "ListDead" else ids[:3]:
        await api.bury(job_id)
    request = getattr(pb, f"Jobs{method}Request")
    found: list[int] = []
    token = ""
    while True:
        page = await getattr(api.stub, method)(request(page_size=3, page_token=token))
        found += [job.job_id for job in page.jobs]
        token = page.next_page_token
        if not token:
            break
    assert found == list(reversed(ids))


async def test_forged_page_tokens(api: Api) -> None:
    """G11: a token is valid for the list that it was issued for, and for no other."""
    await api.submit(*[Spec(name="m")] * 3)
    token = (await api.stub.List(pb.JobsListRequest(page_size=1))).next_page_token
    bad = (Code.INVALID_ARGUMENT, "page_token")
    for forged in ("x", token[:-4], token + "AAAA", "AAAAAAAAMQ==", "\u00e9"):
        assert await refused(api.stub.List(pb.JobsListRequest(page_token=forged))) == bad
    other = pb.JobsListRequest(page_token=token, filter=pb.JobFilter(name="m"))
    assert await refused(api.stub.List(other)) == bad
    assert await refused(api.stub.ListDead(pb.JobsListDeadRequest(page_token=token))) == bad


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_size": 1001}, "page_size"),
        ({"filter": pb.JobFilter(name="\x00")}, "filter.name"),
        ({"filter": pb.JobFilter(key=LONG)}, "filter.key"),
        ({"filter": pb.JobFilter(state=cast(Any, 99))}, "filter.state"),
        ({"filter": pb.JobFilter(outcome=cast(Any, 99))}, "filter.outcome"),
        ({"filter": pb.JobFilter(since=at(10**12))}, "filter.since"),
        ({"filter": pb.JobFilter(since=at(10), until=at(5))}, "filter.until"),
        ({"filter": pb.JobFilter(labels={"": ""})}, "filter.labels: a key"),
    ],
)
async def test_a_bad_list_names_the_field(api: Api, fields: dict[str, Any], field: str) -> None:
    """G11."""
    expected = (Code.INVALID_ARGUMENT, field)
    assert await refused(api.stub.List(pb.JobsListRequest(**fields))) == expected
    assert await refused(api.stub.ListDead(pb.JobsListDeadRequest(**fields))) == expected


# ── Cancel, Retry, Reschedule ───────────────────────────────────────────────────────────────────


async def test_cancel_ends_a_queued_job_and_asks_a_running_one(api: Api) -> None:
    """G13: a cancelled job is skipped, reason OPERATOR."""
    queued, running, ended = await api.submit(*[Spec(name="m")] * 3)
    await api.start(running)
    await api.succeed(ended)
    request = pb.JobsCancelRequest(job_ids=[queued, running, ended, UNKNOWN, queued], note="stop")
    hints = api.lab.hints.subscribe("jobs")
    answer = await api.stub.Cancel(request)
    assert (answer.cancelled, answer.requested) == (1, 1)
    assert "cancel" in hints.details()  # the worker looks at once
    job = await api.get(queued)
    assert (job.outcome, job.reason) == (
        runs_pb2.OUTCOME_SKIPPED,
        runs_pb2.SKIP_REASON_OPERATOR,
    )
    assert job.history[-1].cause == "cancelled: stop"
    job = await api.get(running)
    assert (job.state, job.cancel_requested) == (RUNNING, True)
    assert (await api.get(ended)).outcome == runs_pb2.OUTCOME_SUCCEEDED


async def test_cancel_by_filter(api: Api) -> None:
    ids = await api.submit(
        Spec(name="a", labels={"t": "1"}), Spec(name="a"), Spec(name="b", labels={"t": "1"})
    )
    wanted = pb.JobFilter(name="a", labels={"t": "1"})
    assert (await api.stub.Cancel(pb.JobsCancelRequest(filter=wanted))).cancelled == 1
    assert (await api.get(ids[0])).state == ENDED
    assert await listed(api, state=QUEUED) == [ids[2], ids[1]]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "filter"),
        ({"filter": pb.JobFilter()}, "filter"),
        ({"job_ids": [1], "filter": pb.JobFilter(name="a")}, "filter"),
        ({"job_ids": [0]}, "job_ids[0]"),
        ({"job_ids": range(1, 1002)}, "job_ids"),
        ({"filter": pb.JobFilter(queue="\x00")}, "filter.queue"),
    ],
)
async def test_a_bad_selection_changes_nothing(
    api: Api, fields: dict[str, Any], field: str
) -> None:
    """G11: above all, an empty request does not cancel or discard everything."""
    live, buried = await api.submit(*[Spec(name="m")] * 2)
    await api.bury(buried)
    expected = (Code.INVALID_ARGUMENT, field)
    assert await refused(api.stub.Cancel(pb.JobsCancelRequest(**fields))) == expected
    assert await refused(api.stub.Replay(pb.JobsReplayRequest(**fields))) == expected
    assert await refused(api.stub.Discard(pb.JobsDiscardRequest(**fields))) == expected
    assert [(await api.get(n)).state for n in (live, buried)] == [QUEUED, ENDED]
    assert len((await api.stub.ListDead(pb.JobsListDeadRequest())).jobs) == 1


async def test_cancel_of_ended_jobs_is_refused(api: Api) -> None:
    for wanted in (pb.JobFilter(state=ENDED), pb.JobFilter(outcome=runs_pb2.OUTCOME_FAILED)):
        call = api.stub.Cancel(pb.JobsCancelRequest(filter=wanted))
        assert await refused(call) == (Code.INVALID_ARGUMENT, "filter")
    call = api.stub.Cancel(pb.JobsCancelRequest(filter=pb.JobFilter(error_contains="x")))
    assert await refused(call) == (Code.INVALID_ARGUMENT, "filter.error_contains")
    note = pb.JobsCancelRequest(job_ids=[1], note=LONG)
    assert await refused(api.stub.Cancel(note)) == (Code.INVALID_ARGUMENT, "note")


async def test_retry_only_of_a_job_that_waits(api: Api) -> None:
    (job_id,) = await api.submit()
    request = pb.JobsRetryRequest(job_id=job_id)
    assert (await refused(api.stub.Retry(request)))[0] is Code.FAILED_PRECONDITION
    await api.wait_for_retry(job_id)
    job = (await api.stub.Retry(request)).job
    assert abs(job.due_at.seconds - time()) < 60
    await api.start(job_id)
    assert (await refused(api.stub.Retry(request)))[0] is Code.FAILED_PRECONDITION
    await api.bury(job_id)
    assert (await refused(api.stub.Retry(request)))[0] is Code.FAILED_PRECONDITION
    unknown = api.stub.Retry(pb.JobsRetryRequest(job_id=UNKNOWN))
    assert (await refused(unknown))[0] is Code.NOT_FOUND


async def test_reschedule(api: Api) -> None:
    def to(due_at: Any) -> Any:
        return api.stub.Reschedule(pb.JobsRescheduleRequest(job_id=job_id, due_at=due_at))

    (job_id,) = await api.submit()
    later = at(time() + 3600)
    assert (await to(later)).job.due_at == later
    assert abs((await to(at(1))).job.due_at.seconds - time()) < 60
    assert await refused(to(None)) == (Code.INVALID_ARGUMENT, "due_at")
    assert await refused(to(at(253_402_300_799))) == (Code.INVALID_ARGUMENT, "due_at")
    await api.start(job_id)
    assert (await refused(to(later)))[0] is Code.FAILED_PRECONDITION


async def test_a_rescheduled_job_frees_its_key(api: Api) -> None:
    """G16: admitted, then moved to tomorrow, it must not hold the key until then."""
    (job_id,) = await api.submit(Spec(name="m", key="k"))
    await api.sql("UPDATE baton.job SET state = 'ready', admitted = true")
    request = pb.JobsRescheduleRequest(job_id=job_id, due_at=at(time() + 3600))
    await api.stub.Reschedule(request)
    rows = await api.sql("SELECT state, admitted FROM baton.job")
    assert rows == [{"state": "parked", "admitted": False}]


# ── queues ──────────────────────────────────────────────────────────────────────────────────────


async def test_stats_and_pause(api: Api) -> None:
    ids = await api.submit(
        Spec(name="m", queue="a"),
        Spec(name="m", queue="a"),
        Spec(name="m", queue="a", delay=seconds(3600)),
        Spec(name="m", queue="b"),
        Spec(name="m", queue="b"),
    )
    await api.start(ids[1])
    await api.bury(ids[3])
    await api.succeed(ids[4])
    a, b = (await api.stub.Stats(pb.JobsStatsRequest())).queues
    assert (a.name, a.ready, a.scheduled, a.running, a.dead) == ("a", 1, 1, 1, 0)
    assert a.HasField("oldest_wait")
    assert (b.name, b.dead, b.ended_last_minute, b.failed_last_minute) == ("b", 1, 2, 1)
    request = pb.JobsPauseQueueRequest(queue="a", note="full")
    queue = (await api.stub.PauseQueue(request)).queue
    assert (queue.paused, queue.pause_note, queue.ready) == (True, "full", 1)
    assert (await api.get(ids[0])).blocked_by == "paused"
    only = (await api.stub.Stats(pb.JobsStatsRequest(queue="a"))).queues
    assert [queue.name for queue in only] == ["a"]
    queue = (await api.stub.ResumeQueue(pb.JobsResumeQueueRequest(queue="a"))).queue
    assert (queue.paused, queue.pause_note) == (False, "")
    assert (await api.get(ids[0])).blocked_by == ""
    queue = (await api.stub.ResumeQueue(pb.JobsResumeQueueRequest(queue="new"))).queue
    assert (queue.name, queue.paused) == ("new", False)


async def test_bad_queues(api: Api) -> None:
    for call in (
        api.stub.PauseQueue(pb.JobsPauseQueueRequest()),
        api.stub.PauseQueue(pb.JobsPauseQueueRequest(queue=LONG)),
        api.stub.ResumeQueue(pb.JobsResumeQueueRequest(queue="\x00")),
        api.stub.Stats(pb.JobsStatsRequest(queue="\n")),
    ):
        assert await refused(call) == (Code.INVALID_ARGUMENT, "queue")
    note = pb.JobsPauseQueueRequest(queue="a", note=LONG)
    assert await refused(api.stub.PauseQueue(note)) == (Code.INVALID_ARGUMENT, "note")


async def test_what_blocks_a_keyed_job(api: Api) -> None:
    first, second = await api.submit(*[Spec(name="m", key="k")] * 2)
    assert (await api.get(first)).blocked_by == ""
    assert (await api.get(second)).blocked_by == "key"
