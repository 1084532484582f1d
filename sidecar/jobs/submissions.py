"""Submits jobs, from any pod.

Guarantees: a call is stored as a whole or not at all, and durable once it is answered (G13); calls
that wait at the same time share a statement, and one that is refused does not affect the others.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol

from sidecar import metrics
from sidecar.batching import Batcher
from sidecar.jobs.wakeup import Wakeup
from sidecar.model.errors import SidecarError
from sidecar.model.job import OnConflict, Submitted
from sidecar.model.job_spec import Submission, check_submission

_SHARED_BYTES_MAX = 1024 * 1024


class SubmissionStore(Protocol):
    async def submit(
        self, calls: Sequence[Submission]
    ) -> Sequence[Sequence[Submitted] | SidecarError]:
        """The answer or the error of each call."""
        ...

    async def complete_batches(self, batches: Sequence[str]) -> int: ...


class Submissions:
    def __init__(self, store: SubmissionStore, wakeup: Wakeup) -> None:
        self._store = store
        self._wakeup = wakeup
        self._submit = Batcher(
            store.submit,
            name_of=_name,
            kind_of=_kind,
            bytes_of=lambda call: call.payload_bytes,
            bytes_max=_SHARED_BYTES_MAX,
        )

    async def submit(self, call: Submission) -> Sequence[Submitted]:
        check_submission(call)
        answer = await self._submit(call)
        if isinstance(answer, SidecarError):
            raise answer
        metrics.JOBS_SUBMITTED.inc(sum(not job.duplicate for job in answer))
        self._wakeup.submitted()
        if call.closes:
            await self.complete_batches([call.closes])
        return answer

    async def complete_batches(self, batches: Sequence[str]) -> None:
        """After jobs ended or a batch was closed: the batch may be complete."""
        if batches and await self._store.complete_batches(batches):
            self._wakeup.submitted()


def _kind(call: Submission) -> Hashable:
    """Single jobs share a statement, except those that may fail it on purpose."""
    rejects = any(
        job.unique is not None and job.unique.on_conflict is OnConflict.REJECT for job in call.jobs
    )
    alone = len(call.jobs) > 1 or call.closes or rejects
    return id(call) if alone else None


def _name(call: Submission) -> Hashable:
    """Two of one unique key must not share a statement: the second would not see the first."""
    job = call.jobs[0]
    if job.unique is not None:
        return job.name, job.unique.key or job.payload
    return call.request_id or None
