"""Submits jobs in Postgres.

Guarantees:
- a call is stored as a whole or not at all, whatever becomes of the others of its statement (G13);
- an answer is returned once it is durable and replicated, also that of a repeated request_id (G7);
- a repeated request_id stores nothing, even if both calls run at once.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from psycopg.errors import UniqueViolation

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.job_specs import submit_parameters
from sidecar.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotStorable,
    SidecarError,
    StoreUnavailable,
)
from sidecar.model.identity import Identity
from sidecar.model.job import JobSpec, Submitted
from sidecar.model.job_spec import Submission, with_replacements

Answer = list[Submitted] | SidecarError
_UNIQUE_KEY = "job_unique_pkey"


class PostgresJobSubmissions:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def submit(self, calls: Sequence[Submission]) -> list[Answer]:
        """The answer or the error of each call. Several calls share one statement; a call that
        closes a batch comes alone."""
        if len(calls) == 1:
            return [await self._alone(calls[0])]
        try:
            return await self._together(calls)
        except (UniqueViolation, NotStorable):
            # One of them repeats a request_id, or must not be stored. Nothing was.
            return [await self._alone(call) for call in calls]

    async def complete_batches(self, batches: Sequence[str]) -> int:
        """Complete those that are closed and whose jobs have all ended; how many."""
        parameters = {
            "cluster_id": (await self._identity()).cluster_id,
            "batches": list(batches),
        }
        return len(await self._database.fetch("job_catalogue/complete_batches", parameters))

    async def _alone(self, call: Submission) -> Answer:
        try:
            try:
                return await self._new(call)
            except UniqueViolation as error:
                return await self._repeated(call, error)
        except UniqueViolation:
            return StoreUnavailable("another call has the same request_id: try again")
        except NotStorable as error:
            return InvalidArgument("jobs", str(error))
        except SidecarError as error:
            return error

    async def _new(self, call: Submission) -> Answer:
        if not call.closes:
            return (await self._together([call]))[0]
        cluster_id = (await self._identity()).cluster_id
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("job_catalogue/submit", _parameters(cluster_id, [call]))
            answer = _answers([call], rows)[0]
            if isinstance(answer, SidecarError):
                raise answer
            specs = [call.on_complete] if call.on_complete else []
            parameters = _columns(cluster_id, specs, [0] * len(specs)) | {"batch": call.closes}
            if not await transaction.fetch("job_catalogue/close_batch", parameters):
                raise _closed(call.closes)
        return answer

    async def _together(self, calls: Sequence[Submission]) -> list[Answer]:
        cluster_id = (await self._identity()).cluster_id
        rows = await self._database.fetch("job_catalogue/submit", _parameters(cluster_id, calls))
        return _answers(calls, rows)

    async def _repeated(self, call: Submission, error: UniqueViolation) -> Answer:
        """The stored answer of this request_id; else the earlier job that has the unique key."""
        parameters = {
            "cluster_id": (await self._identity()).cluster_id,
            "request_id": call.request_id,
        }
        row = await self._database.fetch_one("job_catalogue/request", parameters)
        if row is None and error.diag.constraint_name == _UNIQUE_KEY:
            earlier = (error.diag.message_detail or "").encode()
            return AlreadyExists(error.diag.message_primary or "is not unique", earlier)
        if row is None or not row["recent"]:
            await self._database.fetch("job_catalogue/forget_request", parameters)
            return await self._new(call)
        if bytes(row["digest"]) != call.digest:
            return InvalidArgument("request_id", "was used for other jobs within a day")
        return [
            Submitted(job_id, duplicate)
            for job_id, duplicate in zip(row["job_ids"], row["duplicates"], strict=True)
        ]


def _parameters(cluster_id: int, calls: Sequence[Submission]) -> dict[str, Any]:
    jobs = [job for call in calls for job in with_replacements(call.jobs)]
    numbers = [number for number, call in enumerate(calls) for _ in call.jobs]
    requests = [(number, call) for number, call in enumerate(calls) if call.request_id]
    return _columns(cluster_id, jobs, numbers) | {
        "request_calls": arrays.plain(number for number, _ in requests),
        "request_ids": arrays.texts(call.request_id for _, call in requests),
        "digests": arrays.blobs(call.digest for _, call in requests),
    }


def _columns(cluster_id: int, jobs: Sequence[JobSpec], calls: Iterable[int]) -> dict[str, Any]:
    return submit_parameters(cluster_id, jobs) | {"calls": arrays.plain(calls)}


def _answers(calls: Sequence[Submission], rows: Iterable[Row]) -> list[Answer]:
    answers: list[Answer] = [[] for _ in calls]
    for row in rows:
        answer = answers[row["call"]]
        if row["job_id"] is None:
            batches = {job.batch for job in calls[row["call"]].jobs if job.batch}
            answers[row["call"]] = _closed(", ".join(sorted(batches)))
        elif isinstance(answer, list):
            answer.append(Submitted(row["job_id"], row["duplicate"]))
    return answers


def _closed(batch: str) -> FailedPrecondition:
    return FailedPrecondition(f"batch {batch!r} is closed: no more jobs can join it")
