"""Errors, retries, tokens and addresses, on the wire."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from baton import (
    Baton,
    BatonError,
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    Sidecar,
    StateLoadFailed,
    Unauthenticated,
    Unavailable,
)
from baton._status import status_details
from baton._tokens import TokenFile
from baton.testing import FakeSidecar, eventually
from baton.v1 import callback_pb2, state_pb2, stream_pb2
from baton.v1.runs_pb2 import RUN_KIND_JOB
from baton.v1.state_pb2_grpc import StateServicer, StateStub, add_StateServicer_to_server
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc


def status_of(code: grpc.StatusCode, *details: Any) -> bytes:
    """What the sidecar sends in `grpc-status-details-bin`."""
    status = status_pb2.Status(code=code.value[0], message="no")
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return bytes(status.SerializeToString())


class Refusing(StateServicer):
    """Refuses the first calls as told, then answers; counts both."""

    def __init__(self) -> None:
        self.calls = 0
        self.refusals: list[tuple[grpc.StatusCode, tuple[Any, ...]]] = []
        self.metadata: dict[str, str] = {}

    async def Has(self, request: state_pb2.StateHasRequest, call: Any) -> Any:
        return state_pb2.StateHasResponse(exists=not await self._refuse(call))

    async def Delete(self, request: state_pb2.StateDeleteRequest, call: Any) -> Any:
        return state_pb2.StateDeleteResponse(deleted=not await self._refuse(call))

    async def Watch(self, request: state_pb2.StateWatchRequest, call: Any) -> Any:
        await self._refuse(call)
        yield state_pb2.StateWatchResponse(put=state_pb2.Entry(key="a", version=8))

    async def _refuse(self, call: Any) -> bool:
        self.calls += 1
        self.metadata = dict(call.invocation_metadata())
        if self.refusals:
            code, details = self.refusals.pop(0)
            trailing = (("grpc-status-details-bin", status_of(code, *details)),)
            await call.abort(code, "no", trailing)
        return False


@pytest.fixture
async def refusing():
    """A sidecar that refuses, and a client connected to it."""
    servicer, server = Refusing(), grpc.aio.server()
    add_StateServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with Sidecar().connected(f"127.0.0.1:{port}") as client:
        yield servicer, client
    await server.stop(None)


AWAY = (grpc.StatusCode.UNAVAILABLE, ())


async def test_reads_are_asked_again_while_the_sidecar_is_away(refusing):
    """UNAVAILABLE is waited out, as long as RetryInfo says; a write is not repeated blindly."""
    servicer, client = refusing
    delay = error_details_pb2.RetryInfo()
    delay.retry_delay.FromTimedelta(timedelta(milliseconds=20))
    servicer.refusals = [AWAY, (grpc.StatusCode.UNAVAILABLE, (delay,))]
    assert await client.state.has("a")
    assert servicer.calls == 3
    servicer.refusals = [AWAY]
    with pytest.raises(Unavailable) as caught:
        await client.state.delete("a")
    assert caught.value.retryable
    assert servicer.calls == 4


async def test_a_watch_outlives_a_lost_postgres(refusing):
    """The sidecar tells a typed reason with UNAVAILABLE; the watch is opened again all the same."""
    servicer, client = refusing
    reason = error_details_pb2.ErrorInfo(reason="StateLoadFailed", domain="baton")
    servicer.refusals = [(grpc.StatusCode.UNAVAILABLE, (reason,))]
    changes = client.state.watch("", after_version=7)
    assert (await anext(changes)).entry.version == 8
    await changes.aclose()
    servicer.refusals = [(grpc.StatusCode.UNAVAILABLE, (reason,))]
    with pytest.raises(StateLoadFailed):
        await anext(client.state.watch(""))


async def test_typed_reasons_become_typed_errors(refusing):
    """ErrorInfo decides the class, BadRequest names the fields, other codes stay readable."""
    servicer, client = refusing
    info = error_details_pb2.ErrorInfo(reason="StateLoadFailed", domain="baton")
    servicer.refusals = [(grpc.StatusCode.DATA_LOSS, (info,))]
    with pytest.raises(StateLoadFailed) as loaded:
        await client.state.has("a")
    assert (loaded.value.reason, loaded.value.retryable) == ("StateLoadFailed", True)
    bad = error_details_pb2.BadRequest()
    bad.field_violations.add(field="key", description="too long")
    servicer.refusals = [(grpc.StatusCode.INVALID_ARGUMENT, (bad,))]
    with pytest.raises(InvalidArgument) as invalid:
        await client.state.has("a")
    assert invalid.value.violations == (("key", "too long"),)
    servicer.refusals = [(grpc.StatusCode.INTERNAL, ())]
    with pytest.raises(BatonError) as other:
        await client.state.has("a")
    assert other.value.code is grpc.StatusCode.INTERNAL


async def test_a_sidecar_that_stays_away_is_said_so_in_time():
    """Repeating ends with the call's own time, not later."""
    client = Sidecar()
    async with client.connected("127.0.0.1:1"):
        request = state_pb2.StateHasRequest(key="a")
        with pytest.raises((Unavailable, DeadlineExceeded)):
            await client.call(client.stub(StateStub).Has, request, timeout=0.5)


