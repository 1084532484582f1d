"""Dead letters, queue settings and the separation of clusters, over gRPC, on a real Postgres."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar._proto.baton.v1 import jobs_pb2 as pb
from sidecar._proto.baton.v1 import runs_pb2
from sidecar.model.definitions import Retry
from sidecar.model.job_queue import QueueSettings
from tests.integration.jobs_api_lab import Api, Code, Spec, refused, serve


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(database_url, tmp_path) as api:
        yield api


async def dead(api: Api, **wanted: Any) -> list[int]:
    request = pb.JobsListDeadRequest(filter=pb.JobFilter(**wanted))
    return [job.job_id for job in (await api.stub.ListDead(request)).jobs]


async def buried(api: Api, *jobs: Spec) -> list[int]:
    ids = await api.submit(*jobs)
    for number, job_id in enumerate(ids):
        await api.bury(job_id, f"error {number}")
    return ids


async def test_dead_letters_are_shown_without_payloads(api: Api) -> None:
    one, two = await buried(
        api, Spec(name="a", payload=b"p", labels={"t": "1"}, queue="q"), Spec(name="b")
    )
    found = (await api.stub.ListDead(pb.JobsListDeadRequest())).jobs
    assert [job.job_id for job in found] == [two, one]
    assert (found[1].payload, found[1].error, found[1].outcome) == (
        b"",
        "error 0",
        runs_pb2.OUTCOME_FAILED,
    )
    assert await dead(api, labels={"t": "1"}) == [one]
    assert await dead(api, error_contains="error 1") == [two]
    assert await dead(api, queue="q", name="a", outcome=runs_pb2.OUTCOME_FAILED) == [one]
    assert (await api.get(one)).payload == b"p"
    call = api.stub.ListDead(
        pb.JobsListDeadRequest(filter=pb.JobFilter(state=runs_pb2.RUN_STATE_QUEUED))
    )
    assert await refused(call) == (Code.INVALID_ARGUMENT, "filter.state")


async def test_replay_keeps_id_and_history_and_gives_all_retries(api: Api) -> None:
    (job_id,) = await buried(api, Spec(name="m", payload=b"p", labels={"t": "1"}, batch="b"))
    await api.sql("DELETE FROM baton.job_body")  # its day was dropped
    request = pb.JobsReplayRequest(job_ids=[job_id], dry_run=True)
    assert (await api.stub.Replay(request)).replayed == 1
    assert await dead(api) == [job_id]
    request.dry_run = False
    assert (await api.stub.Replay(request)).replayed == 1
    assert await dead(api) == []
    job = await api.get(job_id)
    assert (job.state, job.outcome) == (runs_pb2.RUN_STATE_WAITING, 0)
    assert (job.attempt, job.failures, job.rescues) == (3, 0, 0)
    assert (job.payload, dict(job.labels)) == (b"p", {"t": "1"})
    assert [event.cause for event in job.history] == ["error 0", "replayed"]
    batch = await api.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
    assert (batch.total, batch.failed) == (1, 0)
    assert (await api.stub.Replay(request)).replayed == 0  # it is no dead letter any more


async def test_a_replayed_job_with_a_key_waits_for_the_leader(api: Api) -> None:
    """G16."""
    (job_id,) = await buried(api, Spec(name="m", key="k"))
    await api.stub.Replay(pb.JobsReplayRequest(job_ids=[job_id]))
    assert await api.sql("SELECT state FROM baton.job") == [{"state": "parked"}]


async def test_replay_by_filter(api: Api) -> None:
    ids = await buried(api, Spec(name="a"), Spec(name="b"), Spec(name="a"))
    request = pb.JobsReplayRequest(filter=pb.JobFilter(name="a", error_contains="error 2"))
    assert (await api.stub.Replay(request)).replayed == 1
    assert await dead(api) == [ids[1], ids[0]]
    # That dead letters have failed restricts nothing.
    everything = pb.JobFilter(outcome=runs_pb2.OUTCOME_FAILED)
    call = api.stub.Replay(pb.JobsReplayRequest(filter=everything))
    assert await refused(call) == (Code.INVALID_ARGUMENT, "filter")


async def test_discard_leaves_the_history(api: Api) -> None:
    """G13: a discarded dead letter has the outcome failed, and only that."""
    one, two = await buried(api, Spec(name="a"), Spec(name="b"))
    await api.sql(
        "INSERT INTO baton.job_checkpoint VALUES (%(id)s, 1, 'step', '')",
        id=one,
    )
    await api.sql("UPDATE baton.job_dead SET checkpoint_count = 1 WHERE id = %(id)s", id=one)
    wanted = pb.JobFilter(name="a")
    assert (
        await api.stub.Discard(pb.JobsDiscardRequest(filter=wanted, dry_run=True))
    ).discarded == 1
    assert await dead(api) == [two, one]
    assert (await api.stub.Discard(pb.JobsDiscardRequest(filter=wanted))).discarded == 1
    assert await dead(api) == [two]
    job = await api.get(one)
    assert (job.outcome, job.error) == (runs_pb2.OUTCOME_FAILED, "error 0")
    assert [event.cause for event in job.history] == ["error 0", "discarded"]
    assert await api.sql("SELECT FROM baton.job_checkpoint") == []


async def test_queue_settings_follow_the_configuration(api: Api) -> None:
    mail = QueueSettings("mail", 5, 10, 2, 100.0, Retry(7, 2.0, 30.0), 60.0)
    assert await api.store.configure_queues([mail, QueueSettings("plain")]) == 2
    assert await api.store.configure_queues([mail, QueueSettings("plain")]) == 0
    await api.stub.PauseQueue(pb.JobsPauseQueueRequest(queue="mail"))
    queue = (await api.stub.Stats(pb.JobsStatsRequest(queue="mail"))).queues[0]
    assert (queue.max_running, queue.cluster_max_running, queue.rate) == (5, 10, 100.0)
    (job_id,) = await api.submit(Spec(name="m", queue="mail"))
    assert await api.sql("SELECT state FROM baton.job") == [{"state": "parked"}]
    await api.store.configure_queues([QueueSettings("plain")])
    rows = await api.sql("SELECT * FROM baton.job_queue WHERE name = 'mail'")
    assert (rows[0]["cluster_max_running"], rows[0]["rate"], rows[0]["attempts"]) == (0, 0, None)
    assert rows[0]["paused"]  # an operator's word, not the file's
    assert (await api.get(job_id)).blocked_by == "paused"
    assert await api.store.configure_queues([]) == 0


async def test_clusters_are_apart(api: Api, database_url: str, tmp_path: Path) -> None:
    """Neither sees, finds or changes what is the other's, with the same names in both."""
    (live,) = await api.submit(Spec(name="m", batch="b"), request_id="r")
    (gone,) = await buried(api, Spec(name="m"))
    await api.stub.PauseQueue(pb.JobsPauseQueueRequest(queue="default"))
    async with serve(database_url, tmp_path, cluster="neighbour") as other:
        (theirs,) = await other.submit(Spec(name="m"), request_id="r")
        assert theirs != live
        assert (await refused(other.get(live)))[0] is Code.NOT_FOUND
        listed = await other.stub.List(pb.JobsListRequest())
        assert [job.job_id for job in listed.jobs] == [theirs]
        assert await dead(other) == []
        for ids in ([live, gone], [live]):
            done = await other.stub.Cancel(pb.JobsCancelRequest(job_ids=ids))
            assert (done.cancelled, done.requested) == (0, 0)
            assert (await other.stub.Replay(pb.JobsReplayRequest(job_ids=ids))).replayed == 0
            assert (await other.stub.Discard(pb.JobsDiscardRequest(job_ids=ids))).discarded == 0
        retry = other.stub.Retry(pb.JobsRetryRequest(job_id=live))
        assert (await refused(retry))[0] is Code.NOT_FOUND
        batch = other.stub.GetBatch(pb.JobsGetBatchRequest(batch="b"))
        assert (await refused(batch))[0] is Code.NOT_FOUND
        (queue,) = (await other.stub.Stats(pb.JobsStatsRequest())).queues
        assert (queue.ready, queue.dead, queue.paused) == (1, 0, False)
    assert (await api.get(live)).state == runs_pb2.RUN_STATE_QUEUED
    assert await dead(api) == [gone]
