"""The Deferreds service over gRPC, and `baton deferred`, on a real Postgres."""

import argparse
import asyncio
import io
from collections.abc import AsyncIterator, Awaitable
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from sidecar._proto.baton.v1 import deferreds_pb2 as pb
from sidecar._proto.baton.v1 import deferreds_pb2_grpc, runs_pb2
from sidecar.adapters.grpc_server.deferreds import DeferredsService
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.postgres.migrate import migrate
from sidecar.adapters.tokens import Token
from sidecar.cli import deferred as command
from sidecar.config import SecretSource
from tests.integration.deferreds_pods import lead, pod, start_run

Code = grpc.StatusCode
UNKNOWN = "bdt_" + "A" * 43


class Api:
    """A served pod: its address, a stub, and a live run."""

    def __init__(self, address: str, stub: Any, run: runs_pb2.RunRef) -> None:
        self.address, self.stub, self.run = address, stub, run

    async def create(self, name: str, **fields: Any) -> str:
        answer = await self.stub.Create(pb.DeferredsCreateRequest(name=name, **fields))
        return str(answer.token)


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    await migrate(database_url, "baton")
    address = f"unix:{tmp_path}/api.sock"
    async with pod(database_url) as one:
        await lead(one)
        ref = await start_run(one)
        run = runs_pb2.RunRef(run_id=ref.run_id, attempt=ref.attempt, epoch=ref.epoch)
        server = ApiServer(address, Token(SecretSource()))
        server.add(
            deferreds_pb2_grpc.add_DeferredsServicer_to_server,
            DeferredsService(one.deferreds),
            "baton.v1.Deferreds",
        )
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            yield Api(address, deferreds_pb2_grpc.DeferredsStub(channel), run)
        await server.stop(0)


async def _refused(call: Awaitable[Any]) -> tuple[Code, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), refused.value.details() or ""


async def test_the_life_of_a_deferred(api: Api) -> None:
    token = await api.create("approval", run=api.run, ttl=timedelta(hours=1))
    pending = (await api.stub.Get(pb.DeferredsGetRequest(token=token))).deferred
    assert (pending.state, pending.run_id) == (pb.DEFERRED_STATE_PENDING, api.run.run_id)
    assert not pending.HasField("finished_at")
    assert pending.expires_at.ToDatetime() - pending.created_at.ToDatetime() > timedelta(minutes=59)
    wait = asyncio.ensure_future(api.stub.Await(pb.DeferredsAwaitRequest(token=token)))
    await asyncio.sleep(0.1)
    request = pb.DeferredsCompleteRequest(token=token, value=b"\x00\xff")
    completed = (await api.stub.Complete(request)).deferred
    assert completed.state == pb.DEFERRED_STATE_COMPLETED
    assert (completed.token, completed.name, completed.value) == (token, "approval", b"\x00\xff")
    assert completed.HasField("finished_at")
    assert (await wait).deferred == completed


async def test_a_failure_and_an_expiry_are_answers_not_errors(api: Api) -> None:
    failing, expiring = await api.create("a"), await api.create("b", ttl=timedelta(seconds=0.1))
    await api.stub.Fail(pb.DeferredsFailRequest(token=failing, error="no"))
    failed = (await api.stub.Await(pb.DeferredsAwaitRequest(token=failing))).deferred
    assert (failed.state, failed.error) == (pb.DEFERRED_STATE_FAILED, "no")
    expired = (await api.stub.Await(pb.DeferredsAwaitRequest(token=expiring))).deferred
    assert expired.state == pb.DEFERRED_STATE_EXPIRED
    assert expired.finished_at == expired.expires_at


async def test_errors_are_statuses_that_name_the_field_but_no_token(api: Api) -> None:
    """G11, G12."""
    stub = api.stub
    token = await api.create("a")
    await stub.Complete(pb.DeferredsCompleteRequest(token=token, value=b"1"))
    pending = await api.create("b")
    big = b"v" * (1024 * 1024 + 1)
    odd = pb.DeferredsCreateRequest(name="a")
    odd.ttl.nanos = 2_000_000_000
    old = runs_pb2.RunRef(run_id=api.run.run_id, attempt=1, epoch=api.run.epoch - 1)
    zero, negative = timedelta(), timedelta(seconds=-1)
    expected = [
        (stub.Create(pb.DeferredsCreateRequest()), Code.INVALID_ARGUMENT, "name"),
        (stub.Create(pb.DeferredsCreateRequest(name="a", ttl=zero)), Code.INVALID_ARGUMENT, "ttl"),
        (stub.Create(odd), Code.INVALID_ARGUMENT, "ttl"),
        (
            stub.Create(pb.DeferredsCreateRequest(name="a", run=old)),
            Code.FAILED_PRECONDITION,
            "live",
        ),
        (stub.Get(pb.DeferredsGetRequest(token="x")), Code.INVALID_ARGUMENT, "token"),
        (stub.Get(pb.DeferredsGetRequest(token=UNKNOWN)), Code.NOT_FOUND, "no deferred"),
        (
            stub.Complete(pb.DeferredsCompleteRequest(token=token, value=b"2")),
            Code.ALREADY_EXISTS,
            "with another result",
        ),
        (
            stub.Complete(pb.DeferredsCompleteRequest(token=pending, value=big)),
            Code.INVALID_ARGUMENT,
            "value",
        ),
        (stub.Fail(pb.DeferredsFailRequest(token=pending)), Code.INVALID_ARGUMENT, "error"),
        (
            stub.Await(pb.DeferredsAwaitRequest(token=pending, timeout=zero)),
            Code.DEADLINE_EXCEEDED,
            "pending",
        ),
        (
            stub.Await(pb.DeferredsAwaitRequest(token=pending, timeout=negative)),
            Code.INVALID_ARGUMENT,
            "timeout",
        ),
    ]
    for call, code, word in expected:
        got, message = await _refused(call)
        assert (got, word in message) == (code, True), message
        assert not any(secret in message for secret in (token, pending, UNKNOWN))
    answer = await stub.Get(pb.DeferredsGetRequest(token=pending))
    assert answer.deferred.state == pb.DEFERRED_STATE_PENDING


async def _baton(api: Api, action: str, token: str, **options: str) -> tuple[int, str]:
    """Exit code and output of `baton deferred`."""
    given = {"value": None, "error": None, "config": None, "address": api.address, **options}
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        namespace = argparse.Namespace(action=action, token=token, **cast(Any, given))
        code = await asyncio.to_thread(command.main, namespace)
    return code, output.getvalue().strip()


async def test_the_command_line_completes_fails_and_shows(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await api.create("one"), await api.create("two")
    assert await _baton(api, "get", one) == (0, "one: pending")
    assert await _baton(api, "complete", one, value='{"ok": true}') == (
        0,
        'one: completed: {"ok": true}',
    )
    code, line = await _baton(api, "complete", one, value="other")
    assert code == 1
    assert "with another result" in line
    assert one not in line
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{two}\n".encode())))
    assert await _baton(api, "fail", "-", error="two\nlines") == (0, "two: failed: two\\nlines")
    assert (await _baton(api, "get", "\udcff"))[0] == 1
    stored = (await api.stub.Get(pb.DeferredsGetRequest(token=one))).deferred
    assert stored.value == b'{"ok": true}'
