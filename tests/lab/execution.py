"""The pipeline beside fakes: an app that is a coroutine, a store in memory."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from sidecar.execution.announcer import Announcer, Listener
from sidecar.execution.authority import Authority
from sidecar.execution.calls import CallPerRun
from sidecar.execution.pipeline import Executions, Pipeline
from sidecar.execution.recorder import Recorder
from sidecar.execution.slots import Slots
from sidecar.model.breaker import Breaker
from sidecar.model.run import Answer, Checkpoint, Run, RunState
from sidecar.model.run_records import Completion, Recorded
from sidecar.model.term import LossReason, Term


class Execute(Protocol):
    async def execute(self, run: Run) -> Answer: ...


class Connected:
    """An app that can always be called."""

    connected = True

    def __init__(self, app: Execute) -> None:
        self._app = app

    async def wait_connected(self, seconds: float) -> bool:
        return True

    async def execute(self, run: Run) -> Answer:
        return await self._app.execute(run)


class NoPeers:
    """No other runner could lead."""

    others_ready = False


class NoStates:
    """Nothing is stored."""

    def initial(self, run: Run) -> bytes | None:
        return b""

    async def load(self, run: Run) -> bytes:
        return b""

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        return {}


@dataclass
class MemoryCompletions:
    """Accepts every completion."""

    completions: list[Completion] = field(default_factory=list)

    async def complete(self, term: Term, completions: Sequence[Completion]) -> dict[int, Recorded]:
        self.completions += completions
        return {each.run.ref.run_id: recorded_for(each) for each in completions}

    async def find_lost_completions(self, completions: Sequence[Completion]) -> dict[int, Recorded]:
        return {}

    async def still_running(self, completions: Sequence[Completion]) -> Collection[int]:
        return ()


def recorded_for(completion: Completion) -> Recorded:
    run, verdict = completion.run, completion.verdict
    state = RunState.WAITING if verdict.outcome is None else RunState.ENDED
    return Recorded(run.ref.run_id, run.kind, state, verdict.outcome, verdict.reason, 0.0, None)


def an_authority(
    term: Term,
    trusted_seconds: Callable[[], float] = lambda: 3.0,
    revoked: Callable[[], None] = lambda: None,
) -> Authority:
    """`revoked` is called when the authority is revoked, whatever the reason."""

    def revoke(reason: LossReason) -> None:
        revoked()

    return Authority(term, trusted_seconds, revoke)


def a_pipeline(app: Any, store: Any, **parts: Any) -> Pipeline:
    """`app` has a coroutine `execute`; `parts` replace what is not told."""
    recorded: Listener = parts.pop("recorded", lambda completion, recorded: None)
    defaults: dict[str, Any] = {
        "loader": NoStates(),
        "announcer": Announcer(health=recorded),
        "breaker": Breaker(failures_max=5, open_seconds=10.0),
        "slots": Slots(64),
        "chance": random.Random(1).random,
    }
    return Pipeline(app=CallPerRun(Connected(app)), store=store, **(defaults | parts))


async def record(recorder: Recorder, completion: Completion) -> Recorded | None:
    done: asyncio.Future[Recorded | None] = asyncio.get_running_loop().create_future()
    recorder.add(completion, done.set_result)
    return await done


@asynccontextmanager
async def writing(recorder: Recorder, seconds: float = 5.0) -> AsyncIterator[None]:
    """The recorder writes meanwhile."""
    writer = asyncio.create_task(recorder.run())
    try:
        async with asyncio.timeout(seconds):
            yield
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)


async def under(
    pipeline: Pipeline,
    authority: Authority,
    lead: Callable[[Authority, Executions], Awaitable[None]],
) -> None:
    """Run `lead` as the leader's work does."""
    async with pipeline.open(authority) as executions:
        await lead(authority, executions)
