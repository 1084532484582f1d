"""Whatever an app answers, the run ends with words that say what was wrong (G11).

The sidecar lives on, keeps its term, and other schedules tick meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from devtools.servers import free_port
from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc, schedules_pb2, schedules_pb2_grpc
from sidecar.adapters.clock import boottime
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.tokens import Token
from sidecar.config.secret import SecretSource
from sidecar.model.errors import SidecarError
from sidecar.model.term import LossReason, Term
from tests.lab.processes import Child, wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.stalls import Stalls
from tests.security import wire_app
from tests.security.wire_app import ANSWERS, Answer, framed

SUCCEEDED, FAILED, SKIPPED = "OUTCOME_SUCCEEDED", "OUTCOME_FAILED", "OUTCOME_SKIPPED"
NO_MESSAGE = "INTERNAL: the app ended the call without a whole message"
NO_RESPONSE = "INTERNAL: the app's answer is no ExecuteResponse"
NO_ANSWER = "DEADLINE_EXCEEDED: no answer within 2 s"

# What each answer of the wire app leads to: the outcome, and how its error begins.
EXPECTED: dict[str, tuple[str, str]] = {
    "good": (SUCCEEDED, ""),
    "empty-message": (SUCCEEDED, ""),  # without an outcome it is a success
    "rubbish-bytes": (FAILED, NO_RESPONSE),
    "cut-in-the-middle": (FAILED, NO_RESPONSE),
    "trailing-garbage": (FAILED, NO_RESPONSE),
    "unknown-field": (SUCCEEDED, ""),  # a newer contract may have more fields
    "wrong-type": (SUCCEEDED, ""),  # to protobuf an unknown field
    "invalid-utf8-message": (FAILED, NO_RESPONSE),
    "nul-in-message": (FAILED, "a\N{REPLACEMENT CHARACTER}b"),
    "nul-in-code": (FAILED, "m"),
    "nul-in-skip": (SKIPPED, ""),
    "control-characters": (FAILED, "a\x1b[31m\nforged"),
    "message-without-end": (FAILED, "m" * 4096),
    "code-without-end": (FAILED, "m"),
    "huge-result": (FAILED, "the app returned a result of 300000 bytes, more than 262144"),
    "huge-state": (FAILED, "the app returned a state of 1048577 bytes, more than 1048576"),
    "huge-message": (FAILED, "the app returned an answer of "),  # final, as the two above
    "endless-retry-after": (FAILED, "later"),
    "negative-retry-after": (FAILED, "later"),
    "odd-retry-after": (FAILED, "later"),
    "no-message": (FAILED, NO_MESSAGE),
    "two-messages": (FAILED, NO_ANSWER),  # gRPC waits for the second one to be read
    "length-that-lies": (FAILED, NO_MESSAGE),
    "length-of-4-gib": (FAILED, NO_MESSAGE),
    "compressed-by-nobody": (SUCCEEDED, ""),  # without an encoding the flag says nothing
    "flag-of-7": (FAILED, NO_MESSAGE),
    "no-status": (FAILED, "UNKNOWN: No status received"),
    "status-99": (FAILED, "UNKNOWN: the app's status code 99 is none of gRPC's"),
    "status-word": (FAILED, "UNKNOWN: "),
    "status-negative": (FAILED, "UNKNOWN: "),
    "status-twice": (FAILED, "INTERNAL: "),
    "status-utf8": (FAILED, "INTERNAL: \xff\xfe\xc3("),
    "status-percent": (FAILED, "INTERNAL: \xff\xfe%zz%"),
    "status-long": (FAILED, "INTERNAL: " + "x" * 1000),
    "status-details": (FAILED, "UNKNOWN: "),
    "http-500": (FAILED, "UNKNOWN: Received http2 header with status: 500"),
    "http-without-status": (FAILED, NO_MESSAGE),
    "headers-alone": (FAILED, "UNKNOWN: No status received"),
    "reset": (FAILED, "INTERNAL: Received RST_STREAM"),
    "reset-after-the-message": (FAILED, "INTERNAL: Received RST_STREAM"),
    "never": (FAILED, NO_ANSWER),
    "never-ends": (FAILED, NO_ANSWER),
}
LAST = "goaway"  # ends the connection, and with it the term: by itself, after the others


@dataclass(frozen=True, slots=True)
class Played:
    """What became of all answers, and the sidecar that went through them."""

    replica: Replica
    runs: dict[str, runs_pb2.Run]
    epoch_before: int
    epoch_after: int
    ticks_meanwhile: int
    stalls: Stalls  # the machine's, meanwhile


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Played]:
    directory = tmp_path_factory.mktemp("answers")
    config = {
        "postgres": {"schema": "answers"},
        "breaker": {"failures": 1000},
        "schedules": [*map(_rare, ANSWERS), {"name": "witness", "every": "1s"}],
    }
    with _beside_the_wire_app(directory, Setup(postgres_url, config=config)) as replica:
        with Stalls(replica.sidecar.pid) as stalls:
            before, ticks = _epoch(replica), _ticks(replica)
            runs = _triggered(replica, EXPECTED)
            wait_until(lambda: _ticks(replica) > ticks, 20, replica.describe)
            after = wait_until(lambda: _epoch(replica), 20, replica.describe)
        yield Played(replica, runs, before, after, _ticks(replica) - ticks, stalls)
        assert replica.sidecar.running


def _rare(name: str) -> dict[str, Any]:
    """One attempt, which is short where no answer comes; it ticks once in four years."""
    timeout = "2s" if EXPECTED.get(name) == (FAILED, NO_ANSWER) else "25s"
    return {"name": name, "cron": "0 0 29 2 *", "retry": {"attempts": 1}, "timeout": timeout}


@contextmanager
def _beside_the_wire_app(directory: Path, setup: Setup) -> Iterator[Replica]:
    replica = Replica("r0", directory / "r0", setup)
    command = [sys.executable, "-m", "tests.security.wire_app", "--address", replica.app_address]
    replica.app = Child(command, directory / "app.log")
    replica.start()
    try:
        wait_until(lambda: _epoch(replica) and _ticks(replica), 30, replica.describe)
        yield replica
    finally:
        replica.stop()


def _metric(replica: Replica, name: str) -> float:
    lines = replica.http("/metrics")[1].splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def _epoch(replica: Replica) -> int:
    leads = _metric(replica, 'baton_is_leader{group="default"}')
    return int(_metric(replica, 'baton_epoch{group="default"}')) if leads else 0


def _ticks(replica: Replica) -> int:
    return int(_metric(replica, 'singleton_executions_total{singleton="witness",type="cron"}'))


def _triggered(replica: Replica, names: dict[str, tuple[str, str]]) -> dict[str, runs_pb2.Run]:
    """Trigger all at once; their runs, when all have ended."""
    with grpc.insecure_channel(replica.api_address) as channel:
        schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
        runs: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
        requests = {name: schedules_pb2.SchedulesTriggerRequest(name=name) for name in names}
        ids = {name: schedules.Trigger(each, timeout=10).run_id for name, each in requests.items()}
        found: dict[str, runs_pb2.Run] = {}
        deadline = time.monotonic() + 60
        while len(found) < len(ids):
            assert time.monotonic() < deadline, f"{ids.keys() - found.keys()} did not end"
            for name in ids.keys() - found.keys():
                run = runs.Get(runs_pb2.RunsGetRequest(run_id=ids[name]), timeout=10).run
                if run.state == runs_pb2.RUN_STATE_ENDED:
                    found[name] = run
            time.sleep(0.1)
        return found


def test_every_answer_has_an_expectation() -> None:
    assert EXPECTED.keys() | {LAST} == ANSWERS.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_an_answer_ends_its_run_with_clear_words(played: Played, name: str) -> None:
    """G11: what the app did wrong is said; never that the sidecar broke."""
    outcome, error = EXPECTED[name]
    run = played.runs[name]
    assert runs_pb2.Outcome.Name(run.outcome) == outcome, run
    assert run.error.startswith(error), run.error[:200]
    assert bool(run.error) == (outcome == FAILED)
    assert len(run.error.encode()) <= 4096
    assert "error in the sidecar" not in run.error


def test_other_work_goes_on_in_the_same_term(played: Played) -> None:
    """G11: a witness that ticks every second ticked, under the leader that was there before."""
    assert played.ticks_meanwhile >= 1
    kept = played.epoch_after == played.epoch_before
    assert kept or played.stalls.cost_a_term, "it lost its term"


def test_no_bug_of_ours_is_logged(played: Played) -> None:
    ours = {
        "execute_call_failed",
        "load_failed",
        "announce_failed",
        "answer_not_storable",
        "election_task_failed",
        "crashed",
    }
    assert not ours & {line["event"] for line in played.replica.log()}
    forged = [line for line in played.replica.sidecar.output.splitlines() if line == "forged"]
    assert not forged


def test_a_torn_connection_costs_a_term_and_nothing_else(played: Played) -> None:
    """G9 G11: the run waits for the app, which is greeted anew and leads again."""
    replica = played.replica
    with grpc.insecure_channel(replica.api_address) as channel:
        schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)  # type: ignore[arg-type]
        runs: Any = runs_pb2_grpc.RunsStub(channel)  # type: ignore[arg-type]
        request = schedules_pb2.SchedulesTriggerRequest(name=LAST)
        run_id = schedules.Trigger(request, timeout=10).run_id

        def has_waited() -> bool:
            found = runs.Get(runs_pb2.RunsGetRequest(run_id=run_id), timeout=10).run
            # For the app, or for the next term, whichever of them was recorded first.
            return any(each.state == runs_pb2.RUN_STATE_WAITING for each in found.history)

        wait_until(has_waited, 20, replica.describe)
        runs.Cancel(runs_pb2.RunsCancelRequest(run_id=run_id), timeout=10)
    ticks = _ticks(replica)
    wait_until(lambda: _epoch(replica) > played.epoch_after, 30, replica.describe)
    wait_until(lambda: _ticks(replica) > ticks, 30, replica.describe)


HEALTH = health_pb2.HealthCheckResponse
# Answers to a health check, and what the sidecar says of the app.
UNHEALTHY: dict[str, tuple[Answer, str]] = {
    "unknown-status": (Answer(data=framed(b"\x08\x63")), "the unknown status 99"),
    "status-unspecified": (Answer(data=framed(b"")), "UNKNOWN"),
    "not-serving": (Answer(data=framed(HEALTH(status=2).SerializeToString())), "NOT_SERVING"),
    "rubbish": (Answer(data=framed(b"\xff\xff")), "the app's answer is no HealthCheckResponse"),
    "no-message": (Answer(), "the app ended the call without a whole message"),
    "code-99": (Answer(trailers=((b"grpc-status", b"99"),)), "code 99 is none of gRPC's"),
    "never": (Answer(headers=None, end="silence"), "DEADLINE_EXCEEDED"),
}
# Answers to OnBecomeLeader and OnLoseLeadership: the term is not acknowledged.
REFUSALS: dict[str, tuple[Answer, str]] = {
    "rubbish": (Answer(data=framed(b"\xff\xff")), "the app's answer is no On"),
    "no-message": (Answer(), "the app ended the call without a whole message"),
    "code-99": (Answer(trailers=((b"grpc-status", b"99"),)), "code 99 is none of gRPC's"),
    "never": (Answer(headers=None, end="silence"), "DEADLINE_EXCEEDED"),
    "too-large": (Answer(data=framed(b"\0" * (4 * 1024 * 1024 + 1))), "RESOURCE_EXHAUSTED"),
}


def _link(address: str) -> AppLink:
    return AppLink(address, Token(SecretSource()), cluster="c", runner_id="r")


def _seconds(name: str) -> float:
    """A deadline that passes only where it is meant to."""
    return 0.5 if name == "never" else 20


async def _connected(address: str) -> AppLink:
    """The short time limits of these tests are for the answer, not for the connection."""
    link = _link(address)
    async with asyncio.timeout(30):
        await link.wait_connected()
    return link


@pytest.mark.parametrize("name", UNHEALTHY)
async def test_an_odd_health_check_is_an_unhealthy_app(name: str) -> None:
    """G9 G11: never an exception that the watch does not know."""
    answer, words = UNHEALTHY[name]
    address = f"127.0.0.1:{free_port()}"
    async with wire_app.serving(address, lambda _: answer):
        link = await _connected(address)
        try:
            with pytest.raises(SidecarError, match=words):
                await link.check(timeout=_seconds(name))
        finally:
            await link.close()


@pytest.mark.parametrize("name", REFUSALS)
async def test_an_odd_acknowledgement_is_none(name: str) -> None:
    """G1 G11."""
    answer, words = REFUSALS[name]
    address = f"127.0.0.1:{free_port()}"
    term = Term("default", 1, 7)
    async with wire_app.serving(address, lambda _: answer):
        link = await _connected(address)
        try:
            for call in (
                link.become_leader(term, boottime() + 3, timeout=_seconds(name)),
                link.lose_leadership(term, LossReason.RESIGNED, timeout=_seconds(name)),
            ):
                with pytest.raises(SidecarError, match=words):
                    await asyncio.wait_for(call, 30)
        finally:
            await link.close()
