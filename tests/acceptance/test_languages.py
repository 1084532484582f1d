"""One cluster, a replica per language: leadership, state and a durable run pass between them.

The pod that leads is killed again and again, so that each language leads once. The run is one order
of five steps, and each leader in turn performs some of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.acceptance.languages import LANGUAGES
from tests.lab.cluster import Cluster
from tests.lab.replica import Replica, Setup

STEPS = ["reserve", "charge", "pack", "ship", "notify"]
CONFIG = {
    "singletons": [{"name": "coordinator", "restart_after": "1s"}],
    "schedules": [{"name": "order-flow", "at": "2100-01-01T00:00:00Z"}],
}
# Long enough that a pod is killed inside a step, never between its ledger line and its checkpoint.
STEP_SECONDS = 2.0

T = TypeVar("T")


@dataclass
class Pod:
    """A replica in one language; what its sidecar is asked, and what its app did."""

    language: str
    replica: Replica
    ledger: Path
    channel: grpc.aio.Channel
    terms: list[int] = field(default_factory=list)

    async def leads(self) -> bool:
        stub = leadership_pb2_grpc.LeadershipStub(self.channel)
        leader = (await stub.Get(leadership_pb2.LeadershipGetRequest(), timeout=2)).leader
        if leader.is_leader and leader.epoch not in self.terms:
            self.terms.append(leader.epoch)
        return leader.is_leader

    async def count(self) -> int:
        """How far the coordinator has counted, as it was committed."""
        request = state_pb2.StateGetRequest(
            key="singleton-state:coordinator", consistency="CONSISTENCY_STRONG"
        )
        try:
            response = await state_pb2_grpc.StateStub(self.channel).Get(request, timeout=2)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return 0
            raise
        return int(json.loads(response.entry.value)["count"])

    async def run(self, run_id: int) -> runs_pb2.Run:
        stub = runs_pb2_grpc.RunsStub(self.channel)
        return (await stub.Get(runs_pb2.RunsGetRequest(run_id=run_id), timeout=2)).run

    async def order(self) -> int:
        """Asks for one order; the id of its run."""
        request = schedules_pb2.SchedulesTriggerRequest(
            name="order-flow", payload=b'{"order": "of many tongues"}'
        )
        stub = schedules_pb2_grpc.SchedulesStub(self.channel)
        return (await stub.Trigger(request, timeout=5)).run_id

    def performed(self) -> list[str]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [json.loads(line)["step"] for line in lines]


class Story:
    """The pods that are left, and waiting for what must happen to them."""

    def __init__(self, pods: list[Pod]) -> None:
        self.pods = pods
        self.left = list(pods)

    async def until(
        self, condition: Callable[[], Awaitable[T | None]], what: str, timeout: float = 40
    ) -> T:
        problem = ""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    try:
                        if value := await condition():
                            return value
                    except grpc.aio.AioRpcError as error:
                        problem = str(error.details())
                    await asyncio.sleep(0.05)
        except TimeoutError:
            states = "\n".join(pod.language + pod.replica.describe() for pod in self.pods)
            raise AssertionError(f"not within {timeout} s: {what} ({problem})\n{states}") from None

    async def ready(self) -> bool:
        return all(pod.replica.http("/readyz")[0] == 200 for pod in self.left)

    async def leader(self) -> Pod | None:
        for pod in self.left:
            if await pod.leads():
                return pod
        return None

    def kill(self, pod: Pod) -> None:
        pod.replica.kill()
        self.left.remove(pod)


@pytest.fixture
async def story(tmp_path: Path, database_url: str) -> AsyncIterator[Story]:
    languages = [language for language in LANGUAGES if not language.missing]
    if len(languages) < 2:
        pytest.skip("; ".join(language.missing for language in LANGUAGES if language.missing))
    commands = [language.command() for language in languages]
    setup = Setup(database_url, config=CONFIG)
    cluster = Cluster(tmp_path / "lab", len(languages), setup)
    async with AsyncExitStack() as stack:
        pods = []
        for language, command, replica in zip(languages, commands, cluster.replicas, strict=True):
            ledger = tmp_path / f"{language.name}.ledger"
            where = ["--address", replica.app_address, "--sidecar", replica.api_address]
            replica.app.command = [*command, *where]
            replica.app.env = {
                "ORDERS_LEDGER": str(ledger), "ORDERS_STEP_SECONDS": str(STEP_SECONDS)
            }  # fmt: skip
            channel = grpc.aio.insecure_channel(replica.api_address)
            stack.push_async_callback(channel.close, None)
            pods.append(Pod(language.name, replica, ledger, channel))
        stack.callback(cluster.stop)
        cluster.start()
        yield Story(pods)


@pytest.mark.timeout(2400)  # the first build of every language takes its time
async def test_each_language_takes_over_from_another(story: Story) -> None:
    """G2 G5 G7: what one language began, another goes on with, and nothing is done twice."""
    await story.until(story.ready, "every pod is ready")
    run_id = await story.left[0].order()
    counts, led = [0], []
    while story.left:
        leader = await story.until(story.leader, "somebody leads")
        led.append(leader.language)

        async def counted(pod: Pod = leader) -> int | None:
            count = await pod.count()
            assert count >= counts[-1], f"{pod.language} counts from {count}, after {counts}"
            return count if count > counts[-1] else None

        async def advanced(pod: Pod = leader) -> bool:
            run = await pod.run(run_id)
            stored = STEPS.index(run.progress_message) + 1 if run.progress_message else 0
            mine = pod.performed()
            return bool(mine) and stored > STEPS.index(mine[0])

        counts.append(await story.until(counted, f"{leader.language} counts on"))
        await story.until(advanced, f"{leader.language} performs a step of the order")
        if len(story.left) == 1:
            break
        story.kill(leader)

    await _finished(story, run_id)
    epochs = [epoch for name in led for pod in story.pods if pod.language == name
              for epoch in pod.terms]  # fmt: skip
    assert sorted(led) == sorted(pod.language for pod in story.pods)
    assert epochs == sorted(set(epochs))
    performed = [pod.performed() for name in led for pod in story.pods if pod.language == name]
    assert [step for steps in performed for step in steps] == STEPS
    assert all(performed), "each language performed a step"


async def _finished(story: Story, run_id: int) -> None:
    last = story.left[0]

    async def ended() -> runs_pb2.Run | None:
        run = await last.run(run_id)
        return run if run.state == runs_pb2.RUN_STATE_ENDED else None

    run = await story.until(ended, "the order is done")
    assert run.outcome == runs_pb2.OUTCOME_SUCCEEDED
    assert json.loads(run.result) == {"order": "of many tongues", "done": True}
    assert run.attempt >= len(story.pods)
