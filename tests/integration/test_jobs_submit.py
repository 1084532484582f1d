"""Jobs.Submit over gRPC, on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import time
from typing import Any, cast

import grpc
import pytest

from sidecar._proto.baton.v1 import job_types_pb2, jobs_pb2_grpc, runs_pb2, schedules_pb2
from sidecar._proto.baton.v1 import jobs_pb2 as pb
from tests.integration.jobs_api_lab import Api, Code, Spec, Unique, at, refused, seconds, serve

YEAR = 366 * 86_400
EXISTING = job_types_pb2.JOB_CONFLICT_EXISTING
REPLACE = job_types_pb2.JOB_CONFLICT_REPLACE
REJECT = job_types_pb2.JOB_CONFLICT_REJECT


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(database_url, tmp_path) as api:
        yield api


async def count(api: Api) -> int:
    return int((await api.sql("SELECT count(*) AS n FROM baton.job"))[0]["n"])


# ── what is stored ──────────────────────────────────────────────────────────────────────────────


async def test_every_field_is_stored_and_shown(api: Api) -> None:
    retry = schedules_pb2.RetryPolicy(attempts=7, initial=seconds(2))
    spec = Spec(
        name="send-mail",
        payload=b"\x00\xff",
        content_type="application/octet-stream",
        queue="mail",
        priority=job_types_pb2.JOB_PRIORITY_HIGH,
        delay=seconds(3600),
        expires_at=at(time() + 7200),
        key='customer "7"',
        unique=Unique(key="once"),
        retry=retry,
        timeout=seconds(1.5),
        labels={"tenant": "a\\b"},
        batch="nightly",
    )
    (job_id,) = await api.submit(spec)
    job = await api.get(job_id)
    assert (job.name, job.queue, job.payload) == ("send-mail", "mail", b"\x00\xff")
    assert job.content_type == "application/octet-stream"
    assert job.priority == job_types_pb2.JOB_PRIORITY_HIGH
    assert (job.key, job.batch, dict(job.labels)) == (
        'customer "7"',
        "nightly",
        {"tenant": "a\\b"},
    )
    assert (job.state, job.outcome, job.attempt) == (runs_pb2.RUN_STATE_QUEUED, 0, 0)
    assert abs(job.due_at.seconds - job.created_at.seconds - 3600) <= 2
    assert job.expires_at.seconds == spec.expires_at.seconds
    assert job.idempotency_key.endswith(str(job_id))
    row = (await api.sql("SELECT * FROM baton.job_body"))[0]
    assert (row["attempts"], row["retry_initial"], row["retry_max"]) == (7, 2.0, 60.0)
    assert row["timeout"] == 1.5


async def test_defaults(api: Api) -> None:
    (job_id,) = await api.submit(Spec(name="mail"))
    job = await api.get(job_id)
    assert (job.queue, job.content_type) == ("default", "application/json")
    assert job.priority == job_types_pb2.JOB_PRIORITY_NORMAL
    assert abs(job.due_at.seconds - time()) < 60
    row = (await api.sql("SELECT attempts, timeout FROM baton.job_body"))[0]
    assert row == {"attempts": None, "timeout": None}


async def test_a_due_time_in_the_past_is_now(api: Api) -> None:
    (job_id,) = await api.submit(Spec(name="mail", due_at=at(1)))
    assert abs((await api.get(job_id)).due_at.seconds - time()) < 60


async def test_a_thousand_jobs_in_order(api: Api) -> None:
    ids = await api.submit(*(Spec(name="mail", payload=b"%d" % n) for n in range(1000)))
    assert len(set(ids)) == 1000
    assert (await api.get(ids[0])).payload == b"0"
    assert (await api.get(ids[999])).payload == b"999"


async def test_workers_are_woken_on_this_pod_and_on_others(api: Api) -> None:
    woken: list[None] = []
    api.wakeup.on_submit.append(lambda: woken.append(None))
    hints = api.lab.hints.subscribe("jobs")
    await asyncio.gather(*(api.submit() for _ in range(50)))
    assert len(woken) == 50
    assert await hints.wait(5)


# ── bad input ───────────────────────────────────────────────────────────────────────────────────

LONG = "x" * 256
BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": LONG}, "name"),
    ({"name": "a\x00b"}, "name"),
    ({"name": "line\nbreak"}, "name"),
    ({"payload": b"x" * (256 * 1024 + 1)}, "payload"),
    ({"content_type": LONG}, "content_type"),
    ({"queue": "q\x07"}, "queue"),
    ({"priority": 9}, "priority"),
    ({"due_at": at(253_402_300_799)}, "due_at"),
    ({"due_at": at(-62_135_596_801)}, "due_at"),
    ({"delay": seconds(-1)}, "delay"),
    ({"delay": seconds(11 * YEAR)}, "delay"),
    ({"expires_at": at(253_402_300_800)}, "expires_at"),
    ({"due_at": at(2_000_000_000), "expires_at": at(1_999_999_999)}, "expires_at"),
    ({"key": LONG}, "key"),
    ({"key": "\x1b[2J"}, "key"),
    ({"unique": Unique(key="\x00")}, "unique.key"),
    ({"unique": Unique(window=seconds(0))}, "unique.window"),
    ({"unique": Unique(window=seconds(11 * YEAR))}, "unique.window"),
    ({"unique": Unique(on_conflict=cast(Any, 7))}, "unique.on_conflict"),
    ({"retry": schedules_pb2.RetryPolicy(attempts=1001)}, "retry.attempts"),
    ({"retry": schedules_pb2.RetryPolicy(initial=seconds(0))}, "retry.initial"),
    ({"retry": schedules_pb2.RetryPolicy(initial=seconds(90))}, "retry.initial"),
    ({"timeout": seconds(0)}, "timeout"),
    ({"timeout": seconds(2 * YEAR)}, "timeout"),
    ({"labels": {f"k{n}": "" for n in range(17)}}, "labels"),
    ({"labels": {"": "v"}}, "labels: a key"),
    ({"labels": {"k": LONG}}, "labels: a value"),
    ({"batch": "\n"}, "batch"),
]


@pytest.mark.parametrize(("fields", "field"), BAD)
async def test_bad_input_names_the_field_and_stores_nothing(
    api: Api, fields: dict[str, Any], field: str
) -> None:
    """G11: the good job of the same call is not stored either."""
    bad = Spec(**{"name": "mail", **fields})
    request = pb.JobsSubmitRequest(jobs=[Spec(name="good"), bad])
    assert await refused(api.stub.Submit(request)) == (
        Code.INVALID_ARGUMENT,
        f"jobs[1].{field}",
    )
    assert await count(api) == 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"jobs": []}, "jobs"),
        ({"jobs": [Spec(name="m")] * 1001}, "jobs"),
        ({"request_id": LONG}, "request_id"),
        ({"request_id": "\x00"}, "request_id"),
        ({"on_complete": Spec(name="last")}, "on_complete"),
        ({"on_complete": Spec(name=""), "batch": "b"}, "on_complete.name"),
        ({"on_complete": Spec(name="last", batch="b"), "batch": "b"}, "on_complete.batch"),
        ({"batch": LONG}, "batch"),
    ],
)
async def test_a_bad_call_names_the_field(api: Api, fields: dict[str, Any], field: str) -> None:
    """G11."""
    request = pb.JobsSubmitRequest(**{"jobs": [Spec(name="mail")], **fields})
    assert await refused(api.stub.Submit(request)) == (Code.INVALID_ARGUMENT, field)
    assert await count(api) == 0


async def test_a_bad_call_does_not_fail_those_that_wait_with_it(api: Api) -> None:
    """Single submits share statements: each gets its own answer."""
    await api.submit(Spec(name="taken", unique=Unique(key="k")))
    await api.submit(Spec(name="first"), request_id="used")
    await api.submit(Spec(name="m", batch="closed"), batch="closed")
    rejected = Spec(name="taken", unique=Unique(key="k", on_conflict=REJECT))
    calls: list[Any] = []
    for _ in range(20):
        calls += [
            api.submit(Spec(name="good")),
            api.submit(Spec(name="bad\x00")),
            api.submit(rejected),
            api.submit(Spec(name="other"), request_id="used"),
            api.submit(Spec(name="late", batch="closed")),
        ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert len({answer[0] for answer in answers[0::5]}) == 20  # type: ignore[index]
    for start, code in (
        (1, Code.INVALID_ARGUMENT),
        (2, Code.ALREADY_EXISTS),
        (3, Code.INVALID_ARGUMENT),
        (4, Code.FAILED_PRECONDITION),
    ):
        errors = answers[start::5]
        assert {e.code() for e in errors if isinstance(e, grpc.aio.AioRpcError)} == {code}
        assert not [e for e in errors if not isinstance(e, grpc.aio.AioRpcError)]
    names = await api.sql("SELECT name, count(*) AS n FROM baton.job GROUP BY 1 ORDER BY 1")
    assert {row["name"]: row["n"] for row in names} == {"first": 1, "good": 20, "m": 1, "taken": 1}


# ── request_id ──────────────────────────────────────────────────────────────────────────────────


async def test_a_repeated_request_returns_what_the_first_did(api: Api) -> None:
    jobs = [Spec(name="mail", payload=b"1", delay=seconds(5)), Spec(name="mail", payload=b"2")]
    first = await api.submit(*jobs, request_id="r-1")
    assert await api.submit(*jobs, request_id="r-1") == first
    assert await count(api) == 2
    request = pb.JobsSubmitRequest(jobs=[Spec(name="other")], request_id="r-1")
    assert await refused(api.stub.Submit(request)) == (Code.INVALID_ARGUMENT, "request_id")


async def test_concurrent_calls_with_one_request_id_store_once(api: Api) -> None:
    """Also on two pods: their statements meet in the database."""
    async with grpc.aio.insecure_channel(api.address) as channel:
        other = jobs_pb2_grpc.JobsStub(channel)
        request = pb.JobsSubmitRequest(jobs=[Spec(name="mail")] * 3, request_id="r-1")
        calls = [stub.Submit(request) for stub in (api.stub, other) * 10]
        answers = await asyncio.gather(*calls)
    assert len({tuple(job.job_id for job in answer.jobs) for answer in answers}) == 1
    assert await count(api) == 3


async def test_a_repeated_request_with_a_unique_job_says_the_same(api: Api) -> None:
    """The job of the first call is not a duplicate of itself, nor rejected."""
    job = Spec(name="mail", unique=Unique(key="k", on_conflict=REJECT))
    request = pb.JobsSubmitRequest(jobs=[job], request_id="r-1")
    first, second = await api.stub.Submit(request), await api.stub.Submit(request)
    assert first == second
    assert not second.jobs[0].duplicate


async def test_a_request_id_may_be_used_again_after_a_day(api: Api) -> None:
    first = await api.submit(request_id="r-1")
    await api.sql("UPDATE baton.job_request SET requested_at = now() - interval '25 hours'")
    assert await api.submit(Spec(name="other"), request_id="r-1") != first
    assert await count(api) == 2


# ── unique ──────────────────────────────────────────────────────────────────────────────────────


async def submitted(api: Api, *jobs: Spec) -> list[tuple[int, bool]]:
    answer = await api.stub.Submit(pb.JobsSubmitRequest(jobs=jobs))
    return [(job.job_id, job.duplicate) for job in answer.jobs]


async def test_existing_while_live(api: Api) -> None:
    job = Spec(name="mail", payload=b"x", unique=Unique())
    [(first, _)] = await submitted(api, job)
    assert await submitted(api, job) == [(first, True)]
    other = Spec(name="mail", payload=b"y", unique=Unique())
    assert (await submitted(api, other))[0][1] is False
    await api.stub.Cancel(pb.JobsCancelRequest(job_ids=[first]))
    assert (await submitted(api, job))[0][1] is False


async def test_a_window_outlives_the_job(api: Api) -> None:
    job = Spec(name="mail", unique=Unique(key="k", window=seconds(3600)))
    [(first, _)] = await submitted(api, job)
    await api.stub.Cancel(pb.JobsCancelRequest(job_ids=[first]))
    assert await submitted(api, job) == [(first, True)]
    await api.sql("UPDATE baton.job_unique SET submitted_at = now() - interval '2 hours'")
    assert (await submitted(api, job))[0][1] is False


async def test_replace_changes_a_job_that_has_not_started(api: Api) -> None:
    [(first, _)] = await submitted(api, Spec(name="m", payload=b"old", unique=Unique(key="k")))
    new = Spec(
        name="m",
        payload=b"new",
        priority=job_types_pb2.JOB_PRIORITY_CRITICAL,
        delay=seconds(60),
        unique=Unique(key="k", on_conflict=REPLACE),
    )
    assert await submitted(api, new) == [(first, True)]
    job = await api.get(first)
    assert (job.payload, job.priority) == (b"new", job_types_pb2.JOB_PRIORITY_CRITICAL)
    await api.start(first)
    newer = Spec(name="m", payload=b"newer", unique=Unique(key="k", on_conflict=REPLACE))
    assert await submitted(api, newer) == [(first, True)]
    assert (await api.get(first)).payload == b"new"


async def test_replace_within_one_call_and_in_concurrent_ones(api: Api) -> None:
    def job(payload: bytes) -> Spec:
        unique = Unique(key="k", on_conflict=REPLACE)
        return Spec(name="m", payload=payload, unique=unique)

    one, two = await submitted(api, job(b"1"), job(b"2"))
    assert (two[0], two[1]) == (one[0], True)
    assert (await api.get(one[0])).payload == b"2"
    await asyncio.gather(*(submitted(api, job(b"%d" % n)) for n in range(10)))
    assert await submitted(api, job(b"last")) == [(one[0], True)]
    assert (await api.get(one[0])).payload == b"last"


async def test_reject_fails_the_whole_call(api: Api) -> None:
    job = Spec(name="mail", unique=Unique(key="k", on_conflict=REJECT))
    await api.submit(job)
    request = pb.JobsSubmitRequest(jobs=[Spec(name="good"), job])
    assert (await refused(api.stub.Submit(request)))[0] is Code.ALREADY_EXISTS
    assert await count(api) == 1


async def test_of_many_concurrent_unique_jobs_one_is_stored(api: Api) -> None:
    job = Spec(name="mail", unique=Unique(key="k", on_conflict=EXISTING))
    answers = await asyncio.gather(*(submitted(api, job) for _ in range(50)))
    assert len({job_id for [(job_id, _)] in answers}) == 1
    assert [duplicate for [(_, duplicate)] in answers].count(False) == 1
    assert await count(api) == 1


# ── batches ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_batch_is_complete_once_it_is_closed_and_all_jobs_have_ended(api: Api) -> None:
    first, second = await api.submit(*[Spec(name="part", batch="b")] * 2)
    await api.succeed(first)
    last = Spec(name="last", payload=b"\xff", queue="end", labels={"a": "b"}, delay=seconds(60))
    await api.submit(Spec(name="part", batch="b"), batch="b", on_complete=last)
    batch = await api.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
    assert (batch.total, batch.succeeded, batch.closed, batch.complete) == (3, 1, True, False)
    late = pb.JobsSubmitRequest(jobs=[Spec(name="part", batch="b")])
    assert (await refused(api.stub.Submit(late)))[0] is Code.FAILED_PRECONDITION
    again = pb.JobsSubmitRequest(jobs=[Spec(name="part")], batch="b")
    assert (await refused(api.stub.Submit(again)))[0] is Code.FAILED_PRECONDITION
    assert await count(api) == 2
    await api.bury(second)
    await api.stub.Cancel(pb.JobsCancelRequest(filter=pb.JobFilter(batch="b")))
    batch = await api.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
    assert (batch.succeeded, batch.failed, batch.skipped) == (1, 1, 1)
    assert batch.complete
    job = await api.get(batch.completion_job_id)
    assert (job.name, job.payload, job.queue, dict(job.labels)) == (
        "last",
        b"\xff",
        "end",
        {"a": "b"},
    )
    assert job.due_at.seconds - job.created_at.seconds >= 59


async def test_a_batch_that_has_ended_is_complete_when_it_is_closed(api: Api) -> None:
    (job_id,) = await api.submit(Spec(name="part", batch="b"))
    await api.succeed(job_id)
    await api.submit(Spec(name="other"), batch="b")
    batch = await api.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
    assert (batch.total, batch.complete, batch.completion_job_id) == (1, True, 0)


async def test_a_batch_that_never_was(api: Api) -> None:
    call = api.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
    assert (await refused(call))[0] is Code.NOT_FOUND
    call = api.stub.GetBatch(pb.JobsGetBatchRequest())
    assert await refused(call) == (Code.INVALID_ARGUMENT, "batch")
