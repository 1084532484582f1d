"""What the pipeline needs: delivery to the app, stored state, and the table of runs."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from sidecar.model.run import Answer, Checkpoint, Run
from sidecar.model.run_records import Completion, Recorded


class Call(Protocol):
    """A run that the app is executing."""

    def cancel(self) -> Awaitable[object]:
        """Cancel it at once; no answer follows. Await the result to wait for the cancellation."""


class App(Protocol):
    """Delivers runs to the app: by one call per run, or over a stream."""

    @property
    def connected(self) -> bool: ...

    async def wait_connected(self, seconds: float) -> bool:
        """Whether there is a connection within so many seconds."""

    def deliver(self, run: Run, answered: Callable[[Answer], None]) -> Call:
        """Send the run now; `answered` is called once, never before this returns."""


class StateLoader(Protocol):
    """What a run starts from. Reading raises a retryable error while Postgres is down."""

    def initial(self, run: Run) -> bytes | None:
        """The initial state if the run is known to have no stored state; None: `load` it."""

    async def load(self, run: Run) -> bytes:
        """The owned state, fitted to its schema; the initial one if there is none yet."""

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]: ...


class CompletionStore(Protocol):
    """Raises Fenced under an old epoch, and StoreUnavailable while Postgres is down.

    One for the runs of a term, one for the jobs of a worker lease.
    """

    async def complete(
        self, issuer: Any, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """The accepted ones, by run id; the others are too late, or their rows are locked.

        `issuer` is the term or the worker lease.
        """

    async def find_lost_completions(
        self, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """After a lost answer: those that were written."""

    async def still_running(self, completions: Sequence[Completion]) -> Collection[int]:
        """Of those not accepted: the runs whose row another session has locked."""
