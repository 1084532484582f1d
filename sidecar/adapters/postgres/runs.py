"""The table of runs, as the leader of a group works on it.

Guarantees:
- every write is one statement (or one transaction, where state is kept with it) that holds the
  group's term; under an old epoch it changes nothing and raises `Fenced` (G3);
- a completion is accepted only for the live attempt, and its state, outcome and metadata commit
  together (G6);
- what the leader asks again and again is answered from indexes on live runs alone;
- a damaged row ends as failed and says so; it keeps no other run from being claimed.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import Any

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.definition_cache import from_text
from sidecar.config.work import Schedule
from sidecar.model.errors import DamagedRow, Fenced
from sidecar.model.identity import Identity
from sidecar.model.ledger import Cancellation, Claim, Contender, Recorded, Redelivered, Report
from sidecar.model.overlap import Overlap
from sidecar.model.retry import RetryPolicy
from sidecar.model.run import (
    DELIVERIES_MAX,
    Checkpoint,
    Delivery,
    ExecutionMetadata,
    Limits,
    Outcome,
    RunKind,
    RunRef,
    RunState,
    idempotency_key,
)
from sidecar.model.schedule import NONE_OLDER_THAN, SkipReason
from sidecar.model.term import Term

REQUEUE_MAX = 1000
_WAITED = {
    "state": "waiting",
    "outcome": None,
    "reason": None,
    "finished_at": None,
    "seconds": None,
}
CONTENDERS_PER_SCHEDULE = 20
_NONE_SECONDS = NONE_OLDER_THAN.total_seconds()
_KINDS = {kind.value: kind for kind in RunKind}
_OVERLAPS = frozenset(Overlap)
_MEASURED_SECONDS_MAX = 1e9


class PostgresRuns:
    """What the dispatcher and the singletons ask of the table of runs."""

    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def requeue(self, term: Term, *, known: Collection[int] | None = None) -> Redelivered:
        """Runs of gone leaders are due again; with `known`, also ours that are not among them.

        Runs of schedules that moved here from a group that nobody leads any more come along.
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
        """Ticks queued and never begun that are too old by now: skipped as misfires."""
        rows = await self._fenced(
            "runs/expire", term, limit=REQUEUE_MAX, none_seconds=_NONE_SECONDS
        )
        return [_recorded(row) for row in rows]

    async def claim(self, term: Term, *, limit: int, admitted: Sequence[int] = ()) -> Claim:
        who = await self._identity()
        parameters = _of(term, who) | {
            "limit": limit,
            "admitted": list(admitted),
            "none_seconds": _NONE_SECONDS,
        }
        rows = await self._database.fetch("runs/claim", parameters)
        head, *claimed = rows
        if not head["stands"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        deliveries = tuple(_delivery(row, term, who) for row in claimed)
        return Claim(
            deliveries, head["now"], head["next_due_at"], head["contended"], head["overdue"]
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

    async def complete(self, term: Term, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        """Those accepted; a report that is not among them came too late."""
        who = await self._identity()
        parameters = _of(term, who) | _columns(reports)
        if all(report.verdict.state is None for report in reports):
            rows = await self._database.fetch("runs/complete", parameters)
            return _accepted(rows, term)
        async with self._database.transaction() as transaction:
            accepted = _accepted(await transaction.fetch("runs/complete", parameters), term)
            for kept in _states(reports, accepted, who):
                await transaction.fetch("runs/keep_state", kept)
        return accepted

    async def landed(self, reports: Sequence[Report]) -> Mapping[int, Recorded]:
        """After a lost answer: the reports that were written; only their holder ends attempts."""
        run_ids = [report.delivery.ref.run_id for report in reports]
        rows = await self._database.fetch("runs/landed", {"run_ids": run_ids})
        by_id = {row["id"]: row for row in rows}
        found = {}
        for ref in (report.delivery.ref for report in reports):
            row = by_id.get(ref.run_id)
            if row is None or row["epoch"] != ref.epoch:
                continue
            if row["attempt"] > ref.attempt:  # it was going to wait, and has begun again
                found[ref.run_id] = _recorded(row | _WAITED)
            elif row["attempt"] == ref.attempt and row["state"] != "running":
                found[ref.run_id] = _recorded(row)
        return found

    async def prune(self, term: Term, *, keep_seconds: float, limit: int) -> int:
        parameters = {"group_id": term.group_id, "keep_seconds": keep_seconds, "limit": limit}
        row = await self._database.fetch_one("runs/prune", parameters)
        return int(row["pruned"]) if row else 0

    async def vanished(self) -> list[Term]:
        """The last term of each group that no living runner names and nobody holds."""
        who = await self._identity()
        parameters = {"cluster_id": who.cluster_id, "mine": list(who.groups.values())}
        rows = await self._database.fetch("runs/vanished", parameters)
        return [Term(row["name"], row["id"], row["epoch"]) for row in rows]

    async def end_lives(self, term: Term, *, limit: int) -> int:
        """Lives of singletons that nobody ended in a group that vanished; how many there were."""
        return len(await self._fenced("runs/end_lives", term, limit=limit))

    async def start_singleton(self, term: Term, name: str) -> Delivery:
        """A new life of a singleton, running at once; earlier lives that nobody ended are over."""
        who = await self._identity()
        parameters = _of(term, who) | {"name": name}
        row = (await self._database.fetch("runs/start_singleton", parameters))[0]
        if not row["stands"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        kind = RunKind.SINGLETON
        return Delivery(
            ref=RunRef(row["id"], 1, term.epoch),
            kind=kind,
            name=name,
            group=term.group,
            scheduled_at=row["tick"],
            idempotency_key=idempotency_key(who.cluster, kind, name, row["id"], row["tick"]),
            metadata=metadata_of(row),
        )

    async def _fenced(self, query: str, term: Term, **parameters: Any) -> list[Row]:
        who = await self._identity()
        rows = await self._database.fetch(query, _of(term, who) | parameters)
        if not rows[0]["stands"]:
            raise Fenced(f"group {term.group}: epoch {term.epoch} is over")
        return [row for row in rows if row.get("id") is not None]


def metadata_of(row: Row) -> ExecutionMetadata:
    return ExecutionMetadata(
        last_run_at=row["last_run_at"],
        last_success_at=row["last_success_at"],
        run_count=max(0, row["run_count"] or 0),
        last_error=row["last_error"] or "",
        missed_count=max(0, row.get("missed_count") or 0),
        average_seconds=_measured(row["average_seconds"]),
        last_seconds=_measured(row["last_seconds"]),
    )


def _measured(seconds: float | None) -> float | None:
    """Not what no clock can have shown."""
    sound = seconds is not None and isfinite(seconds) and 0 <= seconds < _MEASURED_SECONDS_MAX
    return seconds if sound else None


def _of(term: Term, who: Identity) -> dict[str, Any]:
    return {
        "cluster_id": who.cluster_id,
        "group_id": term.group_id,
        "epoch": term.epoch,
        "runner_id": who.runner_id,
    }


def _delivery(row: Row, term: Term, who: Identity) -> Delivery:
    problem = "" if row["kind"] in _KINDS else f"run {row['id']}: its kind is not known"
    kind = _kind(row)
    try:
        definition = from_text(row["name"], term.group, row["definition"])
    except DamagedRow as error:
        problem, definition = str(error), Schedule(name=row["name"], group=term.group)
    retry = definition.retry
    return Delivery(
        ref=RunRef(row["id"], row["attempt"], term.epoch),
        kind=kind,
        name=row["name"],
        group=term.group,
        scheduled_at=row["tick"],
        idempotency_key=idempotency_key(who.cluster, kind, row["name"], row["id"], row["tick"]),
        payload=bytes(row["payload"] or b""),
        content_type=definition.content_type,
        limits=Limits(
            RetryPolicy(retry.attempts, retry.initial_seconds, retry.max_seconds),
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
    """One that is not known acts for its schedule, as a trigger does."""
    return _KINDS.get(row["kind"], RunKind.TRIGGER)


def _contender(row: Row) -> Contender:
    return Contender(
        run_id=row["id"],
        schedule_id=row["schedule_id"],
        # One that is not known waits for its turn: it neither overlaps nor gets lost.
        overlap=Overlap(row["overlap"]) if row["overlap"] in _OVERLAPS else Overlap.QUEUE,
        begun=row["state"] == "waiting",
        backfill=row["backfill"],
        running_ids=tuple(row["busy_ids"] or ()),
        waiting_ids=tuple(row["waiting_ids"] or ()),
        backfill_ids=tuple(row["backfill_ids"] or ()),
        overdue=row["overdue"],
    )


def _columns(reports: Sequence[Report]) -> dict[str, Any]:
    """One array per column, in the order of run ids."""
    ordered = sorted(reports, key=lambda report: report.delivery.ref.run_id)
    verdicts = [report.verdict for report in ordered]
    return {
        "run_ids": arrays.plain(report.delivery.ref.run_id for report in ordered),
        "attempts": arrays.plain(report.delivery.ref.attempt for report in ordered),
        "outcomes": arrays.texts(v.outcome for v in verdicts),
        "reasons": arrays.texts(v.reason for v in verdicts),
        "waits": arrays.plain(v.wait_seconds for v in verdicts),
        "used_retries": arrays.plain(v.used_retry for v in verdicts),
        "delivereds": arrays.plain(v.delivered for v in verdicts),
        "results": arrays.blobs(v.result for v in verdicts),
        "errors": arrays.texts(v.error for v in verdicts),
        "error_codes": arrays.texts(v.error_code for v in verdicts),
        "causes": arrays.texts(v.cause for v in verdicts),
        "missed_totals": arrays.plain(report.delivery.missed_total for report in ordered),
    }


def _accepted(rows: Iterable[Row], term: Term) -> dict[int, Recorded]:
    rows = list(rows)
    if not rows[0]["stands"]:
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


def _states(
    reports: Iterable[Report], accepted: Mapping[int, Recorded], who: Identity
) -> Iterable[dict[str, Any]]:
    for report in reports:
        delivery, value = report.delivery, report.verdict.state
        if value is not None and delivery.ref.run_id in accepted:
            ttl = (
                timedelta(seconds=delivery.state_ttl_seconds)
                if delivery.state_ttl_seconds
                else None
            )
            yield {
                "cluster_id": who.cluster_id,
                "key": delivery.state_key,
                "value": value,
                "state_version": delivery.state_version,
                "ttl": ttl,
            }
