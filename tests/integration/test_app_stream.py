"""AppStream.Attach over real gRPC, with apps that break the contract in every way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from sidecar._proto.baton.v1 import stream_pb2 as pb
from sidecar._proto.baton.v1 import stream_pb2_grpc
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app.processes import AttachedProcesses
from sidecar.adapters.grpc_server.server import ApiServer
from sidecar.adapters.grpc_server.stream import ENTRIES_MAX, AppStreamService
from sidecar.adapters.tokens import Token
from sidecar.config import SecretSource
from sidecar.model.errors import AlreadyExists, Fenced
from sidecar.model.process import ProcessHello
from sidecar.model.run import Answer, Run, RunKind, RunRef, Succeeded
from sidecar.tracing import NoTracer

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]
HELLO = pb.Hello(client="toy/1", process_id="1", capacity=10, schedules=["often"])
REF = {"run_id": 5, "attempt": 1, "epoch": 7}


@dataclass
class Stored:
    """A store of checkpoints: the second value of a step is refused, and epoch 6 is over."""

    steps: dict[str, bytes] = field(default_factory=dict)

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None:
        if run.epoch == 6:
            raise Fenced("attempt 1 of run 5 is not the live one: stop")
        if self.steps.setdefault(step, value) != value:
            raise AlreadyExists(f"step {step!r} is stored", self.steps[step])

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None:
        await self.checkpoint(run, "progress", str(progress).encode())


@dataclass
class Api:
    channel: grpc.aio.Channel
    processes: AttachedProcesses

    def attach(self) -> App:
        return App(_attach(self.channel)(timeout=30))


def _attach(channel: grpc.aio.Channel) -> Any:
    # Any: the types of grpc.aio require an iterator, which these tests replace by `write`.
    return stream_pb2_grpc.AppStreamStub(channel).Attach


class App:
    def __init__(self, call: Any) -> None:
        self.call = call

    async def send(self, **fields: Any) -> None:
        await self.call.write(pb.AttachRequest(**fields))

    async def read(self) -> pb.AttachResponse:
        frame: pb.AttachResponse = await self.call.read()
        assert frame is not EOF
        return frame

    async def ready(self) -> None:
        """Say hello, and acknowledge that every earlier term is over."""
        await self.send(hello=HELLO)
        answered = False
        while not answered:
            for change in (await self.read()).leadership:
                assert change.lose.context.epoch == 0
                lost = pb.LeadershipAnswer(event=pb.LEADERSHIP_EVENT_LOSE, group="default")
                await self.send(leadership=[lost])
                answered = True

    async def status(self) -> tuple[grpc.StatusCode, str]:
        """How the sidecar ended the stream."""
        with suppress(grpc.aio.AioRpcError):
            while (await self.call.read()) is not EOF:
                pass
        return await self.call.code(), await self.call.details()


@asynccontextmanager
async def an_api(tmp_path: Path, runs: Stored, failures_max: int = 3) -> AsyncIterator[Api]:
    address = f"unix://{tmp_path}/a.sock"
    server = ApiServer(address, Token(SecretSource()))
    processes = AttachedProcesses(
        Messages(cluster="orders", runner_id="r1"),
        NoTracer(),
        ("default",),
        interval=0.05,
        failures_max=failures_max,
        callback_timeout=5.0,
    )

    async def declare(hello: ProcessHello) -> None:
        assert hello.process_id

    service = AppStreamService(processes, runs, declare)
    server.add(stream_pb2_grpc.add_AppStreamServicer_to_server, service, "baton.v1.AppStream")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            yield Api(channel, processes)
    finally:
        await server.stop(0)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with an_api(tmp_path, Stored()) as found:
        yield found


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the condition is the product's own state
            await asyncio.sleep(0.01)


async def test_a_process_says_hello_and_is_welcome(api: Api) -> None:
    app = api.attach()
    await app.send(hello=HELLO)
    welcome = (await app.read()).welcome
    assert (welcome.cluster, welcome.runner_id) == ("orders", "r1")
    (process,) = api.processes.all
    assert not process.ready  # its old terms are not over yet
    await app.send(
        leadership=[pb.LeadershipAnswer(event=pb.LEADERSHIP_EVENT_LOSE, group="default")]
    )
    await until(lambda: process.ready)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.AttachRequest(), "hello"),
        (pb.AttachRequest(pong=pb.Pong(number=1)), "hello"),
        (pb.AttachRequest(hello=pb.Hello(client="toy", process_id="1")), "hello.capacity"),
        (pb.AttachRequest(hello=pb.Hello(capacity=10_001)), "hello.capacity"),
        (pb.AttachRequest(hello=pb.Hello(capacity=1, client="x" * 300)), "hello.client"),
        (pb.AttachRequest(hello=pb.Hello(capacity=1, jobs=["no good"])), "hello.jobs"),
        (pb.AttachRequest(hello=pb.Hello(capacity=1, revision=2**60)), "hello.revision"),
    ],
)
async def test_a_bad_hello_names_its_field(api: Api, message: pb.AttachRequest, field: str) -> None:
    """G11."""
    app = api.attach()
    await app.call.write(message)
    code, details = await app.status()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith(field)
    assert api.processes.all == []


async def test_a_second_hello_and_a_frame_over_the_limit_end_the_stream(api: Api) -> None:
    """G11: and only their own: another process stays attached."""
    other = api.attach()
    await other.ready()
    for bad in (
        {"hello": HELLO},
        {"answers": [pb.RunAnswer(run_id=n) for n in range(ENTRIES_MAX + 1)]},
    ):
        app = api.attach()
        await app.ready()
        await app.send(**bad)
        assert (await app.status())[0] is grpc.StatusCode.INVALID_ARGUMENT
        await until(lambda: len(api.processes.all) == 1)


async def test_bytes_that_are_no_message_end_the_stream(api: Api) -> None:
    channel: Any = api.channel
    method = channel.stream_stream("/baton.v1.AppStream/Attach")
    call = method(timeout=30)
    await call.write(b"\xff\xff\xff\xff")
    with pytest.raises(grpc.aio.AioRpcError):
        await call.read()
    assert (await call.code()) is grpc.StatusCode.INVALID_ARGUMENT


async def test_answers_that_match_nothing_are_ignored(api: Api) -> None:
    """G5: wrong ids, other attempts, twice; the right answer still counts, once."""
    app = api.attach()
    await app.ready()
    (process,) = api.processes.all
    answers: list[Answer] = []
    at = datetime(2026, 1, 1, tzinfo=UTC)
    run = Run(RunRef(5, 2, 7), RunKind.SCHEDULE, "often", "default", at, "key")
    process.deliver(run, answers.append)
    while not (await app.read()).runs:
        pass
    wrong = [pb.RunAnswer(run_id=6, attempt=2), pb.RunAnswer(run_id=5, attempt=1)]
    await app.send(answers=[*wrong, *[pb.RunAnswer(run_id=5, attempt=2)] * 2, *wrong])
    await until(lambda: answers)
    assert answers == [Succeeded()]
    assert process.connected


async def test_checkpoints_and_heartbeats_are_answered_one_by_one(api: Api) -> None:
    app = api.attach()
    await app.ready()
    await app.send(
        checkpoints=[
            pb.StreamCheckpoint(number=1, run=REF, step="a", value=b"x"),
            pb.StreamCheckpoint(number=2, run=REF, step="a", value=b"y"),
            pb.StreamCheckpoint(number=3, run={**REF, "epoch": 6}, step="b", value=b"x"),
            pb.StreamCheckpoint(number=4, step="b", value=b"x"),
        ],
        heartbeats=[pb.StreamHeartbeat(number=5, run=REF, progress=0.5)],
    )
    found: dict[int, pb.Stored] = {}
    while len(found) < 5:
        found |= {stored.number: stored for stored in (await app.read()).stored}
    codes = {number: stored.error.code for number, stored in found.items()}
    ok, exists, over, invalid = 0, 6, 9, 3
    assert codes == {1: ok, 2: exists, 3: over, 4: invalid, 5: ok}
    assert found[2].existing == b"x"
    assert "not the live one" in found[3].error.message


async def test_a_process_that_does_not_answer_is_detached(tmp_path: Path) -> None:
    """G9: one that never reads or whose loop hangs, while another stays."""
    async with an_api(tmp_path, Stored(), failures_max=1) as api:
        silent = api.attach()
        await silent.ready()
        code, details = await silent.status()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "does not answer pings" in details
        await until(lambda: not api.processes.all)


async def test_a_process_that_leaves_gets_no_work(api: Api) -> None:
    """G18: capacity 0 says so; what it has it may finish."""
    app = api.attach()
    await app.ready()
    await until(lambda: list(api.processes.ready))
    await app.send(capacity=0)
    await until(lambda: not list(api.processes.ready))
    assert len(api.processes.all) == 1
    await app.call.done_writing()
    await until(lambda: not api.processes.all)


async def test_a_token_is_needed(tmp_path: Path) -> None:
    """G12: Attach as every other call."""
    file = tmp_path / "token"
    file.write_text("secret\n")
    address = f"unix://{tmp_path}/a.sock"
    server = ApiServer(address, Token(SecretSource.from_file(str(file))))
    processes = AttachedProcesses(
        Messages(cluster="c", runner_id="r"), NoTracer(), (), interval=1, failures_max=3,
        callback_timeout=1,
    )  # fmt: skip

    async def declare(hello: ProcessHello) -> None:
        raise AssertionError("not reached")

    service = AppStreamService(processes, Stored(), declare)
    server.add(stream_pb2_grpc.add_AppStreamServicer_to_server, service, "baton.v1.AppStream")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            app = Api(channel, processes).attach()
            await app.send(hello=HELLO)
            assert (await app.status())[0] is grpc.StatusCode.UNAUTHENTICATED
    finally:
        await server.stop(0)
