"""What the app's handlers do with an Execute: answer, fail, decline, take long, hang, keep a step.

State is a number that every answer with a state raises by one: so what stands in the database
tells how many answers were accepted (G6).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sidecar.model.errors import SidecarError
from sidecar.model.run import (
    Answer,
    CallFailed,
    Declined,
    Failed,
    Run,
    RunKind,
    RunRef,
    Succeeded,
)
from tests.simulation.world import World

_WORK_SECONDS = (0.0, 0.25)
_LAZY_SECONDS = (0.3, 2.0)
_SLOW_SECONDS = (0.5, 5.0)
_LIFE_SECONDS = (1.5, 6.0)
_CODES = ("INTERNAL", "UNIMPLEMENTED", "INVALID_ARGUMENT", "UNAVAILABLE", "RESOURCE_EXHAUSTED")
_STEP = "charge"

Reply = Callable[[Answer], None]
# Stores a step of a run; the last argument is called with what came of it.
Keep = Callable[[RunRef, str, bytes, Callable[[SidecarError | None], None]], None]


@dataclass(slots=True, eq=False)
class Handling:
    """One Execute inside the app."""

    run: Run
    reply: Reply
    keep: Keep
    ended: bool = False

    def cancel(self) -> None:
        self.ended = True

    def answer(self, answer: Answer) -> None:
        if not self.ended:
            self.ended = True
            self.reply(answer)


class Handlers:
    """`troubled`: how often something other than a quick success happens; `failing`: how often of
    that it is a failure that may be tried again. `wedged`: nothing is ever answered."""

    def __init__(self, world: World) -> None:
        self.troubled = 0.0
        self.failing = 0.0
        self.lazy = False
        self.wedged = False
        self._world = world

    def recover(self) -> None:
        self.troubled = self.failing = 0.0
        self.lazy = False

    def handle(self, handling: Handling) -> None:
        world, run = self._world, handling.run
        steps = {c.step for c in handling.run.checkpoints}
        if run.kind is RunKind.SCHEDULE and _STEP not in steps and world.chance(0.15):
            value = f"{run.ref.run_id}/{run.ref.attempt}".encode()
            handling.keep(run.ref, _STEP, value, lambda error: self._kept(handling, error))
        else:
            self._work(handling)

    def _kept(self, handling: Handling, error: SidecarError | None) -> None:
        if error is None:
            self._work(handling)
        else:
            handling.answer(Failed("the step was not kept", retryable=True))

    def _work(self, handling: Handling) -> None:
        if self.wedged:
            return
        world, run = self._world, handling.run
        span = _LAZY_SECONDS if self.lazy else _WORK_SECONDS
        if run.kind is RunKind.SINGLETON:
            span = _LIFE_SECONDS
        answer: Answer = Succeeded(state=_raised(handling.run.state))
        if world.chance(self.troubled):
            kind = 3 if world.chance(self.failing) else world.random.randrange(8)
            if kind == 0:
                return  # It hangs: its timeout ends it, or the end of the term.
            if kind == 1:
                span = _SLOW_SECONDS
            elif kind > 2:
                answer = self._trouble(kind, handling.run)
        world.after(world.between(span), handling.answer, answer)

    def _trouble(self, kind: int, run: Run) -> Answer:
        match kind:
            case 3:
                return Failed("no luck", retryable=True)
            case 4:
                return Failed("no luck", retryable=True, state=_raised(run.state))
            case 5:
                return Failed("never", retryable=False)
            case 6:
                return Declined("not today")
            case _:
                return CallFailed(self._world.random.choice(_CODES), "broken")


def _raised(state: bytes) -> bytes:
    return str(int(state) + 1).encode()
