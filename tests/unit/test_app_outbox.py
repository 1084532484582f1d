"""Frames to an attached process: what is urgent first, runs by the hundred, memory bounded."""

from datetime import UTC, datetime

import pytest

from sidecar._proto.baton.v1 import leadership_pb2, stream_pb2
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app.outbox import FRAME_BYTES, FRAME_RUNS, Delivery, Outbox
from sidecar.model.run import Run, RunKind, RunRef
from sidecar.model.term import LossReason, Term

TERM = Term("default", 1, 7)
MESSAGES = Messages(cluster="orders", runner_id="r1")


def a_run(run_id: int, payload: bytes = b"") -> Run:
    ref = RunRef(run_id, 1, 7)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Run(ref, RunKind.SCHEDULE, "often", "default", at, f"orders/often/{run_id}", payload)


async def frame(outbox: Outbox) -> stream_pb2.AttachResponse:
    found = await outbox.frame()
    assert found is not None
    return found


async def test_runs_gather_in_frames_of_at_most_512() -> None:
    outbox = Outbox()
    for number in range(FRAME_RUNS + 10):
        outbox.run(Delivery(a_run(number)))
    first, second = await frame(outbox), await frame(outbox)
    assert [len(first.runs), len(second.runs)] == [FRAME_RUNS, 10]
    assert [run.run_id for run in (*first.runs, *second.runs)] == list(range(FRAME_RUNS + 10))


async def test_a_frame_is_about_a_megabyte_at_most() -> None:
    outbox = Outbox()
    for number in range(12):
        outbox.run(Delivery(a_run(number, b"x" * 200_000)))
    sizes = [len((await frame(outbox)).runs), len((await frame(outbox)).runs)]
    assert sizes == [6, 6]
    assert 5 * 200_000 < FRAME_BYTES < 6 * 200_000


async def test_what_is_urgent_is_in_the_next_frame_whatever_waits() -> None:
    outbox = Outbox()
    for number in range(5 * FRAME_RUNS):
        outbox.run(Delivery(a_run(number)))
    await frame(outbox)
    outbox.ping(3)
    outbox.cancel(5, 1, "cancelled")
    outbox.lose(MESSAGES.lose(TERM, LossReason.RESIGNED, 1.0))
    following = await frame(outbox)
    assert following.ping.number == 3
    assert [cancel.run_id for cancel in following.cancels] == [5]
    assert following.leadership[0].lose.context.epoch == 7


async def test_a_run_that_was_cancelled_before_it_left_is_not_sent() -> None:
    outbox = Outbox()
    gone, stays = Delivery(a_run(1)), Delivery(a_run(2))
    outbox.run(gone)
    outbox.run(stays)
    gone.cancelled = True
    assert [run.run_id for run in (await frame(outbox)).runs] == [2]
    assert (gone.sent, stays.sent) == (False, True)


async def test_a_process_that_never_reads_costs_no_memory() -> None:
    """One ping, one renewal per group, one change per group and epoch, however often."""
    outbox = Outbox()
    for number in range(1, 1000):
        outbox.ping(number)
        outbox.trust(leadership_pb2.Leader(group="default", epoch=number))
        outbox.lose(MESSAGES.lose(TERM, LossReason.SHUTDOWN, 1.0))
        outbox.trust(leadership_pb2.Leader(group="default", epoch=number))
    found = await frame(outbox)
    assert found.ping.number == 999
    assert [leader.epoch for leader in found.trust] == [999]
    assert len(found.leadership) == 1


async def test_no_renewal_of_trust_follows_a_loss_in_the_same_frame() -> None:
    """G1: the loss takes back a renewal that has not left yet."""
    outbox = Outbox()
    outbox.trust(leadership_pb2.Leader(group="default", epoch=7, is_leader=True))
    outbox.lose(MESSAGES.lose(TERM, LossReason.LEASE_LOST, 1.0))
    found = await frame(outbox)
    assert not found.trust
    assert len(found.leadership) == 1


async def test_a_frame_has_the_run_but_not_the_cluster() -> None:
    outbox = Outbox()
    outbox.run(Delivery(a_run(5, b"{}"), traceparent="00-1-2-01"))
    (run,) = (await frame(outbox)).runs
    whole = MESSAGES.execute(a_run(5, b"{}"))
    assert (run.context.cluster, run.context.runner_id) == ("", "")
    run.context.cluster, run.context.runner_id = "orders", "r1"
    assert run.traceparent == "00-1-2-01"
    run.traceparent = ""
    assert run == whole


async def test_a_closed_outbox_gives_no_frame() -> None:
    outbox = Outbox()
    outbox.ping(1)
    outbox.close()
    assert await outbox.frame() is None


@pytest.mark.parametrize("count", [1, FRAME_RUNS + 1])
async def test_cancels_leave_in_order(count: int) -> None:
    outbox = Outbox()
    for number in range(count):
        outbox.cancel(number, 1, "cancelled")
    found = [cancel.run_id for cancel in (await frame(outbox)).cancels]
    assert found == list(range(min(count, FRAME_RUNS)))
