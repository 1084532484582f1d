"""The table of runs for the leader of a group.

Guarantees:
- every write is one statement (or one transaction, where state is kept with it) that holds the
  group's term; under an old epoch it changes nothing and raises `Fenced` (G3);
- a completion is accepted only for the live attempt, and its state, outcome and metadata commit
  together (G6);
- queries that the leader repeats use indexes on live runs only;
- a damaged run fails with an error that says so, and other runs are claimed as usual.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.definition_cache import from_text
from sidecar.adapters.postgres.executions import metadata_of
from sidecar.adapters.postgres.job_specs import rejected_as_existing, submit_parameters
from sidecar.model.backlog import Backlog
from sidecar.model.definitions import Schedule
from sidecar.model.errors import DamagedRow, Fenced
from sidecar.model.identity import Identity
from sidecar.model.job import JobSpec
from sidecar.model.overlap import Overlap
from sidecar.model.run import (
    Checkpoint,
    Limits,
    Outcome,
    Run,
    RunKind,
    RunRef,
    RunState,
    idempotency_key,
)
from sidecar.model.run_records import (
    Cancellation,
    Claim,
    Completion,
    Contender,
    Recorded,
    Redelivered,
)
from sidecar.model.schedule import NONE_OLDER_THAN, SkipReason
from sidecar.model.term import Term
from sidecar.model.verdict import DELIVERIES_MAX
from sidecar.slices import in_slices

REQUEUE_MAX = 1000
_ROWS_AT_ONCE = 50
_WAITED = {
    "state": "waiting",
    "outcome": None,
    "reason": None,
    "finished_at": None,
    "seconds": None,
}
CONTENDERS_PER_SCHEDULE = 20
_NONE_SECONDS = NONE_OLDER_THAN.total_seconds()
_KINDS = {kind.value: kind for kind in RunKind if kind is not RunKind.JOB}
_OVERLAPS = frozenset(Overlap)


class PostgresRuns:
    """Queries of the dispatcher and of the singletons."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered:
        """Make runs of former leaders due again; with `known`, also ours that are not in it.

        Includes runs of schedules that moved here from a group without a leader.
        """
        rows = await self._fenced(
            "runs/requeue",
            term,
            deliveries_max=DELIVERIES_MAX,
            lost=known is not None,
            known=list(known or ()),
            limit=REQUEUE_MAX,
        )
        ended = tuple(_recorded(row | {"state": "ended"}) for row in rows if row["outcome"])
        return Redelivered(count=len(rows), ended=ended)

    async def expire(self, term: Term) -> list[Recorded]:
        """Skip queued ticks that were never started and are too old by now: misfires."""
        rows = await self._fenced(
            "runs/expire", term, limit=REQUEUE_MAX, none_seconds=_NONE_SECONDS
        )
        return [_recorded(row) for row in rows]

    async def claim(self, term: Term, *, limit: int, admitted: Sequence[int] = ()) -> Claim:
        identity = await self._identity()
        parameters = _of(term, identity) | {
            "limit": limit,
            "admitted": list(admitted),
            "none_seconds": _NONE_SECONDS,
        }
        rows = await self._database.fetch("runs/claim", parameters)
        head, *claimed = rows
        if not head["is_current"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        runs = [_run(row, term, identity) async for row in in_slices(claimed, _ROWS_AT_ONCE)]
        return Claim(
            tuple(runs), head["now"], head["next_due_at"], head["contended"], head["overdue"]
        )

    async def contended(self, term: Term) -> list[Contender]:
        parameters = {
            "group_id": term.group_id,
            "per_schedule": CONTENDERS_PER_SCHEDULE,
            "none_seconds": _NONE_SECONDS,
        }
        rows = await self._database.fetch("runs/contended", parameters)
        return [_contender(row) for row in rows]

    async def skip(
        self, term: Term, run_ids: Sequence[int], reason: SkipReason, cause: str
    ) -> list[Recorded]:
        rows = await self._fenced(
            "runs/skip", term, run_ids=list(run_ids), reason=reason.value, cause=cause
        )
        ended = {"state": "ended", "outcome": "skipped", "reason": reason.value}
        return [_recorded(row | ended) for row in rows]

    async def ask_replacement(self, term: Term, run_ids: Sequence[int]) -> None:
        await self._fenced("runs/replace", term, run_ids=list(run_ids))

    async def cancellations(self, term: Term) -> list[Cancellation]:
        parameters = {"group_id": term.group_id, "epoch": term.epoch}
        rows = await self._database.fetch("runs/cancellations", parameters)
        return [
            Cancellation(
                row["id"], row["attempt"], SkipReason(row["cancel_reason"]), row["cancel_note"]
            )
            for row in rows
        ]

    async def checkpoints(self, run_ids: Sequence[int]) -> Mapping[int, tuple[Checkpoint, ...]]:
        found: dict[int, tuple[Checkpoint, ...]] = {}
        for row in await self._database.fetch("runs/checkpoints", {"run_ids": list(run_ids)}):
            step = Checkpoint(row["step"], bytes(row["value"]))
            found[row["run_id"]] = (*found.get(row["run_id"], ()), step)
        return found

    async def complete(
        self, term: Term, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """The accepted completions. A missing one came too late, or its row is locked by another
        session: see `still_running`."""
        identity = await self._identity()
        parameters = _of(term, identity) | _columns(completions)
        if not any(c.verdict.state is not None or c.verdict.jobs for c in completions):
            rows = await self._database.fetch("runs/complete", parameters)
            return _accepted(rows, term)
        async with self._database.transaction() as transaction:
            accepted = _accepted(await transaction.fetch("runs/complete", parameters), term)
            for kept in _states(completions, accepted, identity):
                await transaction.fetch("runs/keep_state", kept)
            jobs = _follow_ups(completions, accepted)
            if jobs:
                with rejected_as_existing():
                    await transaction.fetch(
                        "jobs/submit", submit_parameters(identity.cluster_id, jobs)
                    )
        return accepted

    async def find_lost_completions(
        self, completions: Sequence[Completion]
    ) -> Mapping[int, Recorded]:
        """After a lost answer: the completions that were written. Only the leader of the epoch
        ends its attempts, so an ended attempt was ended by the lost statement."""
        run_ids = [completion.run.ref.run_id for completion in completions]
        rows = await self._database.fetch("runs/find_lost_completions", {"run_ids": run_ids})
        by_id = {row["id"]: row for row in rows}
        found = {}
        for ref in (completion.run.ref for completion in completions):
            row = by_id.get(ref.run_id)
            if row is None or row["epoch"] != ref.epoch:
                continue
            if row["attempt"] > ref.attempt:  # it was written as waiting, and has started again
                found[ref.run_id] = _recorded(row | _WAITED)
            elif row["attempt"] == ref.attempt and row["state"] != "running":
                found[ref.run_id] = _recorded(row)
        return found

    async def still_running(self, completions: Sequence[Completion]) -> Collection[int]:
        """After `complete`: the runs that were skipped because their rows were locked."""
        refs = {completion.run.ref.run_id: completion.run.ref for completion in completions}
        parameters = {"run_ids": list(refs)}
        rows = await self._database.fetch("runs/find_lost_completions", parameters)
        return {
            row["id"]
            for row in rows
            if row["state"] == "running"
            and RunRef(row["id"], row["attempt"], row["epoch"]) == refs[row["id"]]
        }

    async def backlog(self, term: Term, *, limit: int) -> Backlog:
        """What is due and has not started; each number counts up to `limit`."""
        parameters = {"group_id": term.group_id, "limit": limit}
        row = (await self._database.fetch("runs/backlog", parameters))[0]
        return Backlog(row["runs"], row["schedules"], max(0.0, row["seconds"]))

    async def prune(self, term: Term, *, keep_seconds: float, limit: int) -> int:
        parameters = {"group_id": term.group_id, "keep_seconds": keep_seconds, "limit": limit}
        row = await self._database.fetch_one("runs/prune", parameters)
        return int(row["pruned"]) if row else 0

    async def abandoned_groups(self) -> list[Term]:
        """The last term of each group that no live runner has configured and nobody leads."""
        identity = await self._identity()
        parameters = {"cluster_id": identity.cluster_id, "mine": list(identity.groups.values())}
        rows = await self._database.fetch("runs/abandoned_groups", parameters)
        return [Term(row["name"], row["id"], row["epoch"]) for row in rows]

    async def end_abandoned_singletons(self, term: Term, *, limit: int) -> int:
        """End runs of singletons in a removed group; returns their number."""
        return len(await self._fenced("runs/end_abandoned_singletons", term, limit=limit))

    async def start_singleton(self, term: Term, name: str) -> Run:
        """Start a run of a singleton; earlier runs of it that nobody ended have failed."""
        identity = await self._identity()
        parameters = _of(term, identity) | {"name": name}
        row = (await self._database.fetch("runs/start_singleton", parameters))[0]
        if not row["is_current"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        kind = RunKind.SINGLETON
        return Run(
            ref=RunRef(row["id"], 1, term.epoch),
            kind=kind,
            name=name,
            group=term.group,
            scheduled_at=row["tick"],
            idempotency_key=idempotency_key(identity.cluster, kind, name, row["id"], row["tick"]),
            metadata=metadata_of(row),
        )

    async def _fenced(self, query: str, term: Term, **parameters: Any) -> list[Row]:
        identity = await self._identity()
        rows = await self._database.fetch(query, _of(term, identity) | parameters)
        if not rows[0]["is_current"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        return [row for row in rows if row.get("id") is not None]


def _of(term: Term, identity: Identity) -> dict[str, Any]:
    return {
        "cluster_id": identity.cluster_id,
        "group_id": term.group_id,
        "epoch": term.epoch,
        "runner_id": identity.runner_id,
    }


def _run(row: Row, term: Term, identity: Identity) -> Run:
    problem = "" if row["kind"] in _KINDS else f"run {row['id']}: its kind is not known"
    kind = _kind(row)
    try:
        definition = from_text(row["name"], term.group, row["definition"])
    except DamagedRow as error:
        problem, definition = str(error), Schedule(name=row["name"], group=term.group)
    return Run(
        ref=RunRef(row["id"], row["attempt"], term.epoch),
        kind=kind,
        name=row["name"],
        group=term.group,
        scheduled_at=row["tick"],
        idempotency_key=idempotency_key(
            identity.cluster, kind, row["name"], row["id"], row["tick"]
        ),
        payload=bytes(row["payload"] or b""),
        content_type=definition.content_type,
        limits=Limits(
            definition.retry,
            definition.timeout_seconds,
            definition.skip_if_older_than_seconds,
        ),
        failures=max(0, row["failures"]),
        deliveries=max(1, row["attempt"] - row["attempts_free"]),
        undelivered=max(0, row["attempts_free"]),
        queued_seconds=row["queued_seconds"],
        late_seconds=row["late_seconds"],
        metadata=metadata_of(row),
        overlap=row["overlap"],
        ping_url=definition.ping_url,
        state_version=definition.state.version,
        state_ttl_seconds=definition.state.ttl_seconds,
        state_policy=definition.state,
        has_state=row["has_state"],
        missed_total=row["missed_total"] or 0,
        problem=problem,
    )


def _kind(row: Row) -> RunKind:
    """An unknown kind is treated as a trigger."""
    return _KINDS.get(row["kind"], RunKind.TRIGGER)


def _contender(row: Row) -> Contender:
    return Contender(
        run_id=row["id"],
        schedule_id=row["schedule_id"],
        # An unknown policy is treated as `queue`: the run neither overlaps nor gets lost.
        overlap=Overlap(row["overlap"]) if row["overlap"] in _OVERLAPS else Overlap.QUEUE,
        begun=row["state"] == "waiting",
        backfill=row["backfill"],
        running_ids=tuple(row["busy_ids"] or ()),
        waiting_ids=tuple(row["waiting_ids"] or ()),
        backfill_ids=tuple(row["backfill_ids"] or ()),
        overdue=row["overdue"],
    )


def _columns(completions: Sequence[Completion]) -> dict[str, Any]:
    """One array per column, in the order of run ids."""
    ordered = sorted(completions, key=lambda completion: completion.run.ref.run_id)
    verdicts = [completion.verdict for completion in ordered]
    return {
        "run_ids": arrays.plain(completion.run.ref.run_id for completion in ordered),
        "attempts": arrays.plain(completion.run.ref.attempt for completion in ordered),
        "outcomes": arrays.texts(v.outcome for v in verdicts),
        "reasons": arrays.texts(v.reason for v in verdicts),
        "waits": arrays.plain(v.wait_seconds for v in verdicts),
        "used_retries": arrays.plain(v.used_retry for v in verdicts),
        "delivereds": arrays.plain(v.delivered for v in verdicts),
        "results": arrays.blobs(v.result for v in verdicts),
        "errors": arrays.texts(v.error for v in verdicts),
        "error_codes": arrays.texts(v.error_code for v in verdicts),
        "causes": arrays.texts(v.cause for v in verdicts),
        "missed_totals": arrays.plain(completion.run.missed_total for completion in ordered),
    }


def _accepted(rows: Iterable[Row], term: Term) -> dict[int, Recorded]:
    rows = list(rows)
    if not rows[0]["is_current"]:
        raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
    return {row["id"]: _recorded(row) for row in rows if row["id"] is not None}


def _recorded(row: Row) -> Recorded:
    return Recorded(
        run_id=row["id"],
        kind=_kind(row),
        state=RunState(row["state"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=SkipReason(row["reason"]) if row["reason"] else None,
        seconds=row.get("seconds"),
        finished_at=row.get("finished_at"),
    )


def _follow_ups(
    completions: Iterable[Completion], accepted: Mapping[int, Recorded]
) -> list[JobSpec]:
    return [
        job
        for completion in completions
        if completion.run.ref.run_id in accepted
        for job in completion.verdict.jobs
    ]


def _states(
    completions: Iterable[Completion], accepted: Mapping[int, Recorded], identity: Identity
) -> Iterable[dict[str, Any]]:
    for completion in completions:
        run, value = completion.run, completion.verdict.state
        if value is not None and run.ref.run_id in accepted:
            ttl = timedelta(seconds=run.state_ttl_seconds) if run.state_ttl_seconds else None
            yield {
                "cluster_id": identity.cluster_id,
                "key": run.state_key,
                "value": value,
                "state_version": run.state_version,
                "ttl": ttl,
            }
