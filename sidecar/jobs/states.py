"""What a job starts from: the state of its key, and the steps of earlier attempts.

Guarantee: a failed read raises a retryable error and never becomes an empty state.
"""

from collections.abc import Mapping, Sequence

from sidecar import metrics
from sidecar.jobs.ports import KeyedStates, Steps
from sidecar.model.errors import StateLoadFailed, StoreUnavailable
from sidecar.model.run import Checkpoint, Run
from sidecar.model.state_types import Owner


class JobStates:
    """Implements the pipeline's `StateLoader` for jobs."""

    def __init__(self, states: KeyedStates, steps: Steps) -> None:
        self._states = states
        self._steps = steps

    def initial(self, run: Run) -> bytes | None:
        return None if run.has_state else b""

    async def load(self, run: Run) -> bytes:
        if not run.has_state or run.job is None:
            return b""
        owner = Owner("job", f"{run.name}/{run.job.key}")
        try:
            record = await self._states.load(owner, run.state_version)
        except StoreUnavailable as error:
            metrics.STATE_ERRORS.labels(StateLoadFailed.__name__).inc()
            raise StateLoadFailed(f"{owner.key}: {error}") from error
        return record.value or b"" if record else b""

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        return await self._steps.checkpoints(run_ids)
