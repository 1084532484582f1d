"""One call into the app: what it is told, how long it may take, what its answer means.

Guarantees: the app gets the state and the checkpoints as they were committed last, read after the
run was claimed; a state that cannot be read is read again and never replaced by the initial one;
nothing is sent once the term cannot be trusted; an attempt ends at its timeout whatever the app
does, counted from when there is a connection to it: until then nothing was delivered.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sidecar.model.errors import SidecarError
from sidecar.model.run import Answer, CallFailed, Checkpoint, Delivery

log = structlog.get_logger()

_RETRY_SECONDS = (0.1, 2.0)
_OVER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Invocation:
    """Everything that one Execute carries."""

    delivery: Delivery
    state: bytes = field(default=b"", repr=False)
    checkpoints: tuple[Checkpoint, ...] = ()


class App(Protocol):
    async def execute(self, invocation: Invocation) -> Answer:
        """Call the app; being cancelled cancels the call. Connecting does not count as calling."""


class States(Protocol):
    async def load(self, delivery: Delivery) -> bytes:
        """The owned state, fitted to its schema; the initial one if there is none yet."""


class Checkpoints(Protocol):
    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]: ...


class Callback:
    def __init__(
        self,
        app: App,
        states: States,
        checkpoints: Checkpoints,
        *,
        connect_seconds: float = 0.0,
        trusted: Callable[[Delivery], bool] = lambda _: True,
    ) -> None:
        self._app = app
        self._states = states
        self._checkpoints = checkpoints
        self._connect_seconds = connect_seconds
        self._trusted = trusted

    async def execute(self, delivery: Delivery) -> Answer:
        """Deliver one attempt; returns its answer, never raises but when cancelled."""
        if delivery.problem:
            return CallFailed("DATA_LOSS", delivery.problem, delivered=False)
        invocation = await self._prepared(delivery)
        if not self._trusted(delivery):
            # This process was frozen while it read; the end of the term is about to cancel us.
            await asyncio.sleep(_OVER_SECONDS)
            return CallFailed("UNAVAILABLE", "the term is over", delivered=False)
        seconds = delivery.limits.timeout_seconds
        if not seconds:
            return await self._app.execute(invocation)
        try:
            # The app's edge keeps the limit, from the connection on; this holds if it does not.
            async with asyncio.timeout(self._connect_seconds + seconds):
                return await self._app.execute(invocation)
        except TimeoutError:
            return CallFailed("DEADLINE_EXCEEDED", f"no answer within {seconds:g} s")

    async def _prepared(self, delivery: Delivery) -> Invocation:
        pause = _RETRY_SECONDS[0]
        while True:
            try:
                return await self._read(delivery)
            except SidecarError as error:
                if not error.retryable:
                    raise
                log.warning("run_waits_for_state", run_id=delivery.ref.run_id, problem=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _RETRY_SECONDS[1])

    async def _read(self, delivery: Delivery) -> Invocation:
        state = await self._states.load(delivery)
        if delivery.ref.attempt == 1:
            return Invocation(delivery, state)
        run_id = delivery.ref.run_id
        found = await self._checkpoints.checkpoints([run_id])
        return Invocation(delivery, state, found.get(run_id, ()))
