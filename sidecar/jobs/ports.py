"""What the steps of jobs need: the app's handlers, the table of jobs, the queues."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from sidecar.model.job_records import Admitted, ClaimRequest, JobClaim
from sidecar.model.queue_limits import QueueLimits
from sidecar.model.run import Checkpoint
from sidecar.model.run_records import Cancellation
from sidecar.model.state_types import OwnedRecord, Owner
from sidecar.model.term import Term
from sidecar.model.worker_lease import Lease


class JobApp(Protocol):
    """What the healthy processes of the app can execute. Delivery is the pipeline's `App`."""

    @property
    def names(self) -> frozenset[str]:
        """The jobs that they have handlers for; empty while the app is unhealthy."""

    @property
    def capacity(self) -> int:
        """How many runs they take at once."""

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called after `names` or `capacity` has changed."""


class JobStore(Protocol):
    """Raises Fenced for a worker whose lease is over."""

    async def claim(self, lease: Lease, request: ClaimRequest) -> JobClaim: ...
    async def take_back(self, lease: Lease, known: Collection[int]) -> int:
        """After a lost claim: make jobs of this worker that it does not know due again."""

    async def cancellations(self, lease: Lease) -> Sequence[Cancellation]: ...


class AdmissionStore(Protocol):
    """Raises Fenced under an old epoch."""

    async def limits(self) -> Sequence[QueueLimits]: ...
    async def park(self, term: Term, queues: Sequence[str]) -> int:
        """Park jobs that were ready before their queue got a limit."""

    async def admit(self, term: Term, rooms: Mapping[str, int]) -> Admitted: ...
    async def complete_batches(self, term: Term) -> int: ...
    async def expire(self, *, limit: int) -> int: ...


class Retained(Protocol):
    async def sweep(self, *, keep_seconds: float) -> None: ...
    async def partitions(self, *, keep_seconds: float) -> Sequence[str]: ...


class KeyedStates(Protocol):
    async def load(self, owner: Owner, state_version: int) -> OwnedRecord | None: ...


class Steps(Protocol):
    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]: ...
