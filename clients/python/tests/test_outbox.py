"""How answers are gathered into messages, and what overtakes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from baton import Fenced, Unavailable
from baton._outbox import Outbox
from baton.v1 import callback_pb2, runs_pb2
from baton.v1 import stream_pb2 as pb


class Wire:
    """A call whose writes end when the test says so."""

    def __init__(self) -> None:
        self.written: list[pb.AttachRequest] = []
        self.free = asyncio.Event()

    async def write(self, message: pb.AttachRequest) -> None:
        self.written.append(message)
        await self.free.wait()


@pytest.fixture
async def wire():
    """A wire with a writer on it, and the outbox that it empties."""
    outbox, wire = Outbox(), Wire()
    call: Any = wire
    writer = asyncio.create_task(outbox.send(call))
    await asyncio.sleep(0)
    yield outbox, wire
    writer.cancel()


def response(size: int) -> callback_pb2.ExecuteResponse:
    return callback_pb2.ExecuteResponse(succeeded=callback_pb2.Succeeded(result=b"x" * size))


async def test_a_lone_answer_leaves_at_once_and_the_rest_gathers(wire):
    """What comes during a write is one message; health checks and leadership come before it."""
    outbox, call = wire
    outbox.answer(1, 1, None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(call.written) == 1
    for number in range(2, 102):
        outbox.answer(number, 1, None)
    outbox.pong(7)
    outbox.leadership(pb.LeadershipAnswer(group="default", epoch=3))
    call.free.set()
    await asyncio.wait_for(outbox.flush(), 5)
    _, urgent, gathered = call.written
    assert (urgent.pong.number, urgent.leadership[0].epoch) == (7, 3)
    assert not urgent.answers
    assert [answer.run_id for answer in gathered.answers] == [*range(2, 102)]


async def test_messages_stay_within_the_limits(wire):
    """512 entries, 1 MiB, and less if the sidecar reads less."""
    outbox, call = wire
    call.free.set()
    for number in range(1100):
        outbox.answer(number, 1, None)
    await outbox.flush()
    assert [len(message.answers) for message in call.written] == [512, 512, 76]
    call.written.clear()
    for number in range(3):
        outbox.answer(number, 1, response(400_000))
    await outbox.flush()
    assert [len(message.answers) for message in call.written] == [2, 1]
    call.written.clear()
    outbox.limit(pb.Welcome(message_bytes_max=10_000, frame_entries_max=2))
    for number, size in enumerate((9_000, 9_000, 1, 1, 1, 20_000)):
        outbox.answer(number, 1, response(size))
    await outbox.flush()
    assert [len(message.answers) for message in call.written] == [1, 2, 2, 1]
    assert all(message.ByteSize() <= 10_000 for message in call.written)
    assert call.written[-1].answers[-1].response.failed.code == "TOO_LARGE"


async def test_what_waits_for_an_answer_gets_it_or_fails(wire):
    """By its number; an attempt that is over is fenced; a broken stream is unavailable."""
    outbox, call = wire
    call.free.set()
    run = runs_pb2.RunRef(run_id=1, attempt=1, epoch=1)
    waits = [outbox.checkpoint(run, name, b"1") for name in ("one", "two", "three")]
    await outbox.flush()
    numbers = [point.number for message in call.written for point in message.checkpoints]
    over = pb.CallStatus(code=9, message="not the live attempt")
    outbox.stored(pb.Stored(number=numbers[1], error=over))
    outbox.stored(pb.Stored(number=numbers[0]))
    outbox.stored(pb.Stored(number=999))
    await waits[0]
    with pytest.raises(Fenced, match="not the live attempt"):
        await waits[1]
    outbox.close()
    with pytest.raises(Unavailable):
        await waits[2]
    with pytest.raises(Unavailable):
        outbox.heartbeat(run, 0.5, None)
    outbox.answer(1, 1, None)
    await asyncio.wait_for(outbox.flush(), 5)
    assert not any(message.answers for message in call.written)
