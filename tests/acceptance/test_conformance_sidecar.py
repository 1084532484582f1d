"""The sidecar in memory that an app under test meets: real messages, real errors, no database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest

from devtools.servers import free_port
from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    deferreds_pb2_grpc,
    ids_pb2,
    ids_pb2_grpc,
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from sidecar.cli.conformance.fake_sidecar import FakeSidecar
from sidecar.model.run import Checkpoint, RunRef
from sidecar.model.term import Term

RUN = RunRef(7, 1, 99)


class Client:
    """A sidecar and the stubs of an app beside it."""

    def __init__(self, sidecar: FakeSidecar, channel: grpc.aio.Channel) -> None:
        self.sidecar = sidecar
        self.leadership = leadership_pb2_grpc.LeadershipStub(channel)
        self.state = state_pb2_grpc.StateStub(channel)
        self.runs = runs_pb2_grpc.RunsStub(channel)
        self.deferreds = deferreds_pb2_grpc.DeferredsStub(channel)
        self.ids = ids_pb2_grpc.IdsStub(channel)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    address = f"127.0.0.1:{free_port()}"
    sidecar = FakeSidecar(address)
    async with sidecar.serving(), grpc.aio.insecure_channel(address) as channel:
        yield Client(sidecar, channel)


def _ref(run: RunRef = RUN) -> runs_pb2.RunRef:
    return runs_pb2.RunRef(run_id=run.run_id, attempt=run.attempt, epoch=run.epoch)


async def test_trust_is_renewed_until_the_term_ends(client: Client) -> None:
    client.sidecar.election.grant(Term("default", 1, 99))
    watch = client.leadership.Watch(leadership_pb2.LeadershipWatchRequest(), timeout=10)
    told = aiter(watch)
    first, second = (await anext(told)).leader, (await anext(told)).leader
    assert (first.is_leader, first.epoch) == (second.is_leader, second.epoch) == (True, 99)
    gained = (
        second.trusted_until_boottime.ToTimedelta() - first.trusted_until_boottime.ToTimedelta()
    )
    assert gained.total_seconds() > 0.5
    client.sidecar.election.end()
    assert not (await anext(told)).leader.is_leader
    assert client.sidecar.election.watched


async def test_state_has_versions_owners_and_watchers(client: Client) -> None:
    watch = client.state.Watch(state_pb2.StateWatchRequest(prefix="a"), timeout=10)
    await watch.initial_metadata()
    told = aiter(watch)
    put = await client.state.Put(state_pb2.StatePutRequest(key="a/1", value=b"one"))
    with pytest.raises(grpc.aio.AioRpcError) as stale:
        await client.state.Put(state_pb2.StatePutRequest(key="a/1", expected_version=1))
    assert stale.value.code() is grpc.StatusCode.ABORTED
    with pytest.raises(grpc.aio.AioRpcError) as owned:
        await client.state.Put(state_pb2.StatePutRequest(key="singleton-state:s"))
    assert owned.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    page = await client.state.List(state_pb2.StateListRequest(prefix="a"))
    assert [entry.version for entry in page.entries] == [put.entry.version]
    assert (await client.state.Clear(state_pb2.StateClearRequest())).deleted == 1
    assert (await anext(told)).put.value == b"one"
    assert (await anext(told)).deleted.version > put.entry.version
    assert not (await client.state.Has(state_pb2.StateHasRequest(key="a/1"))).exists


async def test_only_a_live_run_is_served(client: Client) -> None:
    """A call on behalf of an attempt that is over is refused, and noted."""
    request = runs_pb2.RunsCheckpointRequest(run=_ref(), step="charge", value=b"paid")
    client.sidecar.runs.begin(RUN)
    await client.runs.Checkpoint(request)
    client.sidecar.runs.end(RUN)
    heard_at = client.sidecar.runs.heard_at(RUN)
    with pytest.raises(grpc.aio.AioRpcError) as fenced:
        await client.runs.Checkpoint(request)
    assert fenced.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert client.sidecar.runs.heard_at(RUN) > heard_at
    assert client.sidecar.runs.stored(RUN.run_id) == (Checkpoint("charge", b"paid"),)


async def test_a_deferred_ends_once(client: Client) -> None:
    client.sidecar.runs.begin(RUN)
    create = deferreds_pb2.DeferredsCreateRequest(name="approval", run=_ref())
    token = (await client.deferreds.Create(create)).token
    assert (await client.deferreds.Create(create)).token == token
    waiting = asyncio.ensure_future(
        client.deferreds.Await(deferreds_pb2.DeferredsAwaitRequest(token=token), timeout=10)
    )
    complete = deferreds_pb2.DeferredsCompleteRequest(token=token, value=b"yes")
    await client.deferreds.Complete(complete)
    assert (await waiting).deferred.value == b"yes"
    with pytest.raises(grpc.aio.AioRpcError) as second:
        await client.deferreds.Fail(deferreds_pb2.DeferredsFailRequest(token=token, error="no"))
    assert second.value.code() is grpc.StatusCode.ALREADY_EXISTS


async def test_ids_are_given_out(client: Client) -> None:
    ids = (await client.ids.Generate(ids_pb2.IdsGenerateRequest(count=100))).ids
    assert len(set(ids)) == 100
