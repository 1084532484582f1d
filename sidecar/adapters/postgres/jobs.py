"""The jobs that a worker executes: claims and completions under its lease.

Guarantees:
- every write is one statement (or one transaction, where state or follow-up jobs are stored with
  it) that holds the worker's row FOR SHARE; of a fenced worker it changes nothing and raises
  `Fenced` (G3, G14);
- a completion is accepted only for the live attempt of this worker; outcome, state, follow-up jobs,
  unique keys and counts of batches commit together (G6, G13).
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row, Transaction
from sidecar.adapters.postgres.job_specs import rejected_as_existing, submit_parameters
from sidecar.model.definitions import Retry
from sidecar.model.errors import Fenced
from sidecar.model.identity import Identity
from sidecar.model.job import (
    DELIVERIES_FREE_MAX,
    JobContext,
    JobSpec,
    Priority,
    Submitted,
)
from sidecar.model.job_records import ClaimRequest, JobClaim
from sidecar.model.run import Checkpoint, Limits, Outcome, Run, RunKind, RunRef, RunState
from sidecar.model.run_records import Cancellation, Completion, Recorded
from sidecar.model.schedule import SkipReason
from sidecar.model.worker_lease import Lease

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_DEFAULT = Retry()
STATE_VERSION = 1


class PostgresJobs:
    """Queries of the claim loop, of the recorder and of submissions."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def submit(self, jobs: Sequence[JobSpec]) -> list[Submitted]:
        """Store jobs, all or none; durable once it returns."""
        identity = await self._identity()
        with rejected_as_existing():
            rows = await self._database.fetch(
                "jobs/submit", submit_parameters(identity.cluster_id, jobs)
            )
        return [Submitted(row["job_id"], row["duplicate"]) for row in rows]

    async def claim(self, lease: Lease, request: ClaimRequest) -> JobClaim:
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "worker_id": lease.worker_id,
            "names": list(request.names),
            "queues": list(request.queues),
            "quotas": list(request.quotas),
            "running": json.dumps(dict(request.running)),
            "since": request.since or _EVER,
            "look": request.full,
        }
        head, *rows = await self._database.fetch("jobs/claim", parameters)
        if not head["is_current"]:
            raise _fenced(lease)
        runs = tuple(_run(row, lease, identity) for row in rows)
        newest = max((row["due_at"] for row in rows), default=None)
        return JobClaim(runs, head["now"], head["next_due_at"], tuple(head["queues"]), newest)

    async def take_back(self, lease: Lease, known: Collection[int]) -> int:
        """Make jobs of this worker that it does not know due again; how many."""
        parameters = {"worker_id": lease.worker_id, "known": list(known)}
        (row,) = await self._database.fetch("jobs/take_back", parameters)
        if not row["is_current"]:
            raise _fenced(lease)
        return int(row["count"])

    async def cancellations(self, lease: Lease) -> list[Cancellation]:
        rows = await self._database.fetch("jobs/cancellations", {"worker_id": lease.worker_id})
        return [
            Cancellation(row["id"], row["attempt"], SkipReason.OPERATOR, row["cancel_note"])
            for row in rows
        ]

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        found: dict[int, tuple[Checkpoint, ...]] = {}
        for row in await self._database.fetch("jobs/checkpoints", {"run_ids": list(run_ids)}):
            step = Checkpoint(row["step"], bytes(row["value"]))
            found[row["run_id"]] = (*found.get(row["run_id"], ()), step)
        return found

    async def expire(self, *, limit: int) -> int:
        """End jobs that were not started in time; how many."""
        identity = await self._identity()
        parameters = {"cluster_id": identity.cluster_id, "limit": limit}
        return len(await self._database.fetch("jobs/expire", parameters))

    # ── completions ─────────────────────────────────────────────────────────────────────────────

    async def complete(
        self, issuer: Lease, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """The accepted completions. A missing one came too late, or its row is locked by another
        session: see `still_running`."""
        identity = await self._identity()
        parameters = _columns(completions) | {
            "worker_id": issuer.worker_id,
            "runner_id": identity.runner_id,
        }
        if not any(c.verdict.state is not None or c.verdict.jobs for c in completions):
            rows = await self._database.fetch("jobs/complete", parameters)
            return _accepted(rows, issuer)
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch("jobs/complete", parameters)
            accepted = _accepted(rows, issuer)
            await _store_with(transaction, completions, accepted, identity)
        return accepted

    async def find_lost_completions(
        self, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """After a lost answer: the completions that were written. Only this worker ends its
        attempts while its lease is current, and it is not if a rescuer did."""
        by_id = {row["id"]: row for row in await self._find(completions)}
        found = {}
        for ref in (completion.run.ref for completion in completions):
            row = by_id.get(ref.run_id)
            if row is None:
                continue
            if row["attempt"] > ref.attempt:  # it was written as waiting, and has started again
                found[ref.run_id] = _waited(ref.run_id)
            elif row["attempt"] == ref.attempt and row["state"] != "running":
                found[ref.run_id] = _recorded(row)
        return found

    async def still_running(self, completions: Sequence[Completion]) -> Collection[int]:
        """After `complete`: the jobs that were skipped because their rows were locked."""
        refs = {completion.run.ref.run_id: completion.run.ref for completion in completions}
        return {
            row["id"]
            for row in await self._find(completions)
            if row["state"] == "running"
            and row["attempt"] == refs[row["id"]].attempt
            and row["worker_id"] == refs[row["id"]].epoch
        }

    async def _find(self, completions: Sequence[Completion]) -> list[Row]:
        run_ids = [completion.run.ref.run_id for completion in completions]
        return await self._database.fetch("jobs/find_lost_completions", {"run_ids": run_ids})


async def _store_with(
    transaction: Transaction,
    completions: Iterable[Completion],
    accepted: Mapping[int, Recorded],
    identity: Identity,
) -> None:
    """Store what accepted completions returned: state, then follow-up jobs."""
    jobs: list[JobSpec] = []
    for completion in completions:
        run, verdict = completion.run, completion.verdict
        if run.ref.run_id not in accepted:
            continue
        # A job without a key owns no state.
        if verdict.state is not None and run.job and run.job.key:
            await transaction.fetch("runs/keep_state", _state(run, verdict.state, identity))
        jobs += verdict.jobs
    if jobs:
        with rejected_as_existing():
            await transaction.fetch("jobs/submit", submit_parameters(identity.cluster_id, jobs))


def _state(run: Run, value: bytes, identity: Identity) -> dict[str, Any]:
    return {
        "cluster_id": identity.cluster_id,
        "key": run.state_key,
        "value": value,
        "state_version": STATE_VERSION,
        "ttl": None,
    }


def _columns(completions: Sequence[Completion]) -> dict[str, Any]:
    """One array per column, in the order of ids."""
    ordered = sorted(completions, key=lambda completion: completion.run.ref.run_id)
    verdicts = [completion.verdict for completion in ordered]
    return {
        "run_ids": arrays.plain(completion.run.ref.run_id for completion in ordered),
        "attempts": arrays.plain(completion.run.ref.attempt for completion in ordered),
        "outcomes": arrays.texts(v.outcome for v in verdicts),
        "reasons": arrays.texts(v.reason for v in verdicts),
        "waits": arrays.plain(v.wait_seconds for v in verdicts),
        "dues": arrays.instants(v.due_at for v in verdicts),
        "used_retries": arrays.plain(v.used_retry for v in verdicts),
        "delivereds": arrays.plain(v.delivered for v in verdicts),
        "results": arrays.blobs(v.result for v in verdicts),
        "errors": arrays.texts(v.error for v in verdicts),
        "error_codes": arrays.texts(v.error_code for v in verdicts),
        "causes": arrays.texts(v.cause for v in verdicts),
    }


def _run(row: Row, lease: Lease, identity: Identity) -> Run:
    attempts = row["attempts"] or _DEFAULT.attempts
    retry = Retry(
        attempts=attempts,
        initial_seconds=_or(row["retry_initial"], _DEFAULT.initial_seconds),
        max_seconds=_or(row["retry_max"], _DEFAULT.max_seconds),
    )
    return Run(
        ref=RunRef(row["id"], row["attempt"], lease.worker_id),
        kind=RunKind.JOB,
        name=row["name"],
        group="",
        scheduled_at=row["due_at"],
        idempotency_key=f"{identity.cluster}/{row['name']}/job-{row['id']}",
        payload=bytes(row["payload"] or b""),
        content_type=row["content_type"] or "",
        limits=Limits(retry, row["timeout"] or 0.0, deliveries_max=attempts + DELIVERIES_FREE_MAX),
        failures=row["failures"],
        deliveries=max(1, row["attempt"] - row["attempts_free"]),
        undelivered=row["attempts_free"],
        queued_seconds=row["queued_seconds"],
        late_seconds=row["late_seconds"],
        state_version=STATE_VERSION,
        has_state=row["has_state"],
        problem="" if row["payload"] is not None else f"job {row['id']}: its payload is gone",
        job=JobContext(
            queue=row["queue"],
            priority=Priority(row["priority"]),
            key=row["key"] or "",
            labels=row["labels"] or {},
            batch=row["batch"] or "",
            submitted_at=row["submitted_at"],
            rescues=row["rescues"],
        ),
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _accepted(rows: Sequence[Row], lease: Lease) -> dict[int, Recorded]:
    if not rows[0]["is_current"]:
        raise _fenced(lease)
    return {row["id"]: _recorded(row) for row in rows if row["id"] is not None}


def _fenced(lease: Lease) -> Fenced:
    return Fenced(f"worker {lease.worker_id}: its lease is over")


def _recorded(row: Row) -> Recorded:
    return Recorded(
        run_id=row["id"],
        kind=RunKind.JOB,
        state=RunState(row["state"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=SkipReason(row["reason"]) if row["reason"] else None,
        seconds=row["seconds"],
        finished_at=row["finished_at"],
    )


def _waited(run_id: int) -> Recorded:
    return Recorded(run_id, RunKind.JOB, RunState.WAITING, None, None)
