"""The ground every model stands on: virtual time, one seeded source of chance, the trace, wires.

A `Wire` is one direction of one connection: it keeps the order of messages, delays them, and, while
the link is a black hole, holds them back, as TCP does until it retransmits.
"""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.simulation.loop import VirtualLoop

_RETRANSMIT_SECONDS = (0.05, 1.0)
_RETRANSMIT_LATE_SECONDS = (1.0, 4.0)  # TCP waits twice as long each time


class Violation(AssertionError):
    """A guarantee was broken in this history."""


class World:
    """One simulated world; everything in it follows from the seed."""

    def __init__(self, seed: int, *, verbose: bool = False) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loop = VirtualLoop(on_problem=self.violated)  # type: ignore[abstract]
        self.violations: list[str] = []
        self._verbose = verbose
        self._digest = hashlib.sha256()

    @property
    def now(self) -> float:
        return self.loop.now

    @property
    def trace_hash(self) -> str:
        return self._digest.hexdigest()

    def note(self, event: str, **fields: Any) -> None:
        """One line of the history."""
        line = f"{self.now:10.4f} {event:<16} " + " ".join(f"{k}={v}" for k, v in fields.items())
        self._digest.update(line.encode())
        if self._verbose:
            print(line)

    def detail(self, event: str, subject: object) -> None:
        """Too much for the history, but good to read."""
        if self._verbose:
            print(f"{self.now:10.4f}   {event} {subject}")

    def violated(self, problem: str) -> None:
        self.violations.append(f"at {self.now:.4f} s: {problem}")
        self.note("VIOLATION", problem=problem)

    def check(self) -> None:
        if self.violations:
            raise Violation(f"seed {self.seed}: {self.violations[0]}")

    def after(self, seconds: float, act: Callable[..., object], *arguments: Any) -> None:
        self.loop.call_world(seconds, act, *arguments)

    def between(self, span: tuple[float, float]) -> float:
        low, high = span
        return low + (high - low) * self.random.random()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


class Way(Enum):
    """Directions of a link, seen from the client."""

    OUT = "out"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Stutter:
    """Some requests, and what follows on their connection, arrive long after they were sent."""

    statements: frozenset[str]
    probability: float
    seconds: tuple[float, float]


@dataclass(slots=True)
class Link:
    """The network between one client and its server."""

    world: World
    latency: tuple[float, float] = (0.0002, 0.003)
    slow: dict[Way, tuple[float, float]] = field(default_factory=dict)
    black_holes: set[Way] = field(default_factory=set)
    refuses: bool = False  # connections are cut at once, new ones refused
    stutter: "Stutter | None" = None
    answer_loss: float = 0.0  # how often a statement of the pool is executed and not answered
    _wires: "list[Wire]" = field(default_factory=list)

    def wire(self, way: Way) -> "Wire":
        wire = Wire(self, way)
        self._wires = [w for w in self._wires if not w.closed]
        self._wires.append(wire)
        return wire

    def delay(self, way: Way) -> float:
        return self.world.between(self.slow.get(way, self.latency))

    def heal(self) -> None:
        self.slow.clear()
        self.black_holes.clear()
        self.refuses = False
        self.answer_loss, self.stutter = 0.0, None
        for wire in self._wires:
            wire.retransmit()


class Wire:
    """One direction of one connection: in order, never duplicated."""

    def __init__(self, link: Link, way: Way) -> None:
        self.closed = False
        self._link = link
        self._way = way
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._clear_at = 0.0

    def send(self, act: Callable[..., object], *arguments: Any) -> None:
        """Do `act` at the other end, when this has arrived."""
        if self.closed:
            return
        if self._way in self._link.black_holes or self._held:
            self._held.append((act, arguments))
        else:
            self._deliver(self._link.delay(self._way), act, arguments)

    def stand_still(self, seconds: float) -> None:
        """What is sent from now on arrives after that."""
        self._clear_at = max(self._clear_at, self._link.world.now + seconds)

    def close(self) -> None:
        """The end of the connection: what did not arrive yet never will."""
        self.closed = True
        self._held.clear()

    def retransmit(self) -> None:
        held, self._held = self._held, []
        world = self._link.world
        late = held and world.chance(0.4)
        pause = world.between(_RETRANSMIT_LATE_SECONDS if late else _RETRANSMIT_SECONDS)
        for act, arguments in held:
            self._deliver(pause, act, arguments)

    def _deliver(
        self, delay: float, act: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        world = self._link.world
        self._clear_at = max(self._clear_at, world.now + delay)
        world.after(self._clear_at - world.now, self._arrive, act, arguments)

    def _arrive(self, act: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        # Cut off while it was on its way: it waits for the retransmission with the rest.
        if self._way in self._link.black_holes or (self._held and not self.closed):
            self._held.append((act, arguments))
        elif not self.closed:
            act(*arguments)