@pytest.mark.parametrize("damaged", [b"\xff", b"\x1a\x7f", b"\x1a\x02\x12", b"\x07", b"\x1a\x80"])
def test_damaged_details_are_no_second_error(damaged: bytes):
    """Bytes that cannot be read give empty details."""
    assert status_details([("grpc-status-details-bin", damaged)]).reason == ""


def test_what_exists_already_comes_with_the_refusal():
    """The value that stands, where it is small enough to be sent; else None."""
    info = error_details_pb2.ErrorInfo(reason="AlreadyExists", metadata={"existing": "eWVz"})
    status = status_of(grpc.StatusCode.ALREADY_EXISTS, info)
    assert status_details([("grpc-status-details-bin", status)]).existing == b"yes"
    info.metadata.clear()
    status = status_of(grpc.StatusCode.ALREADY_EXISTS, info)
    assert status_details([("grpc-status-details-bin", status)]).existing is None


def test_details_survive_unknown_fields():
    """Fields of other wire types, as a later version may send them, are skipped."""
    info = error_details_pb2.ErrorInfo(reason="Fenced", metadata={"a": "b"})
    known = status_of(grpc.StatusCode.ABORTED, info)
    unknown = b"\x20\x96\x01" + b"\x29" + bytes(8) + b"\x35" + bytes(4)
    details = status_details([("grpc-status-details-bin", unknown + known)])
    assert details.reason == "Fenced"


