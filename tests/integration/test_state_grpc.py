"""The State service over a real gRPC server, on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from sidecar._proto.baton.v1 import runs_pb2
from sidecar._proto.baton.v1 import state_pb2 as pb
from sidecar._proto.baton.v1.state_pb2_grpc import StateStub, add_StateServicer_to_server
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.state import StateService
from sidecar.adapters.postgres.listener import HintSubscription
from sidecar.adapters.tokens import Token
from sidecar.config.secret import SecretSource
from sidecar.state import NoCopies, StateStore, StateWatch
from tests.state_lab import StateLab, nobody_known, state_lab


@dataclass
class LocalHints:
    """Hints inside one process."""

    subscriptions: list[HintSubscription] = field(default_factory=list)

    def notify(self, topic: str, detail: str = "") -> None:
        for subscription in self.subscriptions:
            subscription.wake(detail)

    def subscribe(self, topic: str) -> HintSubscription:
        self.subscriptions.append(HintSubscription())
        return self.subscriptions[-1]

    def unsubscribe(self, topic: str, subscription: HintSubscription) -> None:
        self.subscriptions.remove(subscription)


@pytest.fixture
async def lab(database_url: str) -> StateLab:
    return await state_lab(database_url)


@pytest.fixture
def hints() -> LocalHints:
    return LocalHints()


@pytest.fixture
async def state(
    lab: StateLab, hints: LocalHints, unused_tcp_port_factory: Callable[[], int]
) -> AsyncIterator[StateStub]:
    address = f"127.0.0.1:{unused_tcp_port_factory()}"
    async with lab.pod() as truth:
        store = StateStore(truth, NoCopies(), hints, nobody_known, monotonic=boottime)
        watch = StateWatch(truth, hints, monotonic=boottime)
        server = ApiServer(address, Token(SecretSource.of("")))
        server.add(add_StateServicer_to_server, StateService(store, watch), "baton.v1.State")
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            yield StateStub(channel)
        await server.stop(0)


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


async def test_put_and_get(state: StateStub) -> None:
    """G7: what was acknowledged is read."""
    put = await state.Put(pb.StatePutRequest(key="k", value=b"v"))
    for consistency in (pb.CONSISTENCY_UNSPECIFIED, pb.CONSISTENCY_STRONG):
        got = await state.Get(pb.StateGetRequest(key="k", consistency=consistency))
        assert got.entry == put.entry
    assert (await state.Has(pb.StateHasRequest(key="k"))).exists
    assert put.entry.version > 0
    assert not put.entry.HasField("expires_at")
    assert await code_of(state.Get(pb.StateGetRequest(key="none"))) is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("request_", "field_name"),
    [
        (pb.StatePutRequest(key=""), "key"),
        (pb.StatePutRequest(key="a\nb"), "key"),
        (pb.StatePutRequest(key="é" * 128), "key"),
        (pb.StatePutRequest(key="singleton-state:"), "key"),
        (pb.StatePutRequest(key="k", value=bytes(1024 * 1024 + 1)), "value"),
        (pb.StatePutRequest(key="k", ttl=Duration()), "ttl"),
        (pb.StatePutRequest(key="k", ttl=Duration(seconds=-1)), "ttl"),
        (pb.StatePutRequest(key="k", ttl=Duration(seconds=1, nanos=2_000_000_000)), "ttl"),
        (pb.StatePutRequest(key="k", expected_version=2**63), "expected_version"),
        (pb.StatePutRequest(key="k", request_id="x" * 256), "request_id"),
        (pb.StatePutRequest(key="k", run=runs_pb2.RunRef(epoch=2**63)), "run.epoch"),
    ],
)
async def test_bad_input_names_the_field(
    state: StateStub, request_: pb.StatePutRequest, field_name: str
) -> None:
    """G11."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await state.Put(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").startswith(f"{field_name}: ")
    assert (await state.Size(pb.StateSizeRequest())).size == 0


async def test_limits_themselves_are_allowed(state: StateStub) -> None:
    key = "é" * 127 + "x"
    await state.Put(pb.StatePutRequest(key=key, value=bytes(1024 * 1024)))
    got = await state.Get(pb.StateGetRequest(key=key))
    assert len(got.entry.value) == 1024 * 1024


async def test_a_lost_compare_and_set_is_aborted(state: StateStub) -> None:
    await state.Put(pb.StatePutRequest(key="k", value=b"v"))
    put = pb.StatePutRequest(key="k", value=b"x", expected_version=0)
    assert await code_of(state.Put(put)) is grpc.StatusCode.ABORTED
    delete = pb.StateDeleteRequest(key="k", expected_version=1)
    assert await code_of(state.Delete(delete)) is grpc.StatusCode.ABORTED
    assert (await state.Delete(pb.StateDeleteRequest(key="k"))).deleted
    assert not (await state.Delete(pb.StateDeleteRequest(key="k"))).deleted


