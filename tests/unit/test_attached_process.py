"""An attached process, seen from the sidecar: runs, answers, pings, leadership, the end."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from sidecar._proto.baton.v1 import stream_pb2 as pb
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app.process import BECOME, LOSE, AttachedProcess
from sidecar.model.errors import AppUnavailable, LeaderHandoffFailed
from sidecar.model.process import ProcessHello
from sidecar.model.run import Answer, CallFailed, Failed, Run, RunKind, RunRef, Succeeded
from sidecar.model.term import LossReason, Term
from sidecar.tracing import NoTracer

TERM = Term("default", 1, 7)


def a_run(run_id: int = 1, name: str = "often", attempt: int = 1) -> Run:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ref = RunRef(run_id, attempt, 7)
    return Run(ref, RunKind.SCHEDULE, name, "default", at, f"orders/{name}/{run_id}")


@pytest.fixture
def process() -> AttachedProcess:
    hello = ProcessHello("toy/1", "42", 10, schedules=frozenset({"often"}))
    messages = Messages(cluster="orders", runner_id="r1")
    return AttachedProcess(hello, messages, NoTracer(), number=1, failures_max=3)


def answer(run_id: int = 1, attempt: int = 1, **more: Any) -> pb.RunAnswer:
    return pb.RunAnswer(run_id=run_id, attempt=attempt, **more)


async def test_each_answer_reaches_its_run(process: AttachedProcess) -> None:
    answers: dict[int, Answer] = {}
    for number in (1, 2, 3):
        process.deliver(a_run(number), partial(answers.__setitem__, number))
    failed = pb.CallStatus(code=14, message="busy")
    response: Any = {"failed": {"message": "no", "code": "E", "retryable": True}}
    process.answered([answer(3), answer(2, status=failed), answer(1, response=response)])
    assert answers == {
        1: Failed("no", "E", True),
        2: CallFailed("UNAVAILABLE", "busy"),
        3: Succeeded(),
    }
    assert process.open_runs == 0


async def test_answers_for_what_is_not_open_are_ignored(process: AttachedProcess) -> None:
    """G5: another run, another attempt, and the same answer again change nothing."""
    answers: list[Answer] = []
    process.deliver(a_run(), answers.append)
    process.answered([answer(9), answer(1, attempt=2)])
    assert answers == []
    process.answered([answer(1), answer(1)])
    assert answers == [Succeeded()]


async def test_a_run_without_a_handler_is_not_sent(process: AttachedProcess) -> None:
    answers: list[Answer] = []
    process.deliver(a_run(name="other"), answers.append)
    assert answers == []  # never before `deliver` returns
    await asyncio.sleep(0)
    (refused,) = answers
    assert isinstance(refused, CallFailed)
    assert (refused.code, refused.delivered) == ("NOT_FOUND", False)
    process.outbox.ping(1)
    frame = await process.outbox.frame()
    assert frame is not None
    assert not frame.runs


async def test_a_cancelled_run_is_told_once_it_was_sent(process: AttachedProcess) -> None:
    answers: list[Answer] = []
    sent = process.deliver(a_run(1), answers.append)
    assert (await process.outbox.frame()) is not None
    waiting = process.deliver(a_run(2), answers.append)
    sent.cancel()
    waiting.cancel()
    frame = await process.outbox.frame()
    assert frame is not None
    assert [cancel.run_id for cancel in frame.cancels] == [1]
    assert not frame.runs
    process.answered([answer(1), answer(2)])
    assert answers == []


async def test_a_process_that_misses_three_pings_is_closed(process: AttachedProcess) -> None:
    """G9: a blocked loop or a hung process is noticed."""
    for _ in range(2):
        with pytest.raises(AppUnavailable):
            await process.check(0.01)
    assert process.problem is None
    with pytest.raises(AppUnavailable):
        await process.check(0.01)
    assert process.closed.is_set()
    assert "3 in a row" in str(process.problem)


async def test_a_pong_makes_it_healthy_again(process: AttachedProcess) -> None:
    with pytest.raises(AppUnavailable):
        await process.check(0.01)
    check = asyncio.create_task(process.check(5))
    await asyncio.sleep(0)
    process.pong(1)  # late, for the ping before
    assert not check.done()
    process.pong(2)
    await check
    assert process.missed_pings == 0


async def test_become_and_lose_are_answered_apart(process: AttachedProcess) -> None:
    """G1: a late answer to become is no acknowledgement of the loss of the same term."""
    lose = asyncio.create_task(process.lose_leadership(TERM, LossReason.RESIGNED, 5))
    await asyncio.sleep(0)
    process.leadership_answered(pb.LeadershipAnswer(event=BECOME, group="default", epoch=7))
    await asyncio.sleep(0)
    assert not lose.done()
    process.leadership_answered(pb.LeadershipAnswer(event=LOSE, group="default", epoch=7))
    await lose


async def test_an_error_and_silence_are_no_acknowledgement(process: AttachedProcess) -> None:
    become = asyncio.create_task(process.become_leader(TERM, 0.0, 5))
    await asyncio.sleep(0)
    error = pb.CallStatus(code=13, message="hook failed")
    process.leadership_answered(
        pb.LeadershipAnswer(event=BECOME, group="default", epoch=7, error=error)
    )
    with pytest.raises(LeaderHandoffFailed, match="INTERNAL: hook failed"):
        await become
    with pytest.raises(AppUnavailable, match=r"no answer within 0\.01 s"):
        await process.lose_leadership(TERM, LossReason.RESIGNED, 0.01)


async def test_the_end_of_the_stream_ends_everything(process: AttachedProcess) -> None:
    answers: list[Answer] = []
    process.deliver(a_run(), answers.append)
    lose = asyncio.create_task(process.lose_leadership(TERM, LossReason.RESIGNED, 5))
    ping = asyncio.create_task(process.check(5))
    await asyncio.sleep(0)
    process.close()
    for waiting in (lose, ping):
        with pytest.raises(AppUnavailable):
            await waiting
    (broken,) = answers
    assert isinstance(broken, CallFailed)
    assert (broken.code, broken.delivered) == ("UNAVAILABLE", True)
    process.deliver(a_run(2), answers.append)
    await asyncio.sleep(0)
    assert answers[1:] == [CallFailed("UNAVAILABLE", "the stream is closed", delivered=False)]


async def test_no_more_runs_are_sent_than_the_process_takes(process: AttachedProcess) -> None:
    """The others wait, and leave as soon as an answer makes room."""
    for number in range(15):
        process.deliver(a_run(number), lambda _: None)
    frame = await process.outbox.frame()
    assert frame is not None
    assert [run.run_id for run in frame.runs] == list(range(10))
    process.outbox.ping(1)
    frame = await process.outbox.frame()
    assert frame is not None
    assert not frame.runs
    process.answered([answer(3), answer(4)])
    frame = await process.outbox.frame()
    assert frame is not None
    assert [run.run_id for run in frame.runs] == [10, 11]
    assert process.open_runs == 13