async def test_tokens_are_checked_both_ways(tmp_path: Path):
    """G12: without its token neither side is answered; health needs none, as kubelet has none."""
    app_token, api_token = tmp_path / "app", tmp_path / "api"
    app_token.write_text("app-secret\n")
    api_token.write_text("api-secret\n")
    app = Baton()
    async with (
        FakeSidecar(app_token="app-secret", api_token="api-secret") as fake,
        app.serving(
            "127.0.0.1:0", fake.address, app_token_file=app_token, api_token_file=api_token
        ) as address,
    ):
        fake.call_app_at(address)
        await fake.lead()
        assert await app.leadership.list()
        stranger = FakeSidecar(app_token="app-secreT")
        stranger.call_app_at(address)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stranger._app().lose(callback_pb2.OnLoseLeadershipRequest())
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert app.is_leader()
        await stranger.__aexit__()
        async with grpc.aio.insecure_channel(address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for service in ("", "baton.v1.AppCallback"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
        api_token.write_text("wrong-now")
        with pytest.raises(Unauthenticated):
            await app.leadership.list()


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path):
    """The old token is accepted for a minute more; nothing opens with an empty one."""
    path, clock = tmp_path / "token", [0.0]
    path.write_text("one\n")
    token = TokenFile(path, clock=lambda: clock[0])
    assert token.accepts("one")
    assert not token.accepts("two")
    assert not token.accepts(None)
    replacement = tmp_path / "new"
    replacement.write_text("two")
    os.replace(replacement, path)
    assert token.accepts("two")
    assert token.accepts(b"one")
    clock[0] = 61.0
    assert not token.accepts("one")
    path.unlink()
    assert token.current() == "two"
    for unusable in ("", "tökén", "three\nfour"):
        path.write_text(unusable)
        assert token.current() == "two"
        assert token.accepts("two")
    assert not token.accepts("")


def test_an_empty_or_missing_token_file_stops_the_start(tmp_path: Path):
    """G12: a token that was asked for and is not there never means: no token."""
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match="empty"):
        TokenFile(tmp_path / "empty")
    (tmp_path / "unsendable").write_text("tökén")
    with pytest.raises(ValueError, match="ASCII"):
        TokenFile(tmp_path / "unsendable")
    with pytest.raises(FileNotFoundError):
        TokenFile(tmp_path / "missing")


async def test_socket_files_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Addresses come from the environment when not given, and may be socket files."""
    app = Baton()
    app.schedule("report")(lambda context: "done")
    socket = f"unix://{tmp_path}/app.sock"
    async with FakeSidecar() as fake:
        monkeypatch.setenv("BATON_APP_ADDRESS", socket)
        monkeypatch.setenv("BATON_API_ADDRESS", fake.address)
        async with app.serving() as address:
            assert address == socket
            assert (tmp_path / "app.sock").stat().st_mode & 0o777 == 0o660
            fake.call_app_at(address)
            await fake.lead()
            assert (await fake.execute("report")).result == b'"done"'


@pytest.mark.parametrize("address", ["127.0.0.1:0", "unix://{}/app.sock"])
async def test_two_apps_never_share_an_address(tmp_path: Path, address: str):
    """A second app on the same port or socket file is refused instead of taking the calls."""
    address = address.format(tmp_path)
    async with FakeSidecar() as fake, Baton().serving(address, fake.address) as address:
        with pytest.raises(RuntimeError):
            async with Baton().serving(address, fake.address):
                pass


async def test_the_trace_goes_on_with_calls_to_the_sidecar(refusing):
    """`traceparent` of a callback comes back on what its handler asks of the sidecar."""
    servicer, client = refusing
    app = Baton()

    @app.schedule("report")
    async def report(context: Any) -> None:
        await client.state.has("a")

    async with FakeSidecar() as fake, app.serving("127.0.0.1:0", fake.address) as address:
        fake.call_app_at(address)
        assert fake._called is not None
        fake._called._metadata = (("traceparent", "00-1-2-01"),)
        await fake.lead()
        await fake.execute("report")
    assert servicer.metadata["traceparent"] == "00-1-2-01"


async def test_the_trace_of_a_run_on_a_stream_goes_on_too(refusing):
    """There it is a part of the request."""
    servicer, client = refusing
    app = Baton()

    @app.job("report")
    async def report(context: Any) -> None:
        await client.state.has("a")

    async with FakeSidecar.beside(app) as fake:
        run = callback_pb2.ExecuteRequest(
            run_id=9, attempt=1, kind=RUN_KIND_JOB, name="report", traceparent="00-3-4-01"
        )
        fake._processes[0].send(stream_pb2.AttachResponse(runs=[run]))
        await eventually(lambda: servicer.calls)
    assert servicer.metadata["traceparent"] == "00-3-4-01"


async def test_not_found_is_not_repeated(app: Baton, sidecar: FakeSidecar):
    """An answer is an answer."""
    with pytest.raises(NotFound):
        await app.runs.get(1)
