"""The state that singletons and schedules own, by the policy that each of them declares."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from sidecar.model.definitions import State
from sidecar.model.errors import NotFound
from sidecar.model.process import DeclaredSingletons
from sidecar.model.run import Checkpoint, Run
from sidecar.model.state_schema import initial_state
from sidecar.model.state_types import Owner
from sidecar.state.loader import StateLoader


class Checkpoints(Protocol):
    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]: ...


class OwnedStates:
    """What a run starts from. `schedule_policy` raises NotFound for an unknown schedule."""

    def __init__(
        self,
        loader: StateLoader,
        singletons: DeclaredSingletons,
        schedule_policy: Callable[[str], Awaitable[State]],
        runs: Checkpoints,
    ) -> None:
        self._loader = loader
        self._singletons = singletons
        self._schedule_policy = schedule_policy
        self._runs = runs

    def initial(self, run: Run) -> bytes | None:
        """The initial state, if it is known that none is stored; None: it must be read."""
        return None if run.has_state else initial_state(self._policy_of(run))

    async def load(self, run: Run) -> bytes:
        if (initial := self.initial(run)) is not None:
            return initial
        loaded = await self._loader.load(run.kind.entity_type, run.name, self._policy_of(run))
        return loaded.value

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        return await self._runs.checkpoints(run_ids)

    async def policy(self, owner: Owner) -> State | None:
        """None: this pod does not know the owner."""
        if owner.kind == "singleton":
            singleton = self._singletons.get(owner.name)
            return singleton.state if singleton else None
        try:
            return await self._schedule_policy(owner.name)
        except NotFound:
            return None

    def _policy_of(self, run: Run) -> State:
        if run.state_policy:
            return run.state_policy
        singleton = self._singletons.get(run.name)
        return singleton.state if singleton else State()