async def test_owned_keys_need_the_live_run(state: StateStub, lab: StateLab) -> None:
    """G3: FAILED_PRECONDITION without a RunRef, or with an old one."""
    key = "singleton-state:coordinator"
    live = await lab.live_run()
    run = runs_pb2.RunRef(run_id=live.run_id, attempt=live.attempt, epoch=live.epoch)
    old = runs_pb2.RunRef(run_id=live.run_id, attempt=live.attempt, epoch=live.epoch - 1)
    refused = grpc.StatusCode.FAILED_PRECONDITION
    assert await code_of(state.Put(pb.StatePutRequest(key=key, value=b"x"))) is refused
    assert await code_of(state.Put(pb.StatePutRequest(key=key, value=b"x", run=old))) is refused
    assert await code_of(state.Delete(pb.StateDeleteRequest(key=key))) is refused
    await state.Put(pb.StatePutRequest(key=key, value=b"x", run=run))
    assert (await state.Clear(pb.StateClearRequest())).deleted == 0
    assert (await state.Get(pb.StateGetRequest(key=key))).entry.value == b"x"
    assert (await state.Delete(pb.StateDeleteRequest(key=key, run=run))).deleted


async def test_list_goes_through_all_pages(state: StateStub) -> None:
    keys = [f"k/{i:03}" for i in range(25)]
    await asyncio.gather(*(state.Put(pb.StatePutRequest(key=key, value=b"v")) for key in keys))
    found: list[str] = []
    token = ""
    while True:
        request = pb.StateListRequest(prefix="k/", page_size=10, page_token=token)
        page = await state.List(request)
        found += [entry.key for entry in page.entries]
        token = page.next_page_token
        if not token:
            break
    assert found == keys
    bad = pb.StateListRequest(page_token="%%%")
    assert await code_of(state.List(bad)) is grpc.StatusCode.INVALID_ARGUMENT
    assert (await state.Clear(pb.StateClearRequest(prefix="k/"))).deleted == 25
    assert (await state.Size(pb.StateSizeRequest(prefix="k/"))).size == 0


async def test_watch_tells_puts_and_deletions(state: StateStub) -> None:
    before = await state.Put(pb.StatePutRequest(key="w/0", value=b"0"))
    watch = state.Watch(pb.StateWatchRequest(prefix="w/"))
    await watch.initial_metadata()
    await state.Put(pb.StatePutRequest(key="x", value=b"elsewhere"))
    put = await state.Put(pb.StatePutRequest(key="w/1", value=b"1"))
    change = await asyncio.wait_for(watch.read(), 5)
    assert isinstance(change, pb.StateWatchResponse)
    assert change.put == put.entry
    await state.Delete(pb.StateDeleteRequest(key="w/1"))
    change = await asyncio.wait_for(watch.read(), 5)
    assert isinstance(change, pb.StateWatchResponse)
    assert change.deleted.key == "w/1"
    assert change.deleted.version > put.entry.version
    watch.cancel()
    # After a reconnect: all that came after a version, the deletion included.
    again = state.Watch(pb.StateWatchRequest(prefix="w/", after_version=before.entry.version))
    missed = await asyncio.wait_for(again.read(), 5)
    assert isinstance(missed, pb.StateWatchResponse)
    assert missed == change
    again.cancel()


async def test_a_watch_after_version_0_begins_with_what_is_there(state: StateStub) -> None:
    """All that a full copy needs, without a List: entries as they are, deletions, then changes."""
    for key, value in (("f/a", b"1"), ("f/b", b"1"), ("f/a", b"2"), ("f/gone", b"1")):
        await state.Put(pb.StatePutRequest(key=key, value=value))
    await state.Delete(pb.StateDeleteRequest(key="f/gone"))
    watch = state.Watch(pb.StateWatchRequest(prefix="f/", after_version=0))
    told: list[tuple[str, bytes]] = []
    for expected in range(1, 5):
        change = await asyncio.wait_for(watch.read(), 5)
        assert isinstance(change, pb.StateWatchResponse)
        entry = change.put if change.HasField("put") else change.deleted
        told.append((entry.key, entry.value))
        if expected == 3:
            await state.Put(pb.StatePutRequest(key="f/c", value=b"new"))
    assert told == [("f/b", b"1"), ("f/a", b"2"), ("f/gone", b""), ("f/c", b"new")]
    watch.cancel()


async def test_a_watch_from_too_long_ago_is_out_of_range(state: StateStub) -> None:
    watch = state.Watch(pb.StateWatchRequest(after_version=1))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await watch.read()
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
    metadata: Any = caught.value.trailing_metadata()
    (status,) = (value for key, value in metadata if key == "grpc-status-details-bin")
    assert b"HistoryGone" in status
